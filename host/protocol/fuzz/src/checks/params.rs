//! `Mcp-Param-*`: a schema, headers and arguments, a line each; headers made from the arguments always pass.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use guesthouse_protocol::http::ParamHeaders;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use serde_json::value::RawValue;

use super::split;

/// The first line is a schema, the second the arguments; the headers follow.
pub fn check(data: &[u8]) {
    let (schema, rest) = split(data, b"\n");
    let (arguments, headers) = split(rest, b"\n");
    let Some(schema) = raw(schema) else { return };
    let arguments = raw(arguments);
    match ParamHeaders::of_schema(schema) {
        Err(problem) => assert!(!problem.is_empty()),
        Ok(wanted) => {
            if let Err(error) = wanted.check(&given(headers), arguments) {
                assert_eq!(error.code, -32020);
            }
            if let Some(arguments) = arguments {
                faithful(&wanted, schema, arguments);
            }
        }
    }
}

fn raw(text: &[u8]) -> Option<&RawValue> {
    serde_json::from_slice(text).ok()
}

fn given(lines: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let (name, value) = split(line, b": ");
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            // Fails only if there are very many.
            let _ = headers.try_append(name, value);
        }
    }
    headers
}

/// Does what a client has to do: repeats every annotated argument, in plain text where that is possible.
fn faithful(wanted: &ParamHeaders, schema: &RawValue, arguments: &RawValue) {
    let (Ok(schema), Ok(arguments)) = (serde_json::from_str::<Value>(schema.get()), serde_json::from_str::<Value>(arguments.get())) else {
        return;
    };
    for plain in [true, false] {
        let mut headers = HeaderMap::new();
        if repeat(&schema, &arguments, plain, &mut headers) {
            assert_eq!(wanted.check(&headers, Some(&serde_json::value::to_raw_value(&arguments).expect("JSON"))), Ok(()));
        }
    }
}

/// False if a value is of the wrong type, or cannot stand in a header in that form.
fn repeat(schema: &Value, arguments: &Value, plain: bool, headers: &mut HeaderMap) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return true };
    properties.iter().all(|(name, property)| {
        let Some(argument) = arguments.get(name).filter(|argument| !argument.is_null()) else { return true };
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            let kind = property.get("type").and_then(Value::as_str);
            let text = match (kind, argument) {
                (Some("string"), Value::String(text)) => text.clone(),
                (Some("boolean"), Value::Bool(_)) => argument.to_string(),
                (Some("integer"), Value::Number(number)) if number.is_i64() => argument.to_string(),
                _ => return false,
            };
            let is_safe = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text && !text.starts_with("=?base64?");
            let value = if plain { text } else { format!("=?base64?{}?=", STANDARD.encode(text)) };
            let (Ok(name), Ok(value)) = (format!("mcp-param-{header}").parse::<HeaderName>(), HeaderValue::from_str(&value)) else {
                return false;
            };
            if plain && !is_safe || headers.try_insert(name, value).is_err() {
                return false;
            }
        }
        repeat(property, argument, plain, headers)
    })
}
