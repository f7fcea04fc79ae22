//! JSON Schemas of tools: bounded before they are compiled, and compiled once per version.
//!
//! 2020-12 unless the schema declares draft-07 (`basic/index`, "JSON Schema Usage"). References never leave the document.
//! Neither a schema nor a value can hold a call up, nor use up the stack:
//!
//! - Without references, the work is at most the size of the schema times that of the value; a pair that is too large is
//!   refused before any work is done. Patterns run in linear time, and count by what they compile to.
//! - With references, work can multiply, so that it is counted while it is done (`schema/meter.rs`).
//! - `uniqueItems` compares by hashes, and `format` is an annotation, as 2020-12 has it.
//!
//! The validator works on a copy; clients get the text of the schema as the guest wrote it.

mod bounds;
mod meter;

use bounds::{Size, Work};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Most steps of a validation, be schema and value as large as they may. A step is some nanoseconds.
const STEPS_MAX: u64 = 500_000_000;
/// What each validation may take that has references, even of the smallest value.
const STEPS_MIN: u64 = 4_000_000;
/// With references, the budget is so many times what the same schema could take without them.
const STEPS_FACTOR: u64 = 4;
/// Most steps that patterns may take over all text of a value.
const TEXT_STEPS_MAX: u64 = 100_000_000;
/// Up to here, a validation takes about a millisecond.
const QUICK_STEPS_MAX: u64 = 100_000;
/// Longest message about a value that does not fit.
const MESSAGE_CHARS_MAX: usize = 500;

/// A compiled schema. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Schema {
    validator: Arc<Validator>,
    work: Work,
    has_references: bool,
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
        let value = read(text, bytes_max)?;
        if value.get("type").and_then(Value::as_str) != Some("object") {
            return Err("does not have \"type\": \"object\" at its top".into());
        }
        Self::compile(&value)
    }

    /// Compiles the schema of a tool's structured content.
    pub fn of_output(text: &RawValue, bytes_max: usize) -> Result<Self, String> {
        Self::compile(&read(text, bytes_max)?)
    }

    fn compile(schema: &Value) -> Result<Self, String> {
        let work = bounds::measure(schema)?;
        let draft = match schema.get("$schema").and_then(Value::as_str).map(|uri| uri.trim_end_matches('#')) {
            None | Some("https://json-schema.org/draft/2020-12/schema") => Draft::Draft202012,
            Some("http://json-schema.org/draft-07/schema" | "https://json-schema.org/draft-07/schema") => Draft::Draft7,
            Some(other) => return Err(format!("declares the dialect `{other}`; 2020-12 and draft-07 are supported")),
        };
        let gated = meter::gated(schema, draft == Draft::Draft202012);
        let has_references = gated.is_some();
        let built = build(gated.as_ref().unwrap_or(schema), draft);
        // What is wrong is said of the schema as its author wrote it.
        let error = match built {
            Ok(validator) => return Ok(Self { validator: Arc::new(validator), work, has_references }),
            Err(error) => build(schema, draft).err().unwrap_or(error),
        };
        Err(format!("is not a valid JSON Schema: {} (at `{}`)", short(&error.to_string()), error.instance_path()))
    }

    /// Checks a value; the first thing that is wrong is enough.
    pub fn check(&self, value: &Value) -> Result<(), Mismatch> {
        let budget = self.budget(value)?;
        match meter::metered(budget, || self.validator.is_valid(value)) {
            None => return Err(too_large()),
            Some(true) => return Ok(()),
            Some(false) => {}
        }
        // To say what is wrong can take far more than to see that something is: alternatives are not cut short.
        let error = meter::metered(budget, || self.validator.validate(value).err()).flatten();
        Err(error.map_or_else(
            || Mismatch { pointer: String::new(), message: "does not fit the schema".into() },
            |error| Mismatch { pointer: error.instance_path().to_string(), message: short(&error.to_string()) },
        ))
    }

    /// Whether the check of a value is short enough for a thread that has others to serve.
    pub fn is_quick(&self, value: &Value) -> bool {
        let size = Size::of(value, QUICK_STEPS_MAX);
        let steps = self.work.steps.saturating_mul(size.steps()).saturating_add(self.work.text_steps.saturating_mul(size.text_bytes));
        !self.has_references && steps <= QUICK_STEPS_MAX
    }

    /// How many steps the check of this value may take; an error if it could take too many.
    fn budget(&self, value: &Value) -> Result<u64, Mismatch> {
        let size = Size::of(value, STEPS_MAX);
        let steps = self.work.steps.saturating_mul(size.steps());
        if steps > STEPS_MAX || self.work.text_steps.saturating_mul(size.text_bytes) > TEXT_STEPS_MAX {
            return Err(too_large());
        }
        Ok(steps.saturating_mul(STEPS_FACTOR).clamp(STEPS_MIN, STEPS_MAX))
    }
}

fn build(schema: &Value, draft: Draft) -> Result<Validator, ValidationError<'static>> {
    jsonschema::options()
        .with_draft(draft)
        .with_pattern_options(PatternOptions::regex().size_limit(bounds::PATTERN_BYTES_MAX))
        .with_keyword(meter::GATE, meter::gate)
        .should_validate_formats(false)
        .offline()
        .build(schema)
}

fn too_large() -> Mismatch {
    Mismatch { pointer: String::new(), message: "is too large, or nests too deep, to be checked against its schema".into() }
}

/// Parses a schema of bounded length.
fn read(text: &RawValue, bytes_max: usize) -> Result<Value, String> {
    if text.get().len() > bytes_max {
        return Err(format!("is longer than {bytes_max} bytes"));
    }
    let value: Value = serde_json::from_str(text.get()).map_err(|error| format!("cannot be read: {error}"))?;
    if value.is_object() { Ok(value) } else { Err("is not a JSON object".into()) }
}

/// A message quotes the value that is wrong, which may be long.
fn short(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message.into(),
    }
}

#[cfg(test)]
mod tests;
