//! Tables of schemas and values: what is refused, what fits, and what must not take long.

use super::*;
use serde_json::{Map, json};
use std::time::{Duration, Instant};

fn arguments(schema: &Value) -> Result<Schema, String> {
    Schema::of_arguments(&serde_json::value::to_raw_value(schema).unwrap(), 10_000)
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_with_the_reason() {
    let deep = (0..70).fold(json!({}), |inner, _| json!({ "items": inner }));
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
        (
            json!({ "type": "object", "allOf": [(0..16).fold(json!({}), |inner, _| json!({ "anyOf": [inner] }))] }),
            "more than 16 compositions",
        ),
        (json!({ "type": "object", "default": { "x": [{ "$ref": "#/default" }] } }), "inside of"),
        (json!({ "type": "object", "properties": { "a": { "$ref": "file:///etc/passwd" } } }), "not a valid JSON Schema"),
        (json!({ "type": "object", "properties": { "a": { "$dynamicRef": "https://example.com/x#y" } } }), "not a valid JSON Schema"),
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

/// Twice the same, `len` times over, by references.
fn doubling(keyword: &str, len: usize, leaf: Value) -> Value {
    let next = |at: usize| json!({ "$ref": format!("#/$defs/s{at}") });
    let mut defs: Map<String, Value> = (0..len).map(|at| (format!("s{at}"), json!({ keyword: [next(at + 1), next(at + 1)] }))).collect();
    defs.insert(format!("s{len}"), leaf);
    json!({ "type": "object", "$defs": defs, "properties": { "a": next(0) } })
}

/// One thing after the other, `len` times, each below `wrap`.
fn chain(len: usize, wrap: impl Fn(Value) -> Value) -> Value {
    let next = |at: usize| json!({ "$ref": format!("#/$defs/s{at}") });
    let mut defs: Map<String, Value> = (0..len).map(|at| (format!("s{at}"), wrap(next(at + 1)))).collect();
    defs.insert(format!("s{len}"), json!({ "$ref": "#" }));
    json!({ "type": "object", "$defs": defs, "additionalProperties": next(0) })
}

fn nested(depth: usize, inner: Value) -> Value {
    (0..depth).fold(inner, |value, _| json!({ "a": value }))
}

fn output(schema: &Value) -> Result<Schema, String> {
    Schema::of_output(&serde_json::value::to_raw_value(schema).unwrap(), 4 << 20)
}

/// Far more than any of these takes, and far less than what they would take without bounds.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn work_that_multiplies_ends_and_is_no_verdict() {
    let twice = json!({ "properties": { "a": { "$ref": "#" } } });
    let alternatives = json!({ "type": "object", "anyOf": [twice, twice], "unevaluatedProperties": false });
    let dynamic = json!({ "properties": { "a": { "$dynamicRef": "#n" } } });
    let dynamic = json!({ "type": "object", "$dynamicAnchor": "n", "oneOf": [dynamic, dynamic] });
    for (name, schema, value) in [
        ("anyOf", doubling("anyOf", 40, json!({ "type": "string" })), json!({ "a": {} })),
        ("oneOf", doubling("oneOf", 40, json!({ "type": "number" })), json!({ "a": 1 })),
        ("allOf", doubling("allOf", 40, json!({ "type": "number" })), json!({ "a": 1 })),
        ("alternatives", alternatives, nested(60, json!({ "b": 1 }))),
        ("dynamic", dynamic, nested(60, json!({ "b": 1 }))),
    ] {
        let schema = output(&schema).unwrap();
        let begun = Instant::now();
        assert!(schema.check(&value).is_err(), "{name}");
        assert!(begun.elapsed() < PATIENCE, "{name} took {:?}", begun.elapsed());
        assert!(!schema.is_quick(&value));
    }
}

#[test]
fn deep_references_do_not_use_up_the_stack() {
    for (name, schema) in [
        ("plain", chain(9_000, |next| next)),
        ("allOf", chain(3_000, |next| json!({ "allOf": [next] }))),
        ("not", chain(3_000, |next| json!({ "not": next }))),
        ("draft-07", {
            let mut schema = chain(3_000, |next| next);
            schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
            schema
        }),
    ] {
        let schema = output(&schema).unwrap();
        let verdict = schema.check(&nested(100, json!(1)));
        // Were there no end to it, the process would end here.
        assert!(verdict.is_err(), "{name}");
    }
}

#[test]
fn a_pair_that_is_too_large_is_refused_at_once() {
    let wide: Map<String, Value> = (0..9_000).map(|at| (format!("p{at}"), json!({}))).collect();
    let patterns: Map<String, Value> = (0..500).map(|at| (format!("^[01]*1[01]{{{}}}$", at + 500), json!({}))).collect();
    for (name, schema, value) in [
        ("properties", json!({ "items": { "properties": wide } }), (0..100_000).map(|_| json!({})).collect::<Value>()),
        ("enum", json!({ "items": { "enum": (0..100_000).collect::<Vec<_>>() } }), (0..100_000).map(|_| json!("")).collect()),
        ("patterns", json!({ "patternProperties": patterns }), (0..1_000).map(|at| (format!("{at:0500b}"), json!(1))).collect()),
        ("pattern", json!({ "pattern": "^[01]*1[01]{900}$" }), json!("01".repeat(1 << 20))),
    ] {
        let schema = output(&schema).unwrap();
        let begun = Instant::now();
        let refused = schema.check(&value).unwrap_err();
        assert!(refused.message.contains("too large"), "{name}: {refused:?}");
        assert!(begun.elapsed() < PATIENCE / 4, "{name} took {:?}", begun.elapsed());
    }
}

#[test]
fn what_people_write_is_within_the_bounds() {
    let tree = json!({
        "type": "object",
        "$defs": {
            "node": { "type": "object", "properties": { "name": { "type": "string" }, "children": { "type": "array", "items": { "$ref": "#/$defs/node" } } }, "required": ["name"], "unevaluatedProperties": false },
            "expression": { "$anchor": "e", "oneOf": [
                { "type": "number" },
                { "type": "object", "properties": { "op": { "const": "add" }, "args": { "type": "array", "items": { "$ref": "#e" } } }, "required": ["op", "args"] },
                { "type": "object", "properties": { "op": { "const": "mul" }, "args": { "type": "array", "items": { "$ref": "#e" } } }, "required": ["op", "args"] },
            ] },
        },
        "properties": { "tree": { "$ref": "#/$defs/node" }, "expression": { "$ref": "#e" }, "code": { "type": "string", "pattern": "^[A-Za-z0-9+/=]*$" }, "list": { "items": { "type": "integer" } } },
    });
    let schema = arguments(&tree).unwrap();
    let node = (0..15).fold(json!({ "name": "leaf" }), |inner, _| json!({ "name": "n", "children": [inner, { "name": "side" }] }));
    let wide = json!({ "name": "root", "children": vec![json!({ "name": "leaf" }); 20_000] });
    let expression = (0..12).fold(json!(1), |inner, at| json!({ "op": if at % 2 == 0 { "add" } else { "mul" }, "args": [inner, 2] }));
    for value in [
        json!({ "tree": node }),
        json!({ "tree": wide }),
        json!({ "expression": expression }),
        json!({ "code": "QUJD".repeat(1 << 20) }),
        json!({ "list": (0..1_000_000).collect::<Vec<_>>() }),
    ] {
        assert_eq!(schema.check(&value), Ok(()), "{}", value.to_string().get(..80).unwrap_or_default());
    }
    let wrong = json!({ "tree": { "name": "root", "children": [{ "name": 5 }] } });
    assert_eq!(schema.check(&wrong).unwrap_err().pointer, "/tree/children/0/name");
}

#[test]
fn subschemas_are_counted() {
    let with = |len: usize| output(&json!({ "anyOf": vec![json!({}); len] }));
    assert!(with(9_998).is_ok());
    assert!(with(9_999).unwrap_err().contains("more than 10000"));
}

#[test]
fn references_work_as_before_behind_their_gates() {
    let draft_07 = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "definitions": { "s": { "type": "string" } },
        "properties": { "a": { "$ref": "#/definitions/s", "type": "number" } },
    });
    let pointed = json!({ "type": "object", "allOf": [{ "properties": { "a": { "type": "string" } } }], "$ref": "#/$defs/x", "$defs": { "x": { "properties": { "b": { "$ref": "#/allOf/0/properties/a" } } } } });
    let closed = json!({ "type": "object", "$ref": "#/$defs/x", "$defs": { "x": { "properties": { "a": { "type": "string" } } } }, "unevaluatedProperties": false });
    let embedded = json!({ "type": "object", "properties": { "a": { "$ref": "https://example.com/s" } }, "$defs": { "s": { "$id": "https://example.com/s", "$ref": "#/$defs/t", "$defs": { "t": { "type": "string" } } } } });
    let named = json!({ "type": "object", "properties": { "$ref": { "type": "string" }, "default": { "$ref": "#/properties/$ref" } } });
    for (schema, value, fits) in [
        (&draft_07, json!({ "a": "x" }), true),
        (&draft_07, json!({ "a": 1 }), false),
        (&pointed, json!({ "b": "x" }), true),
        (&pointed, json!({ "b": 1 }), false),
        (&closed, json!({ "a": "x" }), true),
        (&closed, json!({ "a": "x", "b": 1 }), false),
        (&embedded, json!({ "a": "x" }), true),
        (&embedded, json!({ "a": 1 }), false),
        (&named, json!({ "default": "x" }), true),
        (&named, json!({ "default": 1 }), false),
    ] {
        assert_eq!(arguments(schema).unwrap().check(&value).is_ok(), fits, "{schema} {value}");
    }
}
