//! A tool's arguments, taken apart once and read one by one, so that an error names the argument.

use std::marker::PhantomData;

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
    pub fn required<T>(&self, name: &str, read: Read<T>) -> Result<T, wit::Error> {
        match self.get(name) {
            Some(text) => read(text).map_err(|reason| does_not_fit(name, &reason)),
            None => Err(wit::Error::InvalidParams(format!("The argument `{name}` is missing."))),
        }
    }

    /// An argument that may be absent or null.
    pub fn optional<T>(&self, name: &str, read: Read<T>) -> Result<Option<T>, wit::Error> {
        match self.get(name) {
            None | Some("null") => Ok(None),
            Some(text) => read(text).map(Some).map_err(|reason| does_not_fit(name, &reason)),
        }
    }
}

/// Reads a value from its JSON text, or says why it cannot.
type Read<T> = fn(&str) -> Result<T, String>;

#[cold]
fn does_not_fit(name: &str, reason: &str) -> wit::Error {
    wit::Error::InvalidParams(format!("The argument `{name}` does not fit: {reason}"))
}

/// Chooses how a type is read. The macro calls `(&As::<T>::NEW).read(text)`, which finds [`Direct`] where `T` has it, and else [`BySerde`]:
/// guests whose arguments are plain need no general JSON parser.
#[doc(hidden)]
pub struct As<T>(PhantomData<T>);

impl<T> As<T> {
    pub const NEW: Self = As(PhantomData);
}

#[doc(hidden)]
pub trait Direct<T> {
    fn read(&self, text: &str) -> Result<T, String>;
}

#[doc(hidden)]
pub trait BySerde<T> {
    fn read(&self, text: &str) -> Result<T, String>;
}

impl<T: DeserializeOwned> BySerde<T> for &As<T> {
    fn read(&self, text: &str) -> Result<T, String> {
        json::from_text(text).map_err(|error| error.to_string())
    }
}

impl Direct<String> for As<String> {
    fn read(&self, text: &str) -> Result<String, String> {
        json::unquote(text).ok_or_else(|| "a text is needed".into())
    }
}

impl Direct<bool> for As<bool> {
    fn read(&self, text: &str) -> Result<bool, String> {
        text.parse().map_err(|_| "true or false is needed".into())
    }
}

macro_rules! integers {
    ($($type:ty)*) => {
        $(impl Direct<$type> for As<$type> {
            fn read(&self, text: &str) -> Result<$type, String> {
                whole(text).parse().map_err(|_| format!("a whole number from {} to {} is needed", <$type>::MIN, <$type>::MAX))
            }
        })*
    };
}
integers! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

/// JSON has one kind of number, in which `2.0` is whole.
fn whole(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() && fraction.bytes().all(|digit| digit == b'0') => whole,
        _ => text,
    }
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
        members.push((json::unquote(key)?, value.trim_ascii_end()));
    }
    Some(members)
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

    macro_rules! read {
        ($type:ty) => {
            |text| (&As::<$type>::NEW).read(text)
        };
    }

    #[test]
    fn arguments_are_read_by_name() {
        let text = r#" { "a" : 1 , "b\n\"" : "x,}\"]\\" , "c":{"d":[1,"]",{}]} ,"e":null , "a": 2.0, "f":[1,2] } "#;
        let arguments = Arguments::of(text).unwrap();
        assert_eq!(arguments.required("a", read!(u8)).unwrap(), 2);
        assert_eq!(arguments.required("b\n\"", read!(String)).unwrap(), "x,}\"]\\");
        assert_eq!(arguments.get("c"), Some(r#"{"d":[1,"]",{}]}"#));
        assert_eq!(arguments.optional("e", read!(u8)).unwrap(), None);
        assert_eq!(arguments.optional("missing", read!(u8)).unwrap(), None);
        assert_eq!(arguments.optional("f", read!(Vec<i8>)).unwrap(), Some(vec![1, 2]));
        assert!(Arguments::of("{}").unwrap().0.is_empty());
    }

    #[test]
    fn errors_name_the_argument() {
        fn error<T: std::fmt::Debug>(result: Result<T, wit::Error>) -> String {
            match result {
                Err(wit::Error::InvalidParams(text)) => text,
                other => panic!("{other:?}"),
            }
        }
        let arguments = Arguments::of(r#"{"n":"text","m":300,"b":1,"f":1.5}"#).unwrap();
        assert_eq!(error(arguments.required("x", read!(u8))), "The argument `x` is missing.");
        assert_eq!(error(arguments.required("m", read!(u8))), "The argument `m` does not fit: a whole number from 0 to 255 is needed");
        assert_eq!(error(arguments.required("f", read!(i32))), error(arguments.required("f", read!(i32))));
        assert_eq!(error(arguments.required("b", read!(bool))), "The argument `b` does not fit: true or false is needed");
        assert_eq!(error(arguments.required("m", read!(String))), "The argument `m` does not fit: a text is needed");
        assert!(error(arguments.required("n", read!(f64))).starts_with("The argument `n` does not fit: invalid type"));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in [
            "",
            "[]",
            "{",
            "}",
            "{a:1}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":1"b":2}"#,
            r#"{"a":[1}"#,
            r#"{"a":"x}"#,
            r#"{"a":1]}"#,
            r#"{,"a":1}"#,
        ] {
            let refused = match members(text) {
                None => true,
                Some(members) => members.iter().all(|(_, value)| serde_json::from_str::<serde_json::Value>(value).is_err()),
            };
            assert!(refused, "{text}");
        }
    }
}
