//! What counts as an answer to a question.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::Question;
use super::form::{choices, single_choices};
use crate::json::{Json, to_raw};

/// The shape that the answer to a question must have.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// An `ElicitResult`; with the schema of the form, its content must fit that.
    Form(Option<Value>),
    /// An `ElicitResult` without content.
    Url,
    /// A `CreateMessageResult`.
    Sample,
    /// A `ListRootsResult`.
    Roots,
}

impl Expected {
    /// What the question wants.
    pub fn of(question: &Question) -> Expected {
        match question {
            Question::Elicit(params) => {
                let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
                match params.get("mode").and_then(Value::as_str) {
                    Some("url") => Expected::Url,
                    Some(_) | None => Expected::Form(params.get("requestedSchema").cloned()),
                }
            }
            Question::Sample(_) => Expected::Sample,
            Question::Roots => Expected::Roots,
        }
    }

    /// A word for the kind.
    pub fn as_str(&self) -> &'static str {
        match self {
            Expected::Form(_) => "form",
            Expected::Url => "url",
            Expected::Sample => "sample",
            Expected::Roots => "roots",
        }
    }

    /// The kind of that word; a form without its schema.
    pub fn parse(word: &str) -> Option<Expected> {
        match word {
            "form" => Some(Expected::Form(None)),
            "url" => Some(Expected::Url),
            "sample" => Some(Expected::Sample),
            "roots" => Some(Expected::Roots),
            _ => None,
        }
    }

    /// The answer as a guest gets it; none if it does not fit the question, which is then still open.
    pub fn accept(&self, answer: &RawValue) -> Option<Json> {
        let mut value: Value = serde_json::from_str(answer.get()).ok()?;
        let members = value.as_object_mut()?;
        let sound = match self {
            Expected::Form(schema) => is_elicited(members) && fits(members, schema.as_ref()),
            Expected::Url => is_elicited(members),
            Expected::Sample => is_sampled(members),
            Expected::Roots => is_roots(members),
        };
        sound.then(|| to_raw(&value))
    }
}

/// An answer to a question that is not known (any more): it must have the shape of one of the kinds.
pub fn accept_unasked(answer: &RawValue) -> Option<Json> {
    let kinds = [Expected::Form(None), Expected::Sample, Expected::Roots];
    kinds.iter().find_map(|kind| kind.accept(answer))
}

fn is_elicited(answer: &Map<String, Value>) -> bool {
    let known = matches!(answer.get("action").and_then(Value::as_str), Some("accept" | "decline" | "cancel"));
    known && answer.get("content").is_none_or(Value::is_object)
}

fn is_sampled(answer: &Map<String, Value>) -> bool {
    let role = matches!(answer.get("role").and_then(Value::as_str), Some("user" | "assistant"));
    let is_block = |block: &Value| block.get("type").is_some_and(Value::is_string);
    let content = match answer.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().all(is_block),
        Some(block) => is_block(block),
        None => false,
    };
    role && content && answer.get("model").is_some_and(Value::is_string)
}

fn is_roots(answer: &Map<String, Value>) -> bool {
    let is_root = |root: &Value| root.get("uri").is_some_and(Value::is_string);
    answer.get("roots").and_then(Value::as_array).is_some_and(|roots| roots.iter().all(is_root))
}

/// Whether the content of an accepted form fits its schema, as far as forms go: what is required, types and choices.
/// Choices that an older client could only type are taken apart.
fn fits(answer: &mut Map<String, Value>, schema: Option<&Value>) -> bool {
    if answer.get("action").and_then(Value::as_str) != Some("accept") {
        return true;
    }
    let content = answer.entry("content").or_insert_with(|| json!({})).as_object_mut();
    let Some(content) = content else { return false };
    if !content.values().all(is_form_value) {
        return false;
    }
    let Some(schema) = schema else { return true };
    let required = schema.get("required").and_then(Value::as_array);
    let mut required = required.into_iter().flatten().filter_map(Value::as_str);
    if !required.all(|name| content.contains_key(name)) {
        return false;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().all(|(name, field)| {
        let (Some(value), Some(field)) = (content.get_mut(name), field.as_object()) else {
            return true;
        };
        field_fits(value, field)
    })
}

fn is_form_value(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
        Value::Array(items) => items.iter().all(Value::is_string),
        Value::Null | Value::Object(_) => false,
    }
}

fn field_fits(value: &mut Value, field: &Map<String, Value>) -> bool {
    match field.get("type").and_then(Value::as_str) {
        Some("string") => value.as_str().is_some_and(|text| single_choices(field).is_none_or(|choices| choices.contains(&text))),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => value.as_f64().is_some_and(|number| number.is_finite() && number.fract() == 0.0),
        Some("array") => {
            if let Some(typed) = value.as_str() {
                let items = typed.split(',').map(str::trim);
                *value = items.filter(|item| !item.is_empty()).collect();
            }
            let Some(choices) = choices(field) else {
                return value.is_array();
            };
            let known = |item: &Value| item.as_str().is_some_and(|item| choices.contains(&item));
            value.as_array().is_some_and(|items| items.iter().all(known))
        }
        Some(_) | None => true,
    }
}
