//! Counts the steps of a validation, so that no schema and no value can make one endless.
//!
//! Only a reference can make work multiply: without one, each part of a schema is tried once on each value at its place,
//! and [`super::bounds`] knows how much that is. With references, `anyOf` of twice the same schema, thirty times over, is a
//! kilobyte of schema and a thousand million steps; and a chain of them as deep as the schema is long uses up the stack. So
//! the validator's copy of a schema has a gate before each reference: `{"$ref": X}` becomes `{"if": GATE, "then":
//! {"$ref": X}, "else": false}`. The gate is a keyword of ours that takes what lies behind it off the budget of the
//! validation, and lets nothing pass any more when that is spent, or when the stack is. What is left then is short, since
//! all gates are shut; the verdict is void, and the caller is told so. This counts steps and not time: a call that passes
//! today passes tomorrow, however busy the machine is.

use std::cell::Cell;

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value, json};

use super::bounds::{Place, REFERENCES, Size, steps};

/// The gate's keyword, which no author would write.
pub(super) const GATE: &str = "guesthouse:gate";
/// How much of the stack a validation may use, which leaves room on a thread with the usual 2 MiB.
const STACK_BYTES_MAX: usize = 512 << 10;

/// The budget of the validation that runs on this thread.
#[derive(Clone, Copy)]
struct Meter {
    left: u64,
    /// Where the stack was when it began.
    stack: usize,
    spent: bool,
}

thread_local! {
    static METER: Cell<Option<Meter>> = const { Cell::new(None) };
}

/// A gate, with the steps that lie behind it for each value.
struct Gate {
    steps: u64,
}

/// Runs a validation that may take so many steps; `None` if that was not enough.
pub(super) fn metered<T>(budget: u64, run: impl FnOnce() -> T) -> Option<T> {
    METER.set(Some(Meter { left: budget, stack: stack_mark(), spent: false }));
    let verdict = run();
    let meter = METER.take();
    meter.is_some_and(|meter| !meter.spent).then_some(verdict)
}

impl Gate {
    fn passes(&self, value: &Value) -> bool {
        let Some(mut meter) = METER.get() else { return true };
        if !meter.spent {
            let cost = Size::of(value, meter.left).steps().saturating_mul(self.steps);
            meter.spent = cost > meter.left || stack_mark().abs_diff(meter.stack) > STACK_BYTES_MAX;
            meter.left = meter.left.saturating_sub(cost);
            METER.set(Some(meter));
        }
        !meter.spent
    }
}

impl<'i> Keyword<'i> for Gate {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.passes(instance) { Ok(()) } else { Err(ValidationError::custom("the budget is spent")) }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.passes(instance)
    }
}

/// Makes the keyword for the validator.
pub(super) fn gate<'a>(
    _parent: &'a Map<String, Value>,
    value: &'a Value,
    _location: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    Ok(Box::new(Gate { steps: value.as_u64().unwrap_or(u64::MAX) }))
}

/// The schema with a gate before each reference; `None` if it has no reference, and so needs none.
pub(super) fn gated(schema: &Value, siblings_count: bool) -> Option<Value> {
    let mut copy = schema.clone();
    let mut gates = Gates { schema, total: steps(schema), siblings_count, found: false };
    gates.visit(&mut copy, Place::Schema);
    gates.found.then_some(copy)
}

struct Gates<'s> {
    schema: &'s Value,
    total: u64,
    /// Whether what stands beside a `$ref` counts; draft-07 ignores it.
    siblings_count: bool,
    found: bool,
}

impl Gates<'_> {
    fn visit(&mut self, value: &mut Value, place: Place) {
        match value {
            Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    self.visit(member, place.below(name));
                }
                if place != Place::Data {
                    REFERENCES.iter().for_each(|keyword| self.move_behind_gate(members, keyword));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.visit(item, place)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn move_behind_gate(&mut self, members: &mut Map<String, Value>, keyword: &str) {
        let Some(target) = members.get(keyword).and_then(Value::as_str).map(str::to_owned) else { return };
        self.found = true;
        if !self.siblings_count && keyword == "$ref" {
            members.retain(|name, _| matches!(name.as_str(), "$ref" | "$schema" | "definitions" | "$defs"));
        }
        // The end of the list: pointers to what is in it stay true. Were it no list, the schema would not compile anyway.
        let list = members.entry("allOf").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(json!({ "if": { GATE: self.steps_of(&target) }, "then": { keyword: target }, "else": false }));
            members.shift_remove(keyword);
        }
    }

    /// The steps behind a reference, where it is a plain pointer; else those of the whole schema.
    fn steps_of(&self, target: &str) -> u64 {
        let part = target.strip_prefix('#').and_then(|pointer| self.schema.pointer(pointer));
        part.map_or(self.total, steps).max(1)
    }
}

/// Where the stack is now.
#[inline(never)]
fn stack_mark() -> usize {
    let mark = 0_u8;
    std::ptr::from_ref(&mark).addr()
}
