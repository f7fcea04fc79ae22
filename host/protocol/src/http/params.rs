//! `Mcp-Param-*`: the headers that a tool's input schema wants its arguments repeated in.

use http::{HeaderMap, HeaderName};
use serde_json::Value;
use serde_json::value::RawValue;

use super::headers::{decode, mismatch};
use super::single;
use crate::error::RpcError;
use crate::message::{entries, text};

const ANNOTATION: &str = "x-mcp-header";
const PREFIX: &str = "mcp-param-";
const NAME_BYTES_MAX: usize = 128;
const DEPTH_MAX: usize = 64;
/// The largest integer that every client can say exactly.
const SAFE_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// Keywords whose value is one schema, below which no annotation may stand.
const SCHEMA_KEYWORDS: [&str; 12] = [
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];
/// Keywords whose value is a list of schemas.
const LIST_KEYWORDS: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
/// Keywords whose value is an object of schemas, `properties` apart.
const MAP_KEYWORDS: [&str; 4] = ["patternProperties", "dependentSchemas", "$defs", "definitions"];

/// The headers of one tool, taken from its input schema once.
#[derive(Clone, Debug, Default)]
pub struct ParamHeaders(Vec<ParamHeader>);

#[derive(Clone, Debug)]
struct ParamHeader {
    header: HeaderName,
    /// The property names that lead to the argument.
    path: Vec<String>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    Integer,
    Boolean,
}

impl ParamHeaders {
    /// Reads the annotations of an input schema. An error says why the annotation, and so the tool, is invalid.
    pub fn of_schema(schema: &RawValue) -> Result<ParamHeaders, String> {
        if !schema.get().contains(ANNOTATION) {
            return Ok(ParamHeaders::default());
        }
        let schema: Value = serde_json::from_str(schema.get()).map_err(|error| error.to_string())?;
        let mut found = ParamHeaders::default();
        if schema.get(ANNOTATION).is_some() {
            return Err(format!("{ANNOTATION} stands at the root of the schema"));
        }
        found.collect(&schema, &mut Vec::new())?;
        Ok(found)
    }

    /// Whether the tool wants no headers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks the headers of a call against its arguments: HTTP 400 on an error.
    pub fn check(&self, headers: &HeaderMap, arguments: Option<&RawValue>) -> Result<(), RpcError> {
        for wanted in &self.0 {
            let header = single(headers, &wanted.header).map_err(|problem| mismatch(&wanted.header, problem))?;
            let argument = arguments.and_then(|arguments| at(arguments, &wanted.path));
            let problem = match (header, argument.filter(|argument| argument.get() != "null")) {
                (None, None) => continue,
                (None, Some(_)) => "is missing",
                (Some(_), None) => "has no counterpart in the body",
                (Some(header), Some(argument)) => match decode(header) {
                    None => "is not valid Base64",
                    Some(header) if wanted.kind.matches(&header, argument) => continue,
                    Some(_) => "does not match the body",
                },
            };
            return Err(mismatch(&wanted.header, problem));
        }
        Ok(())
    }

    /// Walks the properties that are reachable from the root by `properties` alone.
    fn collect(&mut self, schema: &Value, path: &mut Vec<String>) -> Result<(), String> {
        if path.len() > DEPTH_MAX {
            return Err(format!("the schema nests deeper than {DEPTH_MAX} properties"));
        }
        refuse_strays(schema)?;
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Ok(());
        };
        for (name, property) in properties {
            path.push(name.clone());
            if let Some(annotation) = property.get(ANNOTATION) {
                self.add(annotation, property, path)?;
            }
            self.collect(property, path)?;
            path.pop();
        }
        Ok(())
    }

    fn add(&mut self, annotation: &Value, property: &Value, path: &[String]) -> Result<(), String> {
        let shown = path.join("/");
        let name = annotation.as_str().filter(|name| (1..=NAME_BYTES_MAX).contains(&name.len()));
        let header = name.and_then(|name| format!("{PREFIX}{name}").parse::<HeaderName>().ok());
        let header = header.ok_or_else(|| format!("{ANNOTATION} of {shown} is no header name"))?;
        let kind = match property.get("type").and_then(Value::as_str) {
            Some("string") => Kind::Text,
            Some("integer") => Kind::Integer,
            Some("boolean") => Kind::Boolean,
            _ => {
                return Err(format!("{ANNOTATION} of {shown} needs the type string, integer or boolean"));
            }
        };
        if self.0.iter().any(|known| known.header == header) {
            return Err(format!("{ANNOTATION} of {shown} names a header that another property has"));
        }
        self.0.push(ParamHeader { header, path: path.to_vec(), kind });
        Ok(())
    }
}

