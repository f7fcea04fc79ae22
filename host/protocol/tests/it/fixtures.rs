//! What the dispatcher of the tests answers, by name.

use std::sync::Arc;

use bytes::Bytes;
use guesthouse_protocol::model::questions::Asked;
use guesthouse_protocol::model::tasks::{Live, Over, Stage};
use guesthouse_protocol::model::{
    Annotations, Body, CacheHint, CacheScope, CallToolResult, Capabilities, Completion, Content, Finished, GetPromptResult, Icon,
    IconTheme, Implementation, InputRequired, Media, Profile, Prompt, PromptArgument, PromptMessage, PromptPage, Question, ReadResult,
    Resource, ResourceContents, ResourcePage, ResourceTemplate, Role, Task, TaskPage, TaskSupport, TemplatePage, Tool, ToolAnnotations,
    ToolPage,
};
use guesthouse_protocol::{Failure, InternalKind, Json, NotFound, Outcome, Reply, Revision, RpcError};
use serde_json::value::RawValue;

pub(crate) fn json(text: &str) -> Json {
    RawValue::from_string(text.to_owned()).expect("JSON")
}

/// The outcome of that name.
pub(crate) fn outcome(name: &str) -> Outcome {
    if let Some(failure) = name.strip_prefix("fail:") {
        return Err(failure_named(failure));
    }
    Ok(match name {
        "profile" => Reply::Profile(Box::new(profile())),
        "tools" => Reply::Tools(tools()),
        "text" => Reply::Tool(CallToolResult { content: vec![Content::text("hi\n\"there\"")], ..Default::default() }),
        "tool" => Reply::Tool(tool_result()),
        "structured" => Reply::Tool(CallToolResult { structured_content: Some(json("{\n  \"words\": 2\n}")), ..Default::default() }),
        "structured-list" => Reply::Tool(CallToolResult {
            content: vec![Content::text("two words")],
            structured_content: Some(json("[1,2]")),
            ..Default::default()
        }),
        "tool-error" => Reply::Tool(CallToolResult::error("no such city")),
        "resources" => Reply::Resources(ResourcePage {
            resources: vec![Resource { uri: "a://b".into(), name: "b".into(), ..Default::default() }, resource()],
            next_cursor: Some(String::new()),
            cache: None,
        }),
        "templates" => Reply::Templates(TemplatePage { templates: vec![Arc::new(template())], ..Default::default() }),
        "resource" => Reply::Resource(read_result()),
        "prompts" => Reply::Prompts(PromptPage { prompts: vec![Arc::new(prompt())], ..Default::default() }),
        "prompt" => Reply::Prompt(prompt_result()),
        "completion" => {
            Reply::Completion(Completion { values: (0..101).map(|number| number.to_string()).collect(), total: Some(101), has_more: false })
        }
        "empty" => Reply::Empty,
        _ if name.starts_with("task") => task_reply(name),
        _ => panic!("no such outcome: {name}"),
    })
}

