//! The checks of one connection, one printed line each.

use crate::REVISION_MODERN;
use crate::table::{Table, described, equal, repository_file, text};
use anyhow::{Context as _, Result, bail};
use rmcp::model::{
    ArgumentInfo, CallToolRequestParams, ClientRequest, CompleteRequestParams, GetPromptRequestParams, PaginatedRequestParams, PingRequest,
    ReadResourceRequestParams, Reference, ServerResult,
};
use rmcp::{Peer, RoleClient, ServiceError};
use serde::Serialize;
use serde_json::{Value, json};
use std::process::ExitCode;

const PARALLEL_CALLS: usize = 24;

/// Prints lines and counts failures.
#[derive(Default)]
pub struct Report {
    failures: usize,
}

impl Report {
    /// One line about one check.
    pub fn say(&mut self, what: &str, outcome: Result<()>) {
        match outcome {
            Ok(()) => println!("ok    {what}"),
            Err(error) => {
                self.failures += 1;
                println!("FAIL  {what}: {}", format!("{error:#}").replace('\n', "\n      "));
            }
        }
    }

    /// The last line, and how the program ends.
    pub fn finish(&self) -> ExitCode {
        match self.failures {
            0 => println!("all checks passed"),
            failures => println!("{failures} checks failed"),
        }
        if self.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// One connection to a host that serves these guests.
pub struct Connection<'a> {
    pub peer: Peer<RoleClient>,
    pub table: &'a Table,
    pub guests: &'a [String],
    pub prefixed: bool,
    pub revision: &'a str,
}

impl Connection<'_> {
    /// All checks.
    pub async fn run(&self, report: &mut Report) {
        report.say("says who it is", self.introduces());
        report.say("offers what the guests export", self.offers());
        if self.revision != REVISION_MODERN {
            report.say("answers a ping", self.pings().await);
            report.say("sets the level of the log", self.sets_level().await);
        }
        self.lists(report).await;
        for prefix in self.prefixes() {
            self.calls(&prefix, report).await;
            self.prompts(&prefix, report).await;
        }
        self.reads(report).await;
        self.endures(report).await;
    }

    /// What stands before a guest's names, for every guest.
    fn prefixes(&self) -> Vec<String> {
        self.guests.iter().map(|guest| if self.prefixed { format!("{guest}_") } else { String::new() }).collect()
    }

    fn introduces(&self) -> Result<()> {
        let info = self.peer.peer_info().context("the client knows nothing of the server")?;
        let server = info.server_info.as_ref().context("there is no serverInfo")?;
        let several = self.guests.len() > 1;
        equal("the name", &server.name.as_str().into(), &(if several { "guesthouse" } else { self.table.server("name") }).into())?;
        if !several {
            equal("the version", &server.version.as_str().into(), &self.table.server("version").into())?;
        }
        let instructions = info.instructions.clone().unwrap_or_default();
        if !instructions.contains(self.table.server("instructions")) {
            bail!("the instructions are `{instructions}`");
        }
        Ok(())
    }

    fn offers(&self) -> Result<()> {
        let info = self.peer.peer_info().context("the client knows nothing of the server")?;
        let offered = serde_json::to_value(&info.capabilities)?;
        // `completions` came with 2025-03-26, and `logging` went with the handshake.
        let due = [
            ("prompts", true),
            ("resources", true),
            ("tools", true),
            ("completions", self.revision >= "2025-03-26"),
            ("logging", self.revision < REVISION_MODERN),
        ];
        if let Some((name, _)) = due.into_iter().find(|(name, due)| *due && offered.get(name).is_none()) {
            bail!("`{name}` is missing in {offered}");
        }
        Ok(())
    }

    async fn pings(&self) -> Result<()> {
        match self.peer.send_request(ClientRequest::PingRequest(PingRequest::default())).await? {
            ServerResult::EmptyResult(_) => Ok(()),
            other => bail!("an empty result expected, not {other:?}"),
        }
    }

    #[expect(deprecated, reason = "the method is what the handshake era has")]
    async fn sets_level(&self) -> Result<()> {
        use rmcp::model::{LoggingLevel, SetLevelRequestParams};
        Ok(self.peer.set_level(SetLevelRequestParams::new(LoggingLevel::Warning)).await?)
    }

