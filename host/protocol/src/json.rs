//! JSON text: an owned value kept as text, and a writer that builds objects straight into bytes.

use std::io::Write as _;

use serde_json::value::RawValue;

/// A JSON value kept as the text it arrived in.
pub type Json = Box<RawValue>;

/// Writes one JSON object into a byte buffer, member by member.
///
/// Results are written once, in the form of the revision that they go to; there is no tree in between.
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    /// Opens the object.
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Object<'a> {
        out.push(b'{');
        Object { out, empty: true }
    }

    /// Closes the object.
    pub(crate) fn end(self) {
        self.out.push(b'}');
    }

    /// Writes the name of a member that is a literal, and hands out the buffer for its value.
    pub(crate) fn key(&mut self, name: &'static str) -> &mut Vec<u8> {
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Like `key`, for a name that may need escaping.
    pub(crate) fn dynamic_key(&mut self, name: &str) -> &mut Vec<u8> {
        self.separate();
        string(self.out, name);
        self.out.push(b':');
        self.out
    }

    pub(crate) fn text(&mut self, name: &'static str, value: &str) {
        string(self.key(name), value);
    }

    pub(crate) fn optional_text(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    pub(crate) fn raw(&mut self, name: &'static str, value: &RawValue) {
        raw(self.key(name), value);
    }

    /// Writes a `_meta` or another member that must be an object; anything else is left out.
    pub(crate) fn optional_object(&mut self, name: &'static str, value: Option<&RawValue>) {
        if let Some(value) = value.filter(|value| is_object(value)) {
            self.raw(name, value);
        }
    }

    pub(crate) fn boolean(&mut self, name: &'static str, value: bool) {
        self.key(name).extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub(crate) fn optional_boolean(&mut self, name: &'static str, value: Option<bool>) {
        if let Some(value) = value {
            self.boolean(name, value);
        }
    }

    pub(crate) fn integer(&mut self, name: &'static str, value: u64) {
        integer(self.key(name), value);
    }

    /// Writes a number; a value that JSON cannot say is left out.
    pub(crate) fn number(&mut self, name: &'static str, value: f64) {
        if value.is_finite() {
            number(self.key(name), value);
        }
    }

    /// Writes an array, each item by `write`.
    pub(crate) fn array<T>(&mut self, name: &'static str, items: &[T], write: impl FnMut(&mut Vec<u8>, &T)) {
        array(self.key(name), items, write);
    }

    fn separate(&mut self) {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
    }
}

/// Writes an array, each item by `write`.
pub(crate) fn array<T>(out: &mut Vec<u8>, items: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// Writes a string literal.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, text).is_err() {
        // Writing to memory cannot fail; were it ever to, an empty string keeps the message well-formed.
        out.truncate(start);
        out.extend_from_slice(b"\"\"");
    }
}

/// Writes a value verbatim, except that line breaks between its tokens become spaces: both transports frame
/// messages by lines. Inside a JSON string a line break is always escaped, so no value changes.
pub(crate) fn raw(out: &mut Vec<u8>, value: &RawValue) {
    let bytes = value.get().as_bytes();
    if memchr::memchr2(b'\n', b'\r', bytes).is_none() {
        out.extend_from_slice(bytes);
    } else {
        out.extend(bytes.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    }
}

/// Writes an integer.
pub(crate) fn integer(out: &mut Vec<u8>, value: u64) {
    // Writing to memory cannot fail.
    let _ = write!(out, "{value}");
}

/// Writes a finite number, without a fraction where it has none.
pub(crate) fn number(out: &mut Vec<u8>, value: f64) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    // Writing to memory cannot fail.
    let _ = if value.fract() == 0.0 && value.abs() < EXACT { write!(out, "{value:.0}") } else { write!(out, "{value:?}") };
}

/// Writes bytes as a string in the standard Base64 alphabet.
pub(crate) fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
    use base64::Engine as _;
    out.push(b'"');
    let start = out.len();
    let room = bytes.len().div_ceil(3).saturating_mul(4);
    out.resize(start.saturating_add(room), b'=');
    let written =
        out.get_mut(start..).and_then(|target| base64::engine::general_purpose::STANDARD.encode_slice(bytes, target).ok()).unwrap_or(0);
    out.truncate(start.saturating_add(written));
    out.push(b'"');
}

/// Whether the text is that of an object.
pub(crate) fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

/// An owned JSON value of something that serialises; `null` were that ever to fail.
pub(crate) fn to_raw(value: &impl serde::Serialize) -> Json {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// An owned JSON value of what `write` writes; `null` were that not to be JSON.
pub(crate) fn to_raw_written(write: impl FnOnce(&mut Vec<u8>)) -> Json {
    let mut out = Vec::new();
    write(&mut out);
    let raw = String::from_utf8(out).ok().and_then(|text| RawValue::from_string(text).ok());
    raw.unwrap_or_else(|| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at a surprise")]

    use super::*;

    #[test]
    fn numbers_have_no_needless_fraction() {
        for (value, expected) in [(0.0, "0"), (50.0, "50"), (0.5, "0.5"), (-3.0, "-3"), (1e300, "1e300")] {
            let mut out = Vec::new();
            number(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn a_pretty_printed_value_stays_on_one_line() {
        let value = RawValue::from_string("{\r\n  \"a\": \"x\\ny\"\n}".to_owned()).unwrap();
        let mut out = Vec::new();
        raw(&mut out, &value);
        assert_eq!(String::from_utf8(out).unwrap(), "{    \"a\": \"x\\ny\" }");
    }

    #[test]
    fn base64_pads() {
        for (bytes, expected) in [(&b""[..], "\"\""), (b"M", "\"TQ==\""), (b"Ma", "\"TWE=\""), (b"Man", "\"TWFu\"")] {
            let mut out = Vec::new();
            base64(&mut out, bytes);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
