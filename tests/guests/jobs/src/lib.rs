//! A guest that fronts a job system of its own. An instance lives for one call, so a job's state is in its name.

wit_bindgen::generate!({
    inline: r#"
        package jobs:guest;
        world jobs {
            include guesthouse:mcp/handler@0.1.0;
            export guesthouse:mcp/tools@0.1.0;
            export guesthouse:mcp/tasks@0.1.0;
        }
    "#,
    path: "../../../wit",
    world: "jobs:guest/jobs",
    generate_all,
});

use exports::guesthouse::mcp::lifecycle::{Guest as Lifecycle, ServerInfo};
use exports::guesthouse::mcp::tasks::{Guest as Tasks, Task, TaskStatus};
use exports::guesthouse::mcp::tools::{Guest as Tools, TaskSupport, Tool, ToolOutcome, ToolPage};
use guesthouse::mcp::context;
use guesthouse::mcp::types::{Asked, Content, Error, Question, RpcError, TextContent, ToolResult};

struct Jobs;

export!(Jobs);

impl Lifecycle for Jobs {
    fn describe() -> ServerInfo {
        ServerInfo {
            name: "jobs".into(),
            version: "1".into(),
            title: None,
            description: None,
            website_url: None,
            icons: Vec::new(),
            instructions: None,
            more: None,
        }
    }

    fn init(_: String) -> Result<(), String> {
        Ok(())
    }
}

impl Tools for Jobs {
    fn list_tools(_: Option<String>) -> Result<ToolPage, Error> {
        let tool = |name: &str, task_support| Tool {
            name: name.into(),
            title: None,
            description: None,
            input_schema: r#"{"type":"object"}"#.into(),
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            task_support,
            meta: None,
            more: None,
        };
        let tools = vec![
            tool("done", TaskSupport::Optional),
            tool("fails", TaskSupport::Required),
            tool("asks", TaskSupport::Required),
            tool("runs", TaskSupport::Required),
            tool("lost", TaskSupport::Optional),
            tool("forbidden", TaskSupport::Forbidden),
        ];
        Ok(ToolPage { tools, next: None, cache: None })
    }

    /// Every tool begins a job of its own name.
    fn call_tool(name: String, _: String) -> Result<ToolOutcome, Error> {
        Ok(ToolOutcome::Task(name))
    }
}

impl Tasks for Jobs {
    fn get_task(id: String) -> Result<Task, Error> {
        let (status, message) = match id.as_str() {
            "done" => (TaskStatus::Completed(text("all done")), None),
            "fails" => (TaskStatus::Failed(RpcError { code: 9, message: "it broke".into(), data: None }), None),
            "runs" => (TaskStatus::Working, Some("1 of 2")),
            "asks" => match context::answer("where") {
                None => (TaskStatus::InputRequired(vec![Asked { key: "where".into(), question: Question::ListRoots }]), Some("asking")),
                Some(answer) => (TaskStatus::Completed(text(&format!("{answer:?}"))), None),
            },
            _ => return Err(Error::NotFound(id)),
        };
        Ok(Task {
            id,
            status,
            message: message.map(Into::into),
            created_at: "2026-01-01T00:00:00Z".into(),
            last_updated_at: "2026-01-01T00:00:00Z".into(),
            ttl_ms: None,
            poll_interval_ms: Some(20),
        })
    }

    fn update_task(id: String, answered: Vec<String>) -> Result<(), Error> {
        let given = answered.iter().all(|key| context::answer(key).is_some());
        if id == "asks" && answered == ["where"] && given { Ok(()) } else { Err(Error::Internal(format!("{id} {answered:?}"))) }
    }

    fn cancel_task(id: String) -> Result<(), Error> {
        if id == "runs" || id == "lost" || id == "done" { Ok(()) } else { Err(Error::NotFound(id)) }
    }
}

fn text(text: &str) -> ToolResult {
    let content = vec![Content::Text(TextContent { text: text.into(), annotations: None, meta: None })];
    ToolResult { content, structured_content: None, is_error: false, meta: None, more: None }
}
