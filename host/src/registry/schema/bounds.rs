//! What a schema may be at most, and how much work it stands for; all of it is known before anything is compiled.

use regex::RegexBuilder;
use serde_json::{Map, Value};

/// Deepest nesting of a schema.
const DEPTH_MAX: usize = 64;
/// Most objects and arrays in a schema, which bounds its subschemas.
const NODES_MAX: usize = 10_000;
/// Most compositions within each other (`allOf`, `anyOf`, `oneOf`, `not`, `if`, `then`, `else`).
const COMPOSITIONS_MAX: usize = 16;
/// Most bytes of a compiled `pattern`.
pub(super) const PATTERN_BYTES_MAX: usize = 1 << 20;

/// How much a character costs that a pattern reads, by the size of the compiled pattern. A small one becomes a table; the
/// states of a large one are followed side by side.
const PATTERN_STEPS: [(usize, u64); 3] = [(4 << 10, 4), (16 << 10, 64), (64 << 10, 512)];
const PATTERN_STEPS_MAX: u64 = 8_192;
/// So many characters cost as much as a value.
const TEXT_BYTES_PER_STEP: u64 = 64;

/// Keywords whose value is data, never a schema.
const DATA: [&str; 4] = ["enum", "const", "default", "examples"];
/// Keywords whose value has schemas by names that are no keywords.
const NAMED: [&str; 6] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
const COMPOSITIONS: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords that lead to another schema.
pub(super) const REFERENCES: [&str; 2] = ["$ref", "$dynamicRef"];

/// What stands at a place of a schema document.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A schema.
    Schema,
    /// An object of schemas by name.
    Named,
    /// A value that is compared or shown.
    Data,
}

impl Place {
    /// What stands below this place, under that member.
    pub(super) fn below(self, name: &str) -> Place {
        match self {
            Place::Data => Place::Data,
            Place::Named => Place::Schema,
            Place::Schema if DATA.contains(&name) => Place::Data,
            Place::Schema if NAMED.contains(&name) => Place::Named,
            Place::Schema => Place::Schema,
        }
    }
}

/// The work that a schema stands for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    /// Steps for every value at most, were all of the schema tried on it.
    pub(super) steps: u64,
    /// Steps for every character at most.
    pub(super) text_steps: u64,
}

/// Measures a schema, and refuses one that is beyond the bounds.
pub(super) fn measure(schema: &Value) -> Result<Work, String> {
    let mut measure = Measure::default();
    measure.visit(schema, Place::Schema, 1, 0)?;
    Ok(measure.work)
}

/// The steps that the part of a schema below a value stands for.
pub(super) fn steps(part: &Value) -> u64 {
    let mut measure = Measure { unbounded: true, ..Measure::default() };
    // Nothing is refused here, since all of the schema was measured before.
    let _ = measure.visit(part, Place::Schema, 1, 0);
    measure.work.steps
}

#[derive(Default)]
struct Measure {
    nodes: usize,
    work: Work,
    unbounded: bool,
}

impl Measure {
    fn visit(&mut self, value: &Value, place: Place, depth: usize, compositions: usize) -> Result<(), String> {
        self.work.steps = self.work.steps.saturating_add(1);
        if matches!(value, Value::Object(_) | Value::Array(_)) {
            self.nodes = self.nodes.saturating_add(1);
            self.check(depth, compositions)?;
        }
        match value {
            Value::Object(members) => {
                self.references(members, place)?;
                for (name, member) in members {
                    let composes = place == Place::Schema && COMPOSITIONS.contains(&name.as_str());
                    self.patterns(name, member, place);
                    let compositions = compositions.saturating_add(usize::from(composes));
                    self.visit(member, place.below(name), depth.saturating_add(1), compositions)?;
                }
                Ok(())
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(item, place, depth.saturating_add(1), compositions)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn check(&self, depth: usize, compositions: usize) -> Result<(), String> {
        if self.unbounded {
            return Ok(());
        }
        if depth > DEPTH_MAX {
            return Err(format!("nests deeper than {DEPTH_MAX} levels"));
        }
        if self.nodes > NODES_MAX {
            return Err(format!("has more than {NODES_MAX} objects and arrays"));
        }
        if compositions > COMPOSITIONS_MAX {
            return Err(format!("nests more than {COMPOSITIONS_MAX} compositions (`allOf`, `anyOf`, `oneOf`, `not`, `if`)"));
        }
        Ok(())
    }

    /// A reference that lies in data is no reference, and yet another could point to it and make it one.
    fn references(&self, members: &Map<String, Value>, place: Place) -> Result<(), String> {
        let refers = REFERENCES.iter().any(|name| members.get(*name).is_some_and(Value::is_string));
        if place == Place::Data && refers {
            return Err("has a `$ref` inside of `enum`, `const`, `default` or `examples`".into());
        }
        Ok(())
    }

    fn patterns(&mut self, name: &str, member: &Value, place: Place) {
        if place != Place::Schema {
            return;
        }
        let steps = match (name, member) {
            ("pattern", Value::String(pattern)) => pattern_steps(pattern),
            ("patternProperties", Value::Object(patterns)) => {
                patterns.keys().map(|pattern| pattern_steps(pattern)).fold(0, u64::saturating_add)
            }
            _ => return,
        };
        self.work.text_steps = self.work.text_steps.saturating_add(steps);
        self.work.steps = self.work.steps.saturating_add(steps);
    }
}

/// What one character costs at most. Patterns of ECMA 262 that only the validator's own translation can read count in full.
fn pattern_steps(pattern: &str) -> u64 {
    let fits = |bytes: usize| RegexBuilder::new(pattern).size_limit(bytes).build().is_ok();
    PATTERN_STEPS.iter().find(|(bytes, _)| fits(*bytes)).map_or(PATTERN_STEPS_MAX, |(_, steps)| *steps)
}

/// How large a value is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    /// Values in it, itself counted.
    values: u64,
    /// Bytes of all strings and member names.
    pub(super) text_bytes: u64,
}

impl Size {
    /// Of a value; what is larger than `steps_max` is not looked at to its end.
    pub(super) fn of(value: &Value, steps_max: u64) -> Size {
        let mut size = Size::default();
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            size.values = size.values.saturating_add(1);
            match value {
                Value::Object(members) => {
                    for (name, member) in members {
                        size.add_text(name);
                        open.push(member);
                    }
                }
                Value::Array(items) => open.extend(items),
                Value::String(text) => size.add_text(text),
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
            if size.steps() > steps_max {
                break;
            }
        }
        size
    }

    /// The steps that it takes to look at all of it.
    pub(super) fn steps(self) -> u64 {
        self.values.saturating_add(self.text_bytes / TEXT_BYTES_PER_STEP)
    }

    fn add_text(&mut self, text: &str) {
        self.text_bytes = self.text_bytes.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
    }
}
