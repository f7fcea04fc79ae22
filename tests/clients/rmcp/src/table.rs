//! What a textkit answers, from `../textkit.json`, and how an answer is compared with it.

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};
use std::path::Path;

/// The members of a listed object that the table speaks of; the others (`_meta`, `icons`, `execution`) are the host's business.
const DESCRIBED: [&str; 10] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "uri", "uriTemplate", "mimeType", "arguments"];
/// Members of listed objects, and the revision that brought them.
const SINCE: [(&str, &str); 3] = [("annotations", "2025-03-26"), ("outputSchema", "2025-06-18"), ("title", "2025-06-18")];

/// The table, as read.
pub struct Table(Value);

impl Table {
    /// Reads the file beside this package.
    pub fn read() -> Result<Self> {
        let text = repository_file("tests/clients/textkit.json")?;
        Ok(Self(serde_json::from_str(&text).context("textkit.json")?))
    }

    /// The rows of one of its lists.
    pub fn rows(&self, list: &str) -> impl Iterator<Item = &Value> {
        self.0[list].as_array().into_iter().flatten()
    }

    /// What a textkit says of itself.
    pub fn server(&self, member: &str) -> &str {
        text(&self.0["server"], member)
    }

    /// A list as a client of that revision sees it, with names under the prefix of every guest in turn.
    pub fn listed(&self, list: &str, revision: &str, prefixes: &[String]) -> Vec<Value> {
        let seen = |prefix: &String, row: &Value| {
            let mut row = described(row);
            for (member, since) in SINCE {
                if revision < since {
                    row.shift_remove(member);
                }
            }
            let name = format!("{prefix}{}", row.get("name").and_then(Value::as_str).unwrap_or_default());
            row.insert("name".to_owned(), name.into());
            Value::Object(row)
        };
        prefixes.iter().flat_map(|prefix| self.rows(list).map(move |row| seen(prefix, row))).collect()
    }
}

/// A file of the repository.
pub fn repository_file(name: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(name);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))
}

/// A member that is a text; empty where there is none.
pub fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

/// The members of a listed object that the table speaks of.
pub fn described(entry: &Value) -> Map<String, Value> {
    let mut picked: Map<String, Value> = entry
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| DESCRIBED.contains(&key.as_str()))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    // `required: false` and its absence mean the same.
    for argument in picked.get_mut("arguments").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(argument) = argument.as_object_mut().filter(|argument| argument.get("required") == Some(&Value::Bool(false))) {
            argument.shift_remove("required");
        }
    }
    picked
}

/// Nothing, or both values where they differ.
pub fn equal(what: &str, got: &Value, expected: &Value) -> Result<()> {
    if got == expected {
        return Ok(());
    }
    bail!("{what} is not as expected\n  got      {got}\n  expected {expected}")
}
