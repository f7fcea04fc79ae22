//! Schemas of types, beside the JSON that serde makes of them.

use std::collections::BTreeMap;

use guesthouse::serde_json::{Value, json};
use guesthouse::{Schema, data, schema};

fn of<T: Schema>() -> Value {
    guesthouse::serde_json::from_str(&schema::of::<T>()).unwrap()
}

#[test]
fn scalars_have_the_bounds_of_their_types() {
    assert_eq!(of::<u8>(), json!({ "type": "integer", "minimum": 0, "maximum": 255 }));
    assert_eq!(of::<i32>(), json!({ "type": "integer", "minimum": i32::MIN, "maximum": i32::MAX }));
    assert_eq!(of::<u64>(), json!({ "type": "integer", "minimum": 0 }));
    assert_eq!(of::<f32>(), json!({ "type": "number" }));
    assert_eq!(of::<[bool; 2]>(), json!({ "type": "array", "items": { "type": "boolean" }, "minItems": 2, "maxItems": 2 }));
    assert_eq!(of::<BTreeMap<String, Box<str>>>(), json!({ "type": "object", "additionalProperties": { "type": "string" } }));
    assert_eq!(of::<Option<String>>(), json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }));
}

/// A tree.
#[data]
struct Tree {
    /// Its name.
    #[serde(rename = "theName")]
    #[schema(min_length = 1, pattern = "^\\w+$")]
    name: String,
    children: Vec<Tree>,
    parent: Option<Box<Tree>>,
}

#[test]
fn a_type_within_itself_becomes_a_definition() {
    let reference = json!({ "$ref": "#/$defs/Tree" });
    let members = json!({
        "type": "object",
        "description": "A tree.",
        "properties": {
            "theName": { "type": "string", "description": "Its name.", "minLength": 1, "pattern": "^\\w+$" },
            "children": { "type": "array", "items": reference },
            "parent": reference,
        },
        "required": ["theName", "children"],
    });
    let mut whole = members.clone();
    whole["$defs"] = json!({ "Tree": members });
    assert_eq!(of::<Tree>(), whole);
}

#[data]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Renamed {
    first_name: Option<String>,
    #[serde(default)]
    last_name: String,
    #[serde(skip)]
    _hidden: u8,
}

#[derive(guesthouse::serde::Serialize, Schema)]
#[serde(crate = "guesthouse::serde")]
struct Nullable {
    value: Option<u8>,
}

#[test]
fn absent_values_are_left_out_or_null_as_serde_does_it() {
    let schema = of::<Renamed>();
    assert_eq!(schema["properties"], json!({ "firstName": { "type": "string" }, "lastName": { "type": "string" } }));
    assert_eq!((schema.get("required"), &schema["additionalProperties"]), (None, &json!(false)));
    let written = guesthouse::json::to_text(&Renamed { first_name: None, last_name: "x".into(), _hidden: 1 }).unwrap();
    assert_eq!(written, r#"{"lastName":"x"}"#);
    let value = &of::<Nullable>()["properties"]["value"];
    assert_eq!(value["anyOf"][1], json!({ "type": "null" }));
    assert_eq!(guesthouse::json::to_text(&Nullable { value: None }).unwrap(), r#"{"value":null}"#);
}

#[data]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    /// Round.
    Circle {
        radius: f64,
    },
    FlatLine,
}

#[data]
enum External {
    Nothing,
    One(u8),
    Many { all: Vec<u8> },
}

#[data]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    A(String),
}

#[data]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Text(String),
}

#[data]
struct Meters(f64);

#[test]
fn enums_are_tagged_as_serde_tags_them() {
    assert_eq!(
        of::<Shape>(),
        json!({ "type": "object", "oneOf": [
            { "type": "object", "description": "Round.", "properties": { "kind": { "const": "circle" }, "radius": { "type": "number" } }, "required": ["kind", "radius"] },
            { "type": "object", "properties": { "kind": { "const": "flat_line" } }, "required": ["kind"] },
        ] })
    );
    assert_eq!(
        of::<External>(),
        json!({ "oneOf": [
            { "const": "Nothing" },
            { "type": "object", "properties": { "One": { "type": "integer", "minimum": 0, "maximum": 255 } }, "required": ["One"], "additionalProperties": false },
            { "type": "object", "properties": { "Many": { "type": "object", "properties": { "all": { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 255 } } }, "required": ["all"] } }, "required": ["Many"], "additionalProperties": false },
        ] })
    );
    assert_eq!(of::<Adjacent>()["oneOf"][0]["properties"], json!({ "t": { "const": "A" }, "c": { "type": "string" } }));
    assert_eq!(of::<Untagged>(), json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] }));
    assert_eq!(of::<Meters>(), json!({ "type": "number" }));
    let texts = [
        guesthouse::json::to_text(&[Shape::FlatLine, Shape::Circle { radius: 1.0 }]).unwrap(),
        guesthouse::json::to_text(&[External::Nothing, External::One(1), External::Many { all: vec![] }]).unwrap(),
        guesthouse::json::to_text(&(Adjacent::A("x".into()), Untagged::Number(1), Untagged::Text("x".into()), Meters(1.5))).unwrap(),
    ];
    assert_eq!(
        texts,
        [
            r#"[{"kind":"flat_line"},{"kind":"circle","radius":1.0}]"#,
            r#"["Nothing",{"One":1},{"Many":{"all":[]}}]"#,
            r#"[{"t":"A","c":"x"},1,"x",1.5]"#,
        ]
    );
}
