//! The schema of a form: flat, and in the words of a revision.

use serde_json::{Map, Value, json};

use crate::revision::Revision;

/// The schema as the revision has it, or what is wrong with it.
pub(super) fn form_of(schema: Option<&Value>, revision: Revision) -> Result<Value, String> {
    let schema = schema.and_then(Value::as_object).ok_or("it needs a `requestedSchema`")?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("the type of its schema must be `object`".into());
    }
    let none = Map::new();
    let properties = match schema.get("properties") {
        None => &none,
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err("the `properties` of its schema must be an object".into()),
    };
    let mut form = Map::new();
    if let Some(dialect) = schema.get("$schema").filter(|dialect| dialect.is_string())
        && revision.has_url_elicitation()
    {
        form.insert("$schema".into(), dialect.clone());
    }
    form.insert("type".into(), json!("object"));
    let mut written = Map::new();
    for (name, property) in properties {
        let field = property.as_object().ok_or_else(|| format!("the schema of `{name}` must be an object"))?;
        written.insert(name.clone(), field_of(field, revision).ok_or_else(|| not_flat(name))?);
    }
    form.insert("properties".into(), Value::Object(written));
    if let Some(required) = schema.get("required").and_then(Value::as_array).filter(|required| required.iter().all(Value::is_string)) {
        form.insert("required".into(), json!(required));
    }
    Ok(Value::Object(form))
}

fn not_flat(name: &str) -> String {
    format!("`{name}` must be a string, a number, an integer, a boolean, or an array of choices")
}

/// One field; none if no form has such a field.
fn field_of(field: &Map<String, Value>, revision: Revision) -> Option<Value> {
    let kind = field.get("type").and_then(Value::as_str)?;
    match kind {
        "string" | "number" | "integer" | "boolean" => {}
        "array" if choices(field).is_some() => {}
        _ => return None,
    }
    if revision.has_rich_forms() {
        return Some(Value::Object(field.clone()));
    }
    let mut old = field.clone();
    if kind != "boolean" {
        old.remove("default");
    }
    if kind == "string"
        && let Some(titled) = old.remove("oneOf")
    {
        let (values, titles) = titled_choices(&titled)?;
        old.insert("enum".into(), json!(values));
        old.insert("enumNames".into(), json!(titles));
    }
    if kind == "array" {
        // Several choices in one field came later: here they are typed, separated by commas.
        let list = choices(field)?.join(", ");
        let about = field.get("description").or(field.get("title")).and_then(Value::as_str).unwrap_or("Choose any");
        old.retain(|name, _| name == "title");
        old.insert("type".into(), json!("string"));
        old.insert("description".into(), json!(format!("{about} (separated by commas: {list})")));
    }
    Some(Value::Object(old))
}

/// The values and the titles of `[{const, title}, …]`.
fn titled_choices(titled: &Value) -> Option<(Vec<&str>, Vec<&str>)> {
    titled
        .as_array()?
        .iter()
        .map(|choice| {
            let value = choice.get("const")?.as_str()?;
            Some((value, choice.get("title").and_then(Value::as_str).unwrap_or(value)))
        })
        .collect()
}

/// What an array of choices may hold.
pub(super) fn choices(field: &Map<String, Value>) -> Option<Vec<&str>> {
    let items = field.get("items")?;
    match items.get("enum") {
        Some(values) => values.as_array()?.iter().map(Value::as_str).collect(),
        None => titled_choices(items.get("anyOf").or(items.get("oneOf"))?).map(|(values, _)| values),
    }
}

/// The one value of a choice that a string field may have; none if it is free text.
pub(super) fn single_choices(field: &Map<String, Value>) -> Option<Vec<&str>> {
    match field.get("enum") {
        Some(values) => values.as_array()?.iter().map(Value::as_str).collect(),
        None => titled_choices(field.get("oneOf")?).map(|(values, _)| values),
    }
}
