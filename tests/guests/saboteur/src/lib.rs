//! A guest that behaves well until it is told which of its callbacks is to go wrong, and how: by the operator's table, or by a
//! tool, which leaves a note in the guest's state.

#[macro_use]
#[path = "../../hostile/src/named.rs"]
mod named;

mod lists;
mod sabotage;

use std::cell::RefCell;
use std::hint::black_box;
use std::time::Duration;

wit_bindgen::generate!({
    inline: r#"
        package saboteur:guest;
        world saboteur {
            include guesthouse:mcp/everything@0.1.0;
            import wasi:keyvalue/store@0.2.0-draft;
        }
    "#,
    path: "../../../wit",
    world: "saboteur:guest/saboteur",
    generate_all,
});

use exports::guesthouse::mcp::completion::{Completions, Guest as Completion, Reference};
use exports::guesthouse::mcp::handoff::Guest as Handoff;
use exports::guesthouse::mcp::lifecycle::{Guest as Lifecycle, ServerInfo};
use exports::guesthouse::mcp::migration::{Guest as Migration, Owner};
use exports::guesthouse::mcp::prompts::{Guest as Prompts, PromptMessage, PromptOutcome, PromptPage, PromptResult};
use exports::guesthouse::mcp::resources::{Guest as Resources, ReadOutcome, ReadResult, ResourcePage, TemplatePage};
use exports::guesthouse::mcp::subscriptions::Guest as Subscriptions;
use exports::guesthouse::mcp::tasks::{Guest as Tasks, Task, TaskStatus};
use exports::guesthouse::mcp::tools::{Guest as Tools, ToolOutcome, ToolPage};
use guesthouse::mcp::types::{Asked, Body, Content, Error, Question, ResourceContents, Role, TextContent, ToolResult};
use sabotage::{Callback, Fault};
use wasi::keyvalue::store;

struct Saboteur;

export!(Saboteur);

/// Found by tests in the component, to make another version of it.
const VERSION: &str = "saboteur-version-1";
/// Where the note is.
const NOTE: &str = "note";

thread_local! {
    /// What the operator configures: a callback and what is wrong with it.
    static TABLE: RefCell<String> = RefCell::default();
}

/// Whether a note asks for this callback to go wrong in this way.
fn asked(note: &str, callback: Callback, how: &str) -> bool {
    note.split_once(' ').is_some_and(|(at, what)| at == callback.name() && what == how)
}

/// The note that a tool has left, if any.
fn note() -> Option<String> {
    let bytes = store::open("guest").ok()?.get(NOTE).ok()??;
    String::from_utf8(bytes).ok()
}

/// Every callback begins with this.
fn enter(callback: Callback) {
    let fault = |note: &str| Fault::ALL.iter().find(|fault| asked(note, callback, fault.name())).copied();
    let Some(fault) = TABLE.with_borrow(|table| fault(table)).or_else(|| fault(&note()?)) else { return };
    match fault {
        Fault::Trap => std::process::abort(),
        Fault::Loop => loop {
            black_box(());
        },
        Fault::Sleep => std::thread::sleep(Duration::from_secs(86_400)),
        Fault::Grow => {
            let mut kept = Vec::new();
            loop {
                kept.push(black_box(vec![1_u8; 1 << 20]));
            }
        }
        Fault::Hoard => {
            while let Ok(bucket) = store::open("guest") {
                std::mem::forget(bucket);
            }
        }
    }
}

impl Lifecycle for Saboteur {
    fn describe() -> ServerInfo {
        enter(Callback::Describe);
        ServerInfo {
            name: "saboteur".into(),
            version: VERSION.into(),
            title: None,
            description: None,
            website_url: None,
            icons: Vec::new(),
            instructions: None,
            more: None,
        }
    }

    fn init(config: String) -> Result<(), String> {
        let wrong = config.strip_prefix(r#"{"wrong":""#).and_then(|rest| rest.strip_suffix(r#""}"#)).unwrap_or_default();
        if !wrong.is_empty() && !Callback::ALL.iter().any(|callback| wrong.split(' ').next() == Some(callback.name())) {
            return Err(format!("there is no callback in `{wrong}`"));
        }
        TABLE.replace(wrong.into());
        enter(Callback::Init);
        Ok(())
    }
}

impl Tools for Saboteur {
    fn list_tools(cursor: Option<String>) -> Result<ToolPage, Error> {
        enter(Callback::ListTools);
        Ok(TABLE.with_borrow(|table| lists::tools(table, cursor)))
    }

