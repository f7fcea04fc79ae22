//! A tool's arguments, taken apart once and read one by one, so that an error names the argument.

use serde::de::DeserializeOwned;

use crate::{json, wit};

/// The members of a JSON object, as they stand in its text.
#[doc(hidden)]
pub struct Arguments<'a>(Vec<(String, &'a str)>);

impl<'a> Arguments<'a> {
    /// Takes a JSON object apart.
    pub fn of(text: &'a str) -> Result<Self, wit::Error> {
        match members(text) {
            Some(members) => Ok(Arguments(members)),
            None => Err(wit::Error::InvalidParams("The arguments are not a JSON object.".into())),
        }
    }

    /// The argument's JSON text. Of several with one name, the last counts, as in most JSON parsers.
    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|member| member.0 == name).map(|member| member.1)
    }

    /// An argument that must be there.
    pub fn required<T: DeserializeOwned>(&self, name: &str) -> Result<T, wit::Error> {
        match self.get(name) {
            Some(text) => parse(name, text),
            None => Err(wit::Error::InvalidParams(format!("The argument `{name}` is missing."))),
        }
    }

    /// An argument that may be absent or null.
    pub fn optional<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, wit::Error> {
        match self.get(name) {
            None | Some("null") => Ok(None),
            Some(text) => parse(name, text).map(Some),
        }
    }
}

fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, wit::Error> {
    json::from_text(text).map_err(|error| does_not_fit(name, &error))
}

#[cold]
fn does_not_fit(name: &str, error: &serde_json::Error) -> wit::Error {
    wit::Error::InvalidParams(format!("The argument `{name}` does not fit: {error}"))
}

/// Keys, and values as text; none where the text is no object. Values are only delimited here: who reads one checks it.
fn members(text: &str) -> Option<Vec<(String, &str)>> {
    let mut members = Vec::new();
    let mut left = text.trim_ascii().strip_prefix('{')?.strip_suffix('}')?.trim_ascii_start();
    while !left.is_empty() {
        let key = left.get(..string_length(left)?)?;
        left = left.get(key.len()..)?.trim_ascii_start().strip_prefix(':')?.trim_ascii_start();
        let value = left.get(..value_length(left)?)?;
        let rest = left.get(value.len()..)?.trim_ascii_start();
        left = match rest.strip_prefix(',') {
            // A comma needs something behind it.
            Some(more) => Some(more.trim_ascii_start()).filter(|more| !more.is_empty())?,
            None if rest.is_empty() => rest,
            None => return None,
        };
        members.push((key_text(key)?, value.trim_ascii_end()));
    }
    Some(members)
}

fn key_text(key: &str) -> Option<String> {
    match key.contains('\\') {
        true => json::from_text(key).ok(),
        false => Some(key.get(1..key.len() - 1)?.to_owned()),
    }
}

/// Length of the string that the text begins with, in its quotes.
fn string_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if index == 0 => Some(()).filter(|()| byte == b'"')?,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(index + 1),
            _ => {}
        }
    }
    None
}

/// Length of the value that the text begins with: to the comma behind it, or to the end.
fn value_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'"' => index += string_length(text.get(index..)?)? - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => break,
            _ => {}
        }
        index += 1;
    }
    (depth == 0 && index > 0).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_by_name() {
        let text = r#" { "a" : 1 , "b\n\"" : "x,}\"]\\" , "c":{"d":[1,"]",{}]} ,"e":null , "a": 2 } "#;
        let arguments = Arguments::of(text).unwrap();
        assert_eq!(arguments.required::<u8>("a").unwrap(), 2);
        assert_eq!(arguments.required::<String>("b\n\"").unwrap(), "x,}\"]\\");
        assert_eq!(arguments.get("c"), Some(r#"{"d":[1,"]",{}]}"#));
        assert_eq!(arguments.optional::<u8>("e").unwrap(), None);
        assert_eq!(arguments.optional::<u8>("missing").unwrap(), None);
        assert_eq!(Arguments::of("{}").unwrap().0, []);
    }

    #[test]
    fn errors_name_the_argument() {
        let error = |result: Result<u8, wit::Error>| match result {
            Err(wit::Error::InvalidParams(text)) => text,
            other => panic!("{other:?}"),
        };
        let arguments = Arguments::of(r#"{"n":"text","m":300}"#).unwrap();
        assert_eq!(error(arguments.required("x")), "The argument `x` is missing.");
        assert!(error(arguments.required("n")).starts_with("The argument `n` does not fit: invalid type"));
        assert!(error(arguments.required("m")).starts_with("The argument `m` does not fit: "));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["", "[]", "{", "}", "{a:1}", r#"{"a"}"#, r#"{"a":}"#, r#"{"a":1,}"#, r#"{"a":1"b":2}"#, r#"{"a":[1}"#, r#"{"a":"x}"#, r#"{"a":1]}"#, r#"{,"a":1}"#] {
            let refused = match members(text) {
                None => true,
                Some(members) => members.iter().all(|(_, value)| serde_json::from_str::<serde_json::Value>(value).is_err()),
            };
            assert!(refused, "{text}");
        }
    }
}