    async fn lists(&self, report: &mut Report) {
        let prefixes = self.prefixes();
        let tools = self.peer.list_all_tools().await;
        report.say("lists the tools with their schemas", same(tools, &[self.table.listed("tools", self.revision, &prefixes)]));
        let prompts = self.peer.list_all_prompts().await;
        report.say("lists the prompts", same(prompts, &[self.table.listed("prompts", self.revision, &prefixes)]));
        // The guests have the same URIs: each is listed by every guest that has it, or once.
        let ways = |list| [1, self.guests.len()].map(|times| self.table.listed(list, self.revision, &vec![String::new(); times]));
        report.say("lists the resources", same(self.peer.list_all_resources().await, &ways("resources")));
        report.say("lists the templates", same(self.peer.list_all_resource_templates().await, &ways("templates")));
    }

    async fn calls(&self, prefix: &str, report: &mut Report) {
        for row in self.table.rows("calls") {
            let tool = text(row, "tool");
            let wrong = row.get("isError").is_some();
            let what = format!("calls {prefix}{tool}{}", if wrong { ", which says what is wrong" } else { "" });
            report.say(&what, self.call_answers(prefix, row).await);
        }
        for row in self.table.rows("refused") {
            let what = format!("calls {prefix}{} with {} and learns of {}", text(row, "tool"), row["arguments"], text(row, "names"));
            report.say(&what, self.call_is_refused(prefix, row).await);
        }
    }

