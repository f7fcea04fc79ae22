//! JSON text: [`Json`] for structured values, and what the crate writes by hand.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// A typed value that travels as JSON: the structured content of a tool (whose output schema is that of `T`), or the contents of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// The value as JSON text. It fails where serde does: for a map whose keys are no strings, say.
pub fn to_text<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::internal(error.to_string()))
}

/// The value of a JSON text.
pub fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text)
}

/// Appends `text` as a JSON string.
pub fn push_str(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\x1f' => {
                out.push_str("\\u00");
                out.extend([c as u32 >> 4, c as u32 & 15].into_iter().filter_map(|digit| char::from_digit(digit, 16)));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// `text` as a JSON string.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_str(&mut out, text);
    out
}

/// The text of a JSON string; none where it is no valid one.
pub fn unquote(json: &str) -> Option<String> {
    let mut left = json.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::with_capacity(left.len());
    loop {
        let plain = left.bytes().position(|byte| byte == b'\\' || byte == b'"' || byte < 0x20).unwrap_or(left.len());
        let (text, rest) = left.split_at_checked(plain)?;
        out.push_str(text);
        let mut rest = rest.chars();
        match rest.next() {
            None => return Some(out),
            Some('\\') => out.push(escaped(&mut rest)?),
            Some(_) => return None,
        }
        left = rest.as_str();
    }
}

/// The character after a backslash.
fn escaped(rest: &mut std::str::Chars) -> Option<char> {
    Some(match rest.next()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        c @ ('"' | '\\' | '/') => c,
        'u' => {
            let first = hex4(rest)?;
            if !(0xd800..0xdc00).contains(&first) {
                return char::from_u32(first);
            }
            let second = rest.as_str().strip_prefix("\\u")?;
            *rest = second.chars();
            let second = hex4(rest)?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
            return char::from_u32(0x10000 + ((first - 0xd800) << 10) + second);
        }
        _ => return None,
    })
}

fn hex4(rest: &mut std::str::Chars) -> Option<u32> {
    let mut value = 0;
    for _ in 0..4 {
        value = value * 16 + rest.next()?.to_digit(16)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::{quote, unquote};

    #[test]
    fn quotes_what_must_be_quoted() {
        for text in ["", "plain", "a \"b\" \\ c", "line\nfeed\ttab\r", "\0\x1f\x7f", "é 漢 🦀 \u{2028}"] {
            assert_eq!(serde_json::from_str::<String>(&quote(text)).unwrap(), text);
            assert_eq!(unquote(&quote(text)).unwrap(), text);
        }
    }

    #[test]
    fn strings_are_read_as_other_parsers_read_them() {
        for json in [
            r#""a\u00e9\ud83e\udd80\/\b\f\n\r\t\\\"b""#,
            r#""""#,
            r#""\u0000""#,
            r#""\ud800""#,
            r#""\ud800\u0041""#,
            r#""\udc00""#,
            r#""\x""#,
            r#""\u12""#,
            r#""\""#,
            r#"""#,
            "\"a\nb\"",
            r#""a"b""#,
            "1",
            "",
            r#""\u+041""#,
            "\"\u{7f}é\"",
        ] {
            assert_eq!(unquote(json), serde_json::from_str(json).ok(), "{json}");
        }
    }
}
