//! Schemas of tools: a schema, and a value on the next line; neither panics, overflows the stack or takes long.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::host::schema::Schema;
use super::split;

const BYTES_MAX: usize = 64 << 10;

/// The first line is a schema, the second a value.
pub fn check(data: &[u8]) {
    let (schema, value) = split(data, b"\n");
    let Ok(schema) = serde_json::from_slice::<&RawValue>(schema) else { return };
    let value: Value = serde_json::from_slice(value).unwrap_or(Value::Null);
    for compiled in [Schema::of_arguments(schema, BYTES_MAX), Schema::of_output(schema, BYTES_MAX)] {
        match compiled {
            Err(problem) => assert!(!problem.is_empty()),
            Ok(compiled) => {
                let verdict = compiled.check(&value);
                if let Err(mismatch) = &verdict {
                    assert!(value.pointer(&mismatch.pointer).is_some(), "{} leads nowhere", mismatch.pointer);
                }
                assert_eq!(compiled.check(&value), verdict, "the verdict changes");
            }
        }
    }
}
