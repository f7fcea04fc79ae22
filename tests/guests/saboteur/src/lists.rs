//! The guest's lists, as they should be and as they should not.

use crate::asked;
use crate::exports::guesthouse::mcp::prompts::{Prompt, PromptPage};
use crate::exports::guesthouse::mcp::resources::{ResourcePage, ResourceTemplate, TemplatePage};
use crate::exports::guesthouse::mcp::tools::{TaskSupport, Tool, ToolPage};
use crate::guesthouse::mcp::types::ResourceEntry;
use crate::sabotage::{Callback, Listing};

/// More than the host takes of a guest.
const MANY: usize = 20_000;
const LONG: usize = 100_000;

/// Names, and the cursor of the next page, where a list is to go wrong; otherwise what it has.
fn names(note: &str, callback: Callback, cursor: Option<String>, own: &[&str]) -> (Vec<String>, Option<String>) {
    let own = || own.iter().map(|name| (*name).to_owned());
    let at: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or_default();
    match Listing::ALL.iter().find(|listing| asked(note, callback, listing.name())) {
        None => (own().collect(), None),
        Some(Listing::Many) => ((0..MANY).map(|at| format!("n{at}")).collect(), None),
        Some(Listing::Endless) => (vec![format!("n{at}")], Some((at + 1).to_string())),
        Some(Listing::Circle) => (Vec::new(), Some("again".into())),
        Some(Listing::LongNames) => (own().chain(["x".repeat(LONG)]).collect(), None),
        Some(Listing::StrangeNames) => (own().chain(own()).chain([String::new(), "a\u{1b}[31m\nb".into(), "a\0b".into()]).collect(), None),
    }
}

fn tool(name: String) -> Tool {
    let task_support = if name.ends_with("job") { TaskSupport::Required } else { TaskSupport::Forbidden };
    Tool {
        name,
        title: None,
        description: None,
        input_schema: r#"{"type":"object"}"#.into(),
        output_schema: None,
        annotations: None,
        icons: Vec::new(),
        task_support,
        meta: None,
        more: None,
    }
}

pub fn tools(note: &str, cursor: Option<String>) -> ToolPage {
    let (names, next) = names(note, Callback::ListTools, cursor, &["well", "arm", "job", "asking-job"]);
    ToolPage { tools: names.into_iter().map(tool).collect(), next, cache: None }
}

/// Resources are listed for each client, and so may go wrong later, too.
pub fn resources(table: &str, note: &str, cursor: Option<String>) -> ResourcePage {
    let note = if table.is_empty() { note } else { table };
    let (names, next) = names(note, Callback::ListResources, cursor, &["one"]);
    let entry = |name: String| ResourceEntry {
        uri: format!("sabotage://{name}"),
        name,
        title: None,
        description: None,
        mime_type: None,
        size: None,
        icons: Vec::new(),
        annotations: None,
        meta: None,
        more: None,
    };
    ResourcePage { resources: names.into_iter().map(entry).collect(), next, cache: None }
}

pub fn templates(note: &str, cursor: Option<String>) -> TemplatePage {
    let (names, next) = names(note, Callback::ListTemplates, cursor, &["more"]);
    let template = |name: String| ResourceTemplate {
        uri_template: format!("sabotage://{name}/{{id}}"),
        name,
        title: None,
        description: None,
        mime_type: None,
        icons: Vec::new(),
        annotations: None,
        meta: None,
        more: None,
    };
    TemplatePage { templates: names.into_iter().map(template).collect(), next, cache: None }
}

pub fn prompts(note: &str, cursor: Option<String>) -> PromptPage {
    let (names, next) = names(note, Callback::ListPrompts, cursor, &["well"]);
    let prompt =
        |name: String| Prompt { name, title: None, description: None, arguments: Vec::new(), icons: Vec::new(), meta: None, more: None };
    PromptPage { prompts: names.into_iter().map(prompt).collect(), next, cache: None }
}
