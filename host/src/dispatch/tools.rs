//! `tools/call`: arguments are validated before the guest runs, structured content after.

use super::seat::{Seat, caller};
use super::validate::{check_arguments, check_output};
use super::{Scope, bad_output, cannot_ask, failed};
use crate::convert;
use crate::guest;
use crate::guest::bindings::{tools, types};
use guesthouse_protocol::Json;
use guesthouse_protocol::model::Reply;
use guesthouse_protocol::{Failure, NotFound, Outcome};

impl Scope<'_> {
    pub(super) async fn call_tool(&self, seat: Seat, name: &str, arguments: Option<Json>) -> Outcome {
        let not_found = || Failure::NotFound { kind: NotFound::Tool, name: name.into() };
        let named = self.view.tool(name).ok_or_else(not_found)?;
        let tool = named.tool().ok_or_else(not_found)?;
        let guest = &named.guest;
        let arguments: String = arguments.map_or_else(|| "{}".into(), |arguments| Box::<str>::from(arguments).into());
        check_arguments(tool, &arguments).await?;
        let answer = guest.version.call_tool(caller(seat), tool.listed.name.clone(), arguments).await;
        let outcome = answer.map_err(|failure| match failure {
            guest::Failure::Guest(types::Error::NotFound(_)) => not_found(),
            other => failed(guest, "tool", name, other),
        })?;
        match outcome {
            tools::ToolOutcome::Complete(result) => {
                let result = convert::tool_result(result).map_err(|bad| bad_output(guest, "tool", name, &bad.to_string()))?;
                check_output(tool, &result).await.map_err(|problem| bad_output(guest, "tool", name, &problem))?;
                Ok(Reply::Tool(result))
            }
            tools::ToolOutcome::InputRequired(_) => Err(cannot_ask(guest, "tool", name)),
            tools::ToolOutcome::Task(_) => {
                tracing::error!(guest = %guest.name, "tool `{name}` answered with a task, which is not supported yet");
                Err(bad_output(guest, "tool", name, "a task"))
            }
        }
    }
}
