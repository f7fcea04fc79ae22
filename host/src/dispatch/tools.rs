//! `tools/call`: arguments are validated before the guest runs, structured content after.

use super::questions::Turn;
use super::seat::Seat;
use super::tasks::{Answer, Plan};
use super::validate::{check_arguments, check_output};
use super::{Line, Scope, bad_output, failed};
use crate::convert;
use crate::guest;
use crate::guest::bindings::{tools, types};
use crate::registry::{Tool, ViewTool};
use guesthouse_protocol::Json;
use guesthouse_protocol::model::{CallToolResult, Reply};
use guesthouse_protocol::{Failure, Method, NotFound, Outcome};

/// What a tool answered, once it is known to be sound.
pub(super) enum Answered {
    /// A result.
    Result(CallToolResult),
    /// The client has to be asked first.
    Asks(types::InputRequired),
    /// The guest runs it elsewhere, and calls it so.
    Job(String),
}

impl Scope<'_> {
    pub(super) async fn call_tool(&self, mut seat: Seat, name: &str, arguments: Option<Json>, line: &Line) -> Outcome {
        let named = self.view.tool(name).ok_or_else(|| not_found(name))?;
        let tool = named.tool().ok_or_else(|| not_found(name))?;
        let plan = self.plan(tool, name, seat.context_mut())?;
        let arguments: String = arguments.map_or_else(|| "{}".into(), |arguments| Box::<str>::from(arguments).into());
        let turn = self.turn(seat.context_mut(), Method::CallTool, name, || arguments.clone()).await?;
        let outcome = match (check_arguments(tool, &arguments).await, plan) {
            (Err(failure), _) => Err(failure),
            (Ok(()), Plan::Call) => {
                let context = named.guest.version.exports().tasks.then(|| seat.context_mut().clone());
                let answer = named.guest.version.call_tool(seat.of(self.voice(&named.guest)), tool.listed.name.clone(), arguments).await;
                match (answered(named, name, answer).await, context) {
                    (Ok(Answered::Job(job)), Some(context)) => Err(self.refuse_job(named, name, context, job).await),
                    (answered, _) => reply(answered, named, &turn),
                }
            }
            (Ok(()), plan) => self.call_as_task(plan, named, &turn, seat, arguments, line).await,
        };
        turn.conclude(outcome)
    }
}

/// What the protocol is told of an answer, but for a job, which is a task's.
pub(super) fn reply(answered: Result<Answered, Failure>, named: &ViewTool, turn: &Turn<'_>) -> Outcome {
    match answered? {
        Answered::Result(result) => Ok(Reply::Tool(result)),
        Answered::Asks(required) => turn.ask(&named.guest, "tool", required),
        Answered::Job(_) => Err(bad_output(&named.guest, "tool", turn.name(), "a task where none can be")),
    }
}

/// Checks what a tool answered.
pub(super) async fn answered(named: &ViewTool, name: &str, answer: Answer) -> Result<Answered, Failure> {
    let guest = &named.guest;
    let tool = named.tool().ok_or_else(|| not_found(name))?;
    let outcome = answer.map_err(|failure| match failure {
        guest::Failure::Guest(types::Error::NotFound(_)) => not_found(name),
        other => failed(guest, "tool", name, other),
    })?;
    match outcome {
        tools::ToolOutcome::Complete(result) => checked(named, tool, name, result).await.map(Answered::Result),
        tools::ToolOutcome::InputRequired(required) => Ok(Answered::Asks(required)),
        tools::ToolOutcome::Task(_) if !guest.version.exports().tasks => {
            Err(bad_output(guest, "tool", name, "it has no `tasks` to ask about the task that it answered with"))
        }
        tools::ToolOutcome::Task(job) => Ok(Answered::Job(job)),
    }
}

/// A result that is as the tool says that its results are.
pub(super) async fn checked(named: &ViewTool, tool: &Tool, name: &str, result: types::ToolResult) -> Result<CallToolResult, Failure> {
    let guest = &named.guest;
    let result = convert::tool_result(result).map_err(|bad| bad_output(guest, "tool", name, &bad.to_string()))?;
    check_output(tool, &result).await.map_err(|problem| bad_output(guest, "tool", name, &problem))?;
    Ok(result)
}

pub(super) fn not_found(name: &str) -> Failure {
    Failure::NotFound { kind: NotFound::Tool, name: name.into() }
}
