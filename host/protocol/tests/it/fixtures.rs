//! What the dispatcher of the tests answers, by name.

use std::sync::Arc;

use bytes::Bytes;
use guesthouse_protocol::model::{
    Annotations, Body, CacheHint, CacheScope, CallToolResult, Capabilities, Completion, Content, GetPromptResult, Icon, IconTheme,
    Implementation, Media, Profile, Prompt, PromptArgument, PromptMessage, PromptPage, ReadResult, Resource, ResourceContents,
    ResourcePage, ResourceTemplate, Role, TaskSupport, TemplatePage, Tool, ToolAnnotations, ToolPage,
};
use guesthouse_protocol::{Failure, InternalKind, Json, NotFound, Outcome, Reply, RpcError, StateProblem};
use serde_json::value::RawValue;

use crate::{questions, tasks};

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
        "profile-tasks" => {
            let mut profile = profile();
            profile.capabilities = Capabilities { tasks: true, task_list: true, ..profile.capabilities };
            Reply::Profile(Box::new(profile))
        }
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
        name if name.starts_with("ask:") => questions::asking(&name[4..]),
        name if name.starts_with("task") => tasks::reply(name),
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
        "state" => Failure::RequestState(StateProblem::Expired),
        _ => panic!("no such failure: {name}"),
    }
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
            ..Capabilities::default()
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