    fn call_tool(name: String, arguments: String) -> Result<ToolOutcome, Error> {
        match name.as_str() {
            // The arguments are one text within an object: what is to go wrong from now on.
            "arm" => {
                let wrong = arguments.split('"').nth(3).unwrap_or_default();
                let left = store::open("guest").and_then(|bucket| bucket.set(NOTE, wrong.as_bytes()));
                left.map_err(|error| Error::Internal(format!("{error:?}")))?;
                Ok(ToolOutcome::Complete(text(wrong)))
            }
            "job" => Ok(ToolOutcome::Task("job".into())),
            "asking-job" => Ok(ToolOutcome::Task("asking-job".into())),
            _ => {
                enter(Callback::CallTool);
                Ok(ToolOutcome::Complete(text("well")))
            }
        }
    }
}

impl Resources for Saboteur {
    fn list_resources(cursor: Option<String>) -> Result<ResourcePage, Error> {
        enter(Callback::ListResources);
        Ok(lists::resources(&TABLE.with_borrow(Clone::clone), &note().unwrap_or_default(), cursor))
    }

    fn list_templates(cursor: Option<String>) -> Result<TemplatePage, Error> {
        enter(Callback::ListTemplates);
        Ok(TABLE.with_borrow(|table| lists::templates(table, cursor)))
    }

    fn read_resource(uri: String) -> Result<ReadOutcome, Error> {
        enter(Callback::ReadResource);
        let contents = ResourceContents { uri, mime_type: None, body: Body::Text("well".into()), meta: None };
        Ok(ReadOutcome::Complete(ReadResult { contents: vec![contents], cache: None, meta: None }))
    }
}

impl Subscriptions for Saboteur {
    fn subscribe(_: String) -> Result<(), Error> {
        enter(Callback::Subscribe);
        Ok(())
    }

    fn unsubscribe(_: String) -> Result<(), Error> {
        enter(Callback::Unsubscribe);
        Ok(())
    }
}

impl Prompts for Saboteur {
    fn list_prompts(cursor: Option<String>) -> Result<PromptPage, Error> {
        enter(Callback::ListPrompts);
        Ok(TABLE.with_borrow(|table| lists::prompts(table, cursor)))
    }

    fn get_prompt(_: String, _: Vec<(String, String)>) -> Result<PromptOutcome, Error> {
        enter(Callback::GetPrompt);
        let messages = vec![PromptMessage { role: Role::User, content: content("well") }];
        Ok(PromptOutcome::Complete(PromptResult { description: None, messages, meta: None }))
    }
}

impl Completion for Saboteur {
    fn complete(_: Reference, _: String, _: String, _: Vec<(String, String)>) -> Result<Completions, Error> {
        enter(Callback::Complete);
        Ok(Completions { values: vec!["well".into()], total: None, has_more: false })
    }
}

impl Tasks for Saboteur {
    fn get_task(id: String) -> Result<Task, Error> {
        enter(Callback::GetTask);
        let status = match id.as_str() {
            "asking-job" => TaskStatus::InputRequired(vec![Asked { key: "where".into(), question: Question::ListRoots }]),
            _ => TaskStatus::Working,
        };
        let time = || "2026-01-01T00:00:00Z".into();
        Ok(Task { id, status, message: None, created_at: time(), last_updated_at: time(), ttl_ms: None, poll_interval_ms: None })
    }

    fn update_task(_: String, _: Vec<String>) -> Result<(), Error> {
        enter(Callback::UpdateTask);
        Ok(())
    }

    fn cancel_task(_: String) -> Result<(), Error> {
        enter(Callback::CancelTask);
        Ok(())
    }
}

impl Migration for Saboteur {
    fn migrate(_: String, _: Owner) -> Result<(), String> {
        enter(Callback::Migrate);
        Ok(())
    }
}

impl Handoff for Saboteur {
    fn save() -> Result<Vec<u8>, String> {
        enter(Callback::Save);
        Ok(vec![1])
    }

    fn restore(_: String, _: Vec<u8>) -> Result<(), String> {
        enter(Callback::Restore);
        Ok(())
    }
}

fn content(text: &str) -> Content {
    Content::Text(TextContent { text: text.into(), annotations: None, meta: None })
}

fn text(text: &str) -> ToolResult {
    ToolResult { content: vec![content(text)], structured_content: None, is_error: false, meta: None, more: None }
}
