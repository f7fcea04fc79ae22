//! Arguments and structured content against the schemas of their tool.
//!
//! What is quick, which is nearly all there is, is checked where the call runs. The rest goes to a thread that may block, so
//! that it holds up nobody else's call.

use guesthouse_protocol::Failure;
use guesthouse_protocol::model::CallToolResult;
use serde_json::Value;

use crate::registry::Tool;
use crate::registry::schema::{Mismatch, Schema};

/// What a client gave must fit before the guest runs.
pub(super) async fn check_arguments(tool: &Tool, arguments: &str) -> Result<(), Failure> {
    let wrong = |pointer: String, message: String| Failure::InvalidArguments { pointer, message };
    let value: Value = serde_json::from_str(arguments).map_err(|error| wrong(String::new(), error.to_string()))?;
    check(&tool.input, value).await.map_err(|mismatch| wrong(mismatch.pointer, mismatch.message))
}

/// A result with an output schema must have structured content that fits, unless it is an error
/// (`server/tools`, "Output Schema").
pub(super) async fn check_output(tool: &Tool, result: &CallToolResult) -> Result<(), String> {
    let Some(schema) = tool.output.as_ref().filter(|_| !result.is_error) else { return Ok(()) };
    let Some(structured) = &result.structured_content else {
        return Err("it has an output schema, and the result has no structured content".into());
    };
    let value: Value = serde_json::from_str(structured.get()).map_err(|error| format!("its structured content cannot be read: {error}"))?;
    check(schema, value)
        .await
        .map_err(|mismatch| format!("its structured content fails the output schema at `{}`: {}", mismatch.pointer, mismatch.message))
}

async fn check(schema: &Schema, value: Value) -> Result<(), Mismatch> {
    if schema.is_quick(&value) {
        return schema.check(&value);
    }
    let schema = schema.clone();
    let checked = tokio::task::spawn_blocking(move || schema.check(&value)).await;
    // It neither panics nor is it aborted; were it to, what was not checked does not fit.
    checked.unwrap_or_else(|_| Err(Mismatch { pointer: String::new(), message: "could not be checked".into() }))
}