    async fn call(&self, name: String, arguments: &Value) -> Result<Value, ServiceError> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let result = self.peer.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await?;
        Ok(serde_json::to_value(result).unwrap_or_default())
    }

    async fn call_answers(&self, prefix: &str, row: &Value) -> Result<()> {
        let result = self.call(format!("{prefix}{}", text(row, "tool")), &row["arguments"]).await?;
        let is_error = |value: &Value| value.get("isError").cloned().unwrap_or(Value::Bool(false));
        equal("isError", &is_error(&result), &is_error(row))?;
        // Before structured content was invented, a client got it as a text more.
        let structured = &row["structured"];
        let in_text = self.revision < "2025-06-18" && !structured.is_null();
        let mut blocks = result["content"].as_array().cloned().unwrap_or_default();
        if in_text {
            let mirrored = blocks.pop().context("there is no content")?;
            equal("the structured content as a text", &serde_json::from_str(text(&mirrored, "text"))?, structured)?;
        }
        equal("the content", &blocks.into(), &json!([{ "type": "text", "text": row["text"] }]))?;
        equal("the structured content", &result["structuredContent"], if in_text { &Value::Null } else { structured })
    }

    async fn call_is_refused(&self, prefix: &str, row: &Value) -> Result<()> {
        let result = self.call(format!("{prefix}{}", text(row, "tool")), &row["arguments"]).await?;
        let said = text(&result["content"][0], "text");
        if result["isError"] != true || !said.contains(text(row, "names")) {
            bail!("an error expected that names `{}`, not {result}", text(row, "names"));
        }
        Ok(())
    }

    async fn prompts(&self, prefix: &str, report: &mut Report) {
        for row in self.table.rows("gets") {
            let given: Vec<&str> = row["arguments"].as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
            report.say(&format!("gets {prefix}{} with {}", text(row, "prompt"), given.join(" and ")), self.gets(prefix, row).await);
        }
        for row in self.table.rows("completions") {
            let whose = row.get("prompt").map_or_else(|| text(row, "template").to_owned(), |_| format!("{prefix}{}", text(row, "prompt")));
            let what = format!("completes {} of {whose} from '{}'", text(row, "argument"), text(row, "value"));
            report.say(&what, self.completes(whose, row).await);
        }
    }

    async fn gets(&self, prefix: &str, row: &Value) -> Result<()> {
        let arguments = row["arguments"].as_object().cloned().unwrap_or_default();
        let params = GetPromptRequestParams::new(format!("{prefix}{}", text(row, "prompt"))).with_arguments(arguments);
        let result = serde_json::to_value(self.peer.get_prompt(params).await?)?;
        equal("the description", &result["description"], &row["description"])?;
        let message = json!([{ "role": row["role"], "content": { "type": "text", "text": row["text"] } }]);
        equal("the message", &result["messages"], &message)
    }

    async fn completes(&self, whose: String, row: &Value) -> Result<()> {
        let reference = if row.get("prompt").is_some() { Reference::for_prompt(whose) } else { Reference::for_resource(whose) };
        let argument = ArgumentInfo::new(text(row, "argument"), text(row, "value"));
        let completion = self.peer.complete(CompleteRequestParams::new(reference, argument)).await?.completion;
        equal("the list of values", &json!(completion.values), &row["values"])?;
        let (all, more) = (u32::try_from(completion.values.len())?, completion.has_more.unwrap_or(false));
        equal("what is said of the rest", &json!([completion.total.unwrap_or(all), more]), &json!([all, false]))
    }

    async fn reads(&self, report: &mut Report) {
        for row in self.table.rows("reads") {
            report.say(&format!("reads {}", text(row, "uri")), self.reads_one(row).await);
        }
        for uri in self.table.rows("unknownResources") {
            let uri = uri.as_str().unwrap_or_default();
            let read = self.peer.read_resource(ReadResourceRequestParams::new(uri)).await;
            let code = if self.revision == REVISION_MODERN { -32602 } else { -32002 };
            let named = refused(read, code).and_then(|data| equal("the URI in the error", &data["uri"], &uri.into()));
            report.say(&format!("is told that there is no {uri}"), named);
        }
    }

    async fn reads_one(&self, row: &Value) -> Result<()> {
        let result = serde_json::to_value(self.peer.read_resource(ReadResourceRequestParams::new(text(row, "uri"))).await?)?;
        let expected = match row.get("file").and_then(Value::as_str) {
            Some(file) => repository_file(file)?,
            None => text(row, "text").to_owned(),
        };
        equal("the contents", &result["contents"], &json!([{ "uri": row["uri"], "mimeType": row["mimeType"], "text": expected }]))
    }

    async fn endures(&self, report: &mut Report) {
        let prefix = self.prefixes().first().cloned().unwrap_or_default();
        let tool = self.call(format!("{prefix}no_such_tool"), &json!({})).await;
        report.say("is told of an unknown tool", refused(tool, -32602).map(drop));
        let prompt = self.peer.get_prompt(GetPromptRequestParams::new(format!("{prefix}no_such_prompt"))).await;
        report.say("is told of an unknown prompt", refused(prompt, -32602).map(drop));
        let page = self.peer.list_tools(Some(PaginatedRequestParams::default().with_cursor(Some("no-such-cursor".to_owned())))).await;
        report.say("refuses an unknown cursor", refused(page, -32602).map(drop));
        report.say(&format!("answers {PARALLEL_CALLS} calls at once, each its own"), self.answers_many(&prefix).await);
    }

    async fn answers_many(&self, prefix: &str) -> Result<()> {
        let calls = (0..PARALLEL_CALLS).map(async |index| {
            let result = self.call(format!("{prefix}slugify"), &json!({ "text": format!("Call {index}") })).await?;
            equal("the slug", &result["content"][0]["text"], &format!("call-{index}").into())
        });
        futures::future::try_join_all(calls).await.map(drop)
    }
}

/// A list is one of those expected, as far as the table speaks of its members.
fn same<T: Serialize>(listed: Result<Vec<T>, ServiceError>, expected: &[Vec<Value>]) -> Result<()> {
    let mut got = Vec::new();
    for entry in listed? {
        got.push(Value::Object(described(&serde_json::to_value(entry)?)));
    }
    if expected.contains(&got) {
        return Ok(());
    }
    equal("the list", &got.into(), &expected.first().cloned().unwrap_or_default().into())
}

/// The data of an error with that code; anything else is a failure.
fn refused<T: std::fmt::Debug>(answer: Result<T, ServiceError>, code: i32) -> Result<Value> {
    match answer {
        Err(ServiceError::McpError(error)) => {
            equal("the code", &error.code.0.into(), &code.into())?;
            Ok(error.data.unwrap_or_default())
        }
        Err(other) => Err(other.into()),
        Ok(answer) => bail!("an error expected, not {answer:?}"),
    }
}