fn failure_named(name: &str) -> Failure {
    let not_found = |kind, name: &str| Failure::NotFound { kind, name: name.to_owned() };
    match name {
        "method" => Failure::MethodNotFound,
        "tool" => not_found(NotFound::Tool, "nope"),
        "prompt" => not_found(NotFound::Prompt, "nope"),
        "resource" => not_found(NotFound::Resource, "a://nope"),
        "template" => not_found(NotFound::Template, "a://{nope}"),
        "arguments" => Failure::InvalidArguments { pointer: "/text".into(), message: "must be a string".into() },
        "params" => Failure::InvalidParams("no such cursor".into()),
        "capability" => Failure::MissingClientCapability(json(r#"{"sampling":{}}"#)),
        "own" => Failure::Rpc(RpcError { code: 42, message: "own".into(), data: Some(json("[1]")) }),
        "reserved" => Failure::Rpc(RpcError { code: -32603, message: "secret".into(), data: None }),
        "crash" => Failure::Internal { kind: InternalKind::HandlerCrash, text: "Tool echo of guest textkit crashed".into() },
        "task" => not_found(NotFound::Task, "task_nope"),
        "task-mode" => Failure::WrongTaskMode("The tool must be called as a task".into()),
        "extension" => Failure::MissingClientCapability(json(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#)),
        "busy" => Failure::Busy { retry_after_s: 3 },
        "cancelled" => Failure::Cancelled,
        _ => panic!("no such failure: {name}"),
    }
}

/// A task in the state that the name ends in, as the reply that it begins with.
fn task_reply(name: &str) -> Reply {
    let (reply, state) = name.split_once('-').expect("a reply and a state");
    let mut task = Task::new("task_1".into(), 1_785_200_523_004, 60_000, 500);
    let over = |over: Over| move |_: Live| Stage::Over(over);
    let text = CallToolResult { content: vec![Content::text("done")], meta: meta(), ..Default::default() };
    match state {
        "working" => assert!(task.note(1_785_200_523_504, "1 of 2".into())),
        "waiting" => assert!(task.advance(1_785_200_524_004, |live| match live {
            Live::Working(working) => working.ask(questions()).into(),
            waiting @ Live::Waiting(_) => waiting.into(),
        })),
        "completed" => assert!(task.advance(1_785_200_525_004, over(Over::Completed(Finished::of(&text))))),
        "sorry" => assert!(task.advance(1_785_200_525_004, over(Over::Completed(Finished::of(&CallToolResult::error("no")))))),
        "failed" => assert!(task.advance(1_785_200_525_004, over(Over::of(Err(failure_named("own")), Revision::LATEST_MODERN)))),
        "cancelled" => assert!(task.advance(1_785_200_525_004, over(Over::Cancelled))),
        _ => panic!("no such state: {state}"),
    }
    match reply {
        "task" => Reply::Task(Box::new(task)),
        "task_created" => Reply::TaskCreated(Box::new(task)),
        "task_cancelled" => Reply::TaskCancelled(Box::new(task)),
        "tasks" => Reply::Tasks(TaskPage { tasks: vec![task], next_cursor: Some("next".into()) }),
        "task_result" => Reply::TaskResult(Box::new(Finished::of(&text)), "task_1".into()),
        "task_asks" => {
            Reply::InputRequired(Box::new(InputRequired { questions: questions(), task: Some("task_1".into()), ..Default::default() }))
        }
        _ => panic!("no such reply: {reply}"),
    }
}

fn questions() -> Vec<Asked> {
    let form = r#"{"mode":"form","message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}"#;
    let asked = |key: &str, question| Asked { key: key.into(), question };
    vec![asked("name", Question::Elicit(json(form))), asked("roots-2", Question::Roots)]
}

pub(crate) fn server_info() -> Implementation {
    Implementation { name: "guesthouse".into(), version: "0.1.0".into(), ..Default::default() }
}

pub(crate) fn profile() -> Profile {
    Profile {
        server_info: Implementation {
            title: Some("Guesthouse".into()),
            description: Some("A house".into()),
            website_url: Some("https://example.com".into()),
            icons: vec![icon()],
            ..server_info()
        },
        instructions: Some("Be kind.".into()),
        capabilities: Capabilities {
            tools: true,
            resources: true,
            prompts: true,
            completions: true,
            logging: true,
            list_changed: true,
            subscribe: true,
            tasks: true,
            task_list: true,
        },
        cache: Some(CacheHint { ttl_ms: 60_000, scope: CacheScope::Public }),
    }
}

fn icon() -> Icon {
    Icon {
        src: "https://example.com/i.png".into(),
        mime_type: Some("image/png".into()),
        sizes: vec!["48x48".into()],
        theme: Some(IconTheme::Dark),
    }
}

fn annotations() -> Annotations {
    Annotations { audience: vec![Role::User, Role::Assistant], priority: Some(0.5), last_modified: Some("2026-01-02T03:04:05Z".into()) }
}

fn meta() -> Option<Json> {
    Some(json(r#"{"com.example/x":1}"#))
}

pub(crate) fn tools() -> ToolPage {
    let plain = Tool {
        name: "b".into(),
        title: None,
        description: None,
        input_schema: json("{\n\"type\": \"object\"}"),
        output_schema: Some(json(r#"{"type":"array"}"#)),
        annotations: None,
        icons: Vec::new(),
        task_support: TaskSupport::Required,
        meta: None,
    };
    let full = Tool {
        name: "a".into(),
        title: Some("A".into()),
        description: Some("does a".into()),
        output_schema: Some(json(r#"{"type":"object"}"#)),
        annotations: Some(ToolAnnotations {
            title: Some("A".into()),
            read_only: Some(true),
            destructive: Some(false),
            idempotent: Some(true),
            open_world: Some(false),
        }),
        icons: vec![icon()],
        meta: meta(),
        ..plain.clone()
    };
    ToolPage {
        tools: vec![Arc::new(plain), Arc::new(full)],
        next_cursor: Some("next".into()),
        cache: Some(CacheHint { ttl_ms: 5, scope: CacheScope::Public }),
    }
}

pub(crate) fn resource() -> Resource {
    Resource {
        uri: "file:///x".into(),
        name: "x".into(),
        title: Some("X".into()),
        description: Some("an x".into()),
        mime_type: Some("text/plain".into()),
        size: Some(12),
        icons: vec![icon()],
        annotations: Some(annotations()),
        meta: meta(),
    }
}

fn template() -> ResourceTemplate {
    ResourceTemplate {
        uri_template: "file:///{x}".into(),
        name: "x".into(),
        title: Some("X".into()),
        description: Some("some x".into()),
        mime_type: Some("text/plain".into()),
        icons: vec![icon()],
        annotations: Some(annotations()),
        meta: meta(),
    }
}

fn contents() -> ResourceContents {
    ResourceContents { uri: "file:///x".into(), mime_type: Some("text/plain".into()), body: Body::Text("x".into()), meta: meta() }
}

fn read_result() -> ReadResult {
    let blob = ResourceContents { body: Body::Blob(Bytes::from_static(b"\0\xff")), mime_type: None, ..contents() };
    ReadResult {
        contents: vec![contents(), blob],
        cache: Some(CacheHint { ttl_ms: 7, scope: CacheScope::Private }),
        meta: Some(json(r#"{"io.modelcontextprotocol/serverInfo":{"name":"spoofed","version":"9"},"a":1}"#)),
    }
}

fn prompt() -> Prompt {
    Prompt {
        name: "p".into(),
        title: Some("P".into()),
        description: Some("a prompt".into()),
        arguments: vec![
            PromptArgument { name: "lang".into(), title: Some("Language".into()), description: Some("which".into()), required: true },
            PromptArgument { name: "more".into(), ..Default::default() },
        ],
        icons: vec![icon()],
        meta: meta(),
    }
}

pub(crate) fn all_content() -> Vec<Content> {
    let media =
        |mime: &str| Media { data: Bytes::from_static(b"abc"), mime_type: mime.into(), annotations: Some(annotations()), meta: meta() };
    vec![
        Content::Text { text: "t".into(), annotations: Some(annotations()), meta: meta() },
        Content::Image(media("image/png")),
        Content::Audio(media("audio/wav")),
        Content::Link(Box::new(resource())),
        Content::Embedded { contents: contents(), annotations: Some(annotations()), meta: meta() },
    ]
}

fn tool_result() -> CallToolResult {
    CallToolResult { content: all_content(), structured_content: Some(json(r#"{"a":1}"#)), is_error: false, meta: meta() }
}

fn prompt_result() -> GetPromptResult {
    let message = |role| move |content| PromptMessage { role, content };
    GetPromptResult {
        description: Some("a prompt".into()),
        messages: all_content().into_iter().map(message(Role::Assistant)).collect(),
        meta: meta(),
    }
}