impl Kind {
    fn matches(self, header: &str, argument: &RawValue) -> bool {
        match self {
            // An argument of the wrong type is refused by the schema, with a better message.
            Kind::Text => text(argument).is_none_or(|argument| argument == header),
            Kind::Boolean => header == argument.get() || !matches!(argument.get(), "true" | "false"),
            Kind::Integer => match (number(header), number(argument.get())) {
                (Some(header), Some(argument)) => header == argument,
                (None, Some(_)) => false,
                // Beyond the safe range there is no number to compare, but there is a text.
                (_, None) => !is_numeric(argument) || header == argument.get(),
            },
        }
    }
}

/// A number that compares exactly; none for what is no JSON number or beyond the safe range.
fn number(text: &str) -> Option<f64> {
    let value: f64 = serde_json::from_str(text).ok()?;
    (value.abs() <= SAFE_INTEGER_MAX).then_some(value)
}

fn is_numeric(value: &RawValue) -> bool {
    value.get().starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// The value at a path of property names.
fn at<'a>(arguments: &'a RawValue, path: &[String]) -> Option<&'a RawValue> {
    path.iter().try_fold(arguments, |value, name| entries(value)?.into_iter().rfind(|(known, _)| known == name).map(|(_, value)| value))
}

/// Refuses annotations in places that no chain of `properties` leads to.
fn refuse_strays(schema: &Value) -> Result<(), String> {
    let Some(members) = schema.as_object() else {
        return Ok(());
    };
    for (keyword, value) in members {
        let keyword = keyword.as_str();
        let below: Vec<&Value> = match value {
            Value::Array(schemas) if LIST_KEYWORDS.contains(&keyword) => schemas.iter().collect(),
            Value::Object(schemas) if MAP_KEYWORDS.contains(&keyword) => schemas.values().collect(),
            Value::Object(_) if SCHEMA_KEYWORDS.contains(&keyword) => vec![value],
            _ => continue,
        };
        if below.into_iter().any(|schema| has_annotation(schema, DEPTH_MAX)) {
            return Err(format!("{ANNOTATION} stands below {keyword}"));
        }
    }
    Ok(())
}

/// Whether the schema, or one below it, has the annotation. Values that are no schemas (`default`, `const`) do not
/// count.
fn has_annotation(schema: &Value, depth: usize) -> bool {
    let (Some(members), Some(depth)) = (schema.as_object(), depth.checked_sub(1)) else {
        return false;
    };
    members.iter().any(|(keyword, value)| {
        let keyword = keyword.as_str();
        match value {
            _ if keyword == ANNOTATION => true,
            Value::Array(schemas) if LIST_KEYWORDS.contains(&keyword) => schemas.iter().any(|schema| has_annotation(schema, depth)),
            Value::Object(schemas) if keyword == "properties" || MAP_KEYWORDS.contains(&keyword) => {
                schemas.values().any(|schema| has_annotation(schema, depth))
            }
            Value::Object(_) if SCHEMA_KEYWORDS.contains(&keyword) => has_annotation(value, depth),
            _ => false,
        }
    })
}
