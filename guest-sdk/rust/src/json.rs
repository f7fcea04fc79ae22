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

#[cfg(test)]
mod tests {
    #[test]
    fn quotes_what_must_be_quoted() {
        for text in ["", "plain", "a \"b\" \\ c", "line\nfeed\ttab\r", "\0\x1f\x7f", "é 漢 🦀 \u{2028}"] {
            assert_eq!(serde_json::from_str::<String>(&super::quote(text)).unwrap(), text);
        }
    }
}
