//! Tables of `Mcp-Param-*`: which annotations are valid, and which headers agree with the arguments.

use guesthouse_protocol::http::ParamHeaders;
use http::HeaderMap;
use serde_json::{Value, json};

use crate::fixtures::json as raw;

fn of(schema: &Value) -> Result<ParamHeaders, String> {
    ParamHeaders::of_schema(&raw(&schema.to_string()))
}

fn text(header: &str) -> Value {
    json!({ "type": "string", "x-mcp-header": header })
}

#[test]
fn annotations_stand_on_simple_properties_only() {
    let fine = [
        json!({ "type": "object" }),
        json!({ "properties": { "a": text("A") } }),
        json!({ "properties": { "a": { "type": "object", "properties": { "b": text("B") } } } }),
        json!({ "properties": { "a": { "type": "integer", "x-mcp-header": "A" } } }),
        json!({ "properties": { "a": { "type": "boolean", "x-mcp-header": "A" } } }),
        // A property of that name, and a value that looks like an annotation, are none.
        json!({ "properties": { "x-mcp-header": { "type": "string" } } }),
        json!({ "properties": { "a": { "default": { "x-mcp-header": "A" } } } }),
    ];
    for schema in fine {
        assert!(of(&schema).is_ok(), "{schema}");
    }
    let bad = [
        json!({ "x-mcp-header": "A" }),
        json!({ "properties": { "a": text("") } }),
        json!({ "properties": { "a": text("A B") } }),
        json!({ "properties": { "a": text("A\r\nB") } }),
        json!({ "properties": { "a": text("é") } }),
        json!({ "properties": { "a": text(&"x".repeat(129)) } }),
        json!({ "properties": { "a": { "type": "string", "x-mcp-header": 1 } } }),
        json!({ "properties": { "a": { "type": "number", "x-mcp-header": "A" } } }),
        json!({ "properties": { "a": { "type": "object", "x-mcp-header": "A" } } }),
        json!({ "properties": { "a": { "x-mcp-header": "A" } } }),
        json!({ "properties": { "a": text("Same"), "b": text("sAME") } }),
        json!({ "properties": { "a": { "items": text("A") } } }),
        json!({ "properties": { "a": { "items": { "properties": { "b": text("B") } } } } }),
        json!({ "anyOf": [{ "properties": { "a": text("A") } }] }),
        json!({ "if": { "properties": { "a": text("A") } } }),
        json!({ "$defs": { "a": text("A") } }),
        json!({ "properties": { "a": { "allOf": [text("A")] } } }),
        json!({ "patternProperties": { "a": text("A") } }),
        json!({ "additionalProperties": text("A") }),
    ];
    for schema in bad {
        assert!(of(&schema).is_err(), "{schema}");
    }
    assert!(of(&json!({ "type": "object" })).unwrap().is_empty());
}

#[test]
fn a_schema_that_nests_too_deep_is_refused_not_followed() {
    let mut schema = text("A");
    for _ in 0..100 {
        schema = json!({ "properties": { "a": schema } });
    }
    assert!(of(&schema).is_err());
}

fn wanted() -> ParamHeaders {
    let schema = json!({ "properties": {
        "value": text("Value"),
        "count": { "type": "integer", "x-mcp-header": "Count" },
        "flag": { "type": "boolean", "x-mcp-header": "Flag" },
        "deep": { "type": "object", "properties": { "er": text("Deeper") } },
    } });
    of(&schema).unwrap()
}

/// Headers without their prefix, arguments, and whether they agree.
type Row<'a> = (Vec<(&'a str, &'a str)>, Value, bool);

#[test]
fn headers_agree_with_the_arguments() {
    let table: Vec<Row<'_>> = vec![
        (vec![], json!({}), true),
        (vec![], json!({ "value": null }), true),
        (vec![("value", "Hello")], json!({ "value": "Hello" }), true),
        (vec![("value", "=?base64?SGVsbG8=?=")], json!({ "value": "Hello" }), true),
        (vec![("value", "=?base64?SGVsbG8?=")], json!({ "value": "Hello" }), false),
        (vec![("value", "=?base64?SGVs!!!bG8=?=")], json!({ "value": "Hello" }), false),
        (vec![("value", "SGVsbG8=?=")], json!({ "value": "SGVsbG8=?=" }), true),
        (vec![("value", "=?base64?SGVsbG8=")], json!({ "value": "=?base64?SGVsbG8=" }), true),
        (vec![("value", "=?base64?4LiB?=")], json!({ "value": "\u{e01}" }), true),
        (vec![("value", "=?base64?/w==?=")], json!({ "value": "\u{ff}" }), false),
        (vec![], json!({ "value": "Hello" }), false),
        (vec![("value", "hello")], json!({ "value": "Hello" }), false),
        (vec![("value", "Hello"), ("value", "Hello")], json!({ "value": "Hello" }), false),
        (vec![("value", "Hello")], json!({}), false),
        (vec![("value", "null")], json!({ "value": null }), false),
    ];
    check(&wanted(), table);
    assert!(wanted().check(&HeaderMap::new(), None).is_ok());
}

#[test]
fn numbers_and_booleans_agree_by_value() {
    let table: Vec<Row<'_>> = vec![
        (vec![("count", "42")], json!({ "count": 42 }), true),
        (vec![("count", "42.0")], json!({ "count": 42 }), true),
        (vec![("count", "4.2e1")], json!({ "count": 42 }), true),
        (vec![("count", "43")], json!({ "count": 42 }), false),
        (vec![("count", "NaN")], json!({ "count": 42 }), false),
        (vec![("count", "0x2a")], json!({ "count": 42 }), false),
        (vec![("count", "9007199254740993")], json!({ "count": 9_007_199_254_740_992_i64 }), false),
        (vec![("count", "9007199254740992")], json!({ "count": 9_007_199_254_740_992_i64 }), true),
        // An argument of the wrong type is for the schema to refuse.
        (vec![("count", "42")], json!({ "count": "many" }), true),
        (vec![("flag", "true")], json!({ "flag": true }), true),
        (vec![("flag", "True")], json!({ "flag": true }), false),
        (vec![("flag", "true")], json!({ "flag": false }), false),
        (vec![("deeper", "x")], json!({ "deep": { "er": "x" } }), true),
        (vec![], json!({ "deep": { "er": "x" } }), false),
        (vec![], json!({ "deep": 7 }), true),
        // A header that no annotation asks for is nobody's business.
        (vec![("other", "x")], json!({}), true),
    ];
    check(&wanted(), table);
}

fn check(wanted: &ParamHeaders, table: Vec<Row<'_>>) {
    for (list, arguments, fine) in table {
        let mut headers = HeaderMap::new();
        for (name, value) in &list {
            let name: http::HeaderName = format!("mcp-param-{name}").parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        let checked = wanted.check(&headers, Some(&raw(&arguments.to_string())));
        assert_eq!(checked.is_ok(), fine, "{list:?} {arguments}");
        if let Err(error) = checked {
            assert_eq!(error.code, -32020);
        }
    }
}
