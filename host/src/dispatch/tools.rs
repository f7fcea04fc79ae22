//! `tools/call`: arguments are validated before the guest runs, structured content after.

use super::questions::Turn;
use super::seat::Seat;
use super::{Scope, bad_output, failed};
use crate::convert;
use crate::guest;
use crate::guest::bindings::{tools, types};
use crate::registry::{Tool, ViewTool};
use guesthouse_protocol::Json;
use guesthouse_protocol::model::{CallToolResult, Reply};
use guesthouse_protocol::{Failure, Method, NotFound, Outcome};
use serde_json::Value;

impl Scope<'_> {
    pub(super) async fn call_tool(&self, mut seat: Seat, name: &str, arguments: Option<Json>) -> Outcome {
        let named = self.view.tool(name).ok_or_else(|| not_found(name))?;
        let arguments: String = arguments.map_or_else(|| "{}".into(), |arguments| Box::<str>::from(arguments).into());
        let turn = self.turn(seat.context_mut(), Method::CallTool, name, || arguments.clone())?;
        let outcome = run(named, &turn, seat.of(self.voice(&named.guest)), arguments).await;
        turn.conclude(outcome)
    }
}

async fn run(named: &ViewTool, turn: &Turn<'_>, caller: guest::Caller, arguments: String) -> Outcome {
    let (name, guest) = (turn.name(), &named.guest);
    let tool = named.tool().ok_or_else(|| not_found(name))?;
    check_arguments(tool, &arguments)?;
    let answer = guest.version.call_tool(caller, tool.listed.name.clone(), arguments).await;
    let outcome = answer.map_err(|failure| match failure {
        guest::Failure::Guest(types::Error::NotFound(_)) => not_found(name),
        other => failed(guest, "tool", name, other),
    })?;
    match outcome {
        tools::ToolOutcome::Complete(result) => {
            let result = convert::tool_result(result).map_err(|bad| bad_output(guest, "tool", name, &bad.to_string()))?;
            check_output(tool, &result).map_err(|problem| bad_output(guest, "tool", name, &problem))?;
            Ok(Reply::Tool(result))
        }
        tools::ToolOutcome::InputRequired(required) => turn.ask(guest, "tool", required),
        tools::ToolOutcome::Task(_) => {
            tracing::error!(guest = %guest.name, "tool `{name}` answered with a task, which is not supported yet");
            Err(bad_output(guest, "tool", name, "a task"))
        }
    }
}

fn not_found(name: &str) -> Failure {
    Failure::NotFound { kind: NotFound::Tool, name: name.into() }
}

fn check_arguments(tool: &Tool, arguments: &str) -> Result<(), Failure> {
    let wrong = |pointer: String, message: String| Failure::InvalidArguments { pointer, message };
    let value: Value = serde_json::from_str(arguments).map_err(|error| wrong(String::new(), error.to_string()))?;
    tool.input.check(&value).map_err(|mismatch| wrong(mismatch.pointer, mismatch.message))
}

/// A result with an output schema must have structured content that fits, unless it is an error
/// (`server/tools`, "Output Schema").
fn check_output(tool: &Tool, result: &CallToolResult) -> Result<(), String> {
    let Some(schema) = tool.output.as_ref().filter(|_| !result.is_error) else { return Ok(()) };
    let Some(structured) = &result.structured_content else {
        return Err("it has an output schema, and the result has no structured content".into());
    };
    let value: Value = serde_json::from_str(structured.get()).map_err(|error| format!("its structured content cannot be read: {error}"))?;
    schema
        .check(&value)
        .map_err(|mismatch| format!("its structured content fails the output schema at `{}`: {}", mismatch.pointer, mismatch.message))
}
