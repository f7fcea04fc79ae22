//! JSON Schemas of tools: bounded before they are compiled, and compiled once per version.
//!
//! 2020-12 unless the schema declares draft-07 (`basic/index`, "JSON Schema Usage"). References never leave the document,
//! and patterns run in linear time, so neither a schema nor an argument can hold a call up.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use serde_json::value::RawValue;

/// Deepest nesting of a schema.
const DEPTH_MAX: usize = 64;
/// Most objects and arrays in a schema, which bounds its subschemas.
const NODES_MAX: usize = 10_000;
/// Bound of one compiled `pattern`, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Longest message about a value that does not fit.
const MESSAGE_CHARS_MAX: usize = 500;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
}

/// Where a value breaks its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// JSON pointer into the value; empty for the value itself.
    pub pointer: String,
    /// What is wrong there.
    pub message: String,
}

impl Schema {
    /// Compiles the schema of a tool's arguments, which must describe an object.
    pub fn of_arguments(text: &RawValue, bytes_max: usize) -> Result<Self, String> {
        let value = bounded(text, bytes_max)?;
        if value.get("type").and_then(Value::as_str) != Some("object") {
            return Err("does not have \"type\": \"object\" at its top".into());
        }
        Self::compile(&value)
    }

    /// Compiles the schema of a tool's structured content.
    pub fn of_output(text: &RawValue, bytes_max: usize) -> Result<Self, String> {
        Self::compile(&bounded(text, bytes_max)?)
    }

    fn compile(schema: &Value) -> Result<Self, String> {
        let draft = match schema.get("$schema").and_then(Value::as_str).map(|uri| uri.trim_end_matches('#')) {
            None | Some("https://json-schema.org/draft/2020-12/schema") => Draft::Draft202012,
            Some("http://json-schema.org/draft-07/schema" | "https://json-schema.org/draft-07/schema") => Draft::Draft7,
            Some(other) => return Err(format!("declares the dialect `{other}`; 2020-12 and draft-07 are supported")),
        };
        jsonschema::options()
            .with_draft(draft)
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES_MAX))
            .offline()
            .build(schema)
            .map(|validator| Self { validator })
            .map_err(|error| format!("is not a valid JSON Schema: {} (at `{}`)", short(&error.to_string()), error.instance_path()))
    }

    /// Checks a value; the first thing that is wrong is enough.
    pub fn check(&self, value: &Value) -> Result<(), Mismatch> {
        self.validator
            .validate(value)
            .map_err(|error| Mismatch { pointer: error.instance_path().to_string(), message: short(&error.to_string()) })
    }
}

/// Parses a schema that keeps within the bounds.
fn bounded(text: &RawValue, bytes_max: usize) -> Result<Value, String> {
    if text.get().len() > bytes_max {
        return Err(format!("is longer than {bytes_max} bytes"));
    }
    let value: Value = serde_json::from_str(text.get()).map_err(|error| format!("cannot be read: {error}"))?;
    if !value.is_object() {
        return Err("is not a JSON object".into());
    }
    let mut nodes = 0;
    measure(&value, 1, &mut nodes)?;
    Ok(value)
}

fn measure(value: &Value, depth: usize, nodes: &mut usize) -> Result<(), String> {
    let children: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Object(members) => Box::new(members.values()),
        Value::Array(items) => Box::new(items.iter()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(()),
    };
    *nodes += 1;
    if depth > DEPTH_MAX {
        return Err(format!("nests deeper than {DEPTH_MAX} levels"));
    }
    if *nodes > NODES_MAX {
        return Err(format!("has more than {NODES_MAX} objects and arrays"));
    }
    for child in children {
        measure(child, depth + 1, nodes)?;
    }
    Ok(())
}

/// A message quotes the value that is wrong, which may be long.
fn short(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(schema: &Value) -> Result<Schema, String> {
        Schema::of_arguments(&serde_json::value::to_raw_value(schema).unwrap(), 10_000)
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_refused_with_the_reason() {
        let deep = (0..70).fold(json!({}), |inner, _| json!({ "not": inner }));
        for (schema, part) in [
            (json!([]), "not a JSON object"),
            (json!({}), "\"type\": \"object\""),
            (json!({ "type": "string" }), "\"type\": \"object\""),
            (json!({ "type": "object", "properties": { "a": { "type": "text" } } }), "/properties/a/type"),
            (json!({ "type": "object", "properties": { "a": { "$ref": "https://example.com/schema.json" } } }), "not a valid JSON Schema"),
            (json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/none" } } }), "not a valid JSON Schema"),
            (json!({ "type": "object", "$schema": "http://json-schema.org/draft-04/schema#" }), "draft-04"),
            (json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }), "not a valid JSON Schema"),
            (json!({ "type": "object", "allOf": [deep] }), "deeper than 64"),
            (json!({ "type": "object", "title": "x".repeat(10_000) }), "longer than"),
            (json!({ "type": "object", "examples": vec![json!([]); 4_000], "default": vec![json!([]); 100] }), "longer than"),
        ] {
            let error = arguments(&schema).unwrap_err();
            assert!(error.contains(part), "{schema}: {error}");
        }
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_by_its_pointer() {
        let schema = arguments(&json!({
            "type": "object",
            "properties": { "user": { "type": "object", "properties": { "age": { "type": "integer", "minimum": 0 } } } },
            "required": ["user"],
            "additionalProperties": false
        }))
        .unwrap();
        for (value, pointer, part) in [
            (json!({ "user": { "age": -1 } }), "/user/age", "minimum"),
            (json!({ "user": { "age": "x" } }), "/user/age", "integer"),
            (json!({}), "", "user"),
            (json!({ "user": {}, "more": 1 }), "", "more"),
            (json!({ "user": "y".repeat(2_000) }), "/user", "…"),
        ] {
            let mismatch = schema.check(&value).unwrap_err();
            assert_eq!(mismatch.pointer, pointer);
            assert!(mismatch.message.contains(part), "{}", mismatch.message);
        }
        assert_eq!(schema.check(&json!({ "user": { "age": 3 } })), Ok(()));
    }

    #[test]
    fn draft_07_is_followed_where_it_is_declared() {
        let tuple = |draft: Option<&str>| {
            let mut schema = json!({ "type": "object", "properties": { "t": { "items": [{ "type": "string" }] } } });
            if let Some(draft) = draft {
                schema["$schema"] = draft.into();
            }
            arguments(&schema)
        };
        let old = tuple(Some("http://json-schema.org/draft-07/schema#")).unwrap();
        assert!(old.check(&json!({ "t": [1] })).is_err());
        assert!(tuple(None).is_err(), "2020-12 has no array form of items");
    }
}
