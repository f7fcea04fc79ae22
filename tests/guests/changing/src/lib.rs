//! A guest whose lists are different every time they are asked for, and that tells by its own announcements what it hears
//! of its watchers: `resources-changed` for the first one of a resource, `prompts-changed` for the last.

use std::hash::{BuildHasher, RandomState};

wit_bindgen::generate!({
    inline: r#"
        package changing:guest;
        world changing {
            include guesthouse:mcp/handler@0.1.0;
            export guesthouse:mcp/tools@0.1.0;
            export guesthouse:mcp/resources@0.1.0;
            export guesthouse:mcp/subscriptions@0.1.0;
            export guesthouse:mcp/prompts@0.1.0;
        }
    "#,
    path: "../../../wit",
    world: "changing:guest/changing",
    generate_all,
});

use exports::guesthouse::mcp::lifecycle::{Guest as Lifecycle, ServerInfo};
use exports::guesthouse::mcp::prompts::{Guest as Prompts, Prompt, PromptOutcome, PromptPage};
use exports::guesthouse::mcp::resources::{Guest as Resources, ReadOutcome, ReadResult, ResourcePage, TemplatePage};
use exports::guesthouse::mcp::subscriptions::Guest as Subscriptions;
use exports::guesthouse::mcp::tools::{Guest as Tools, TaskSupport, Tool, ToolOutcome, ToolPage};
use guesthouse::mcp::changes;
use guesthouse::mcp::types::{Body, Content, Error, ResourceContents, ResourceEntry, TextContent, ToolResult};

struct Changing;

export!(Changing);

/// The tools that are always there: each announces something.
const TOOLS: [&str; 6] = ["tools", "prompts", "resources", "update", "update-other", "update-then-fail"];

/// The resource that the tools update, one that exists beside it, and one that must not be watched.
const ONE: &str = "watch://one";
const OTHER: &str = "watch://other";
const REFUSED: &str = "watch://refused";

/// A name that was not there before.
fn new_name() -> String {
    format!("new-{:x}", RandomState::new().hash_one(0))
}

impl Lifecycle for Changing {
    fn describe() -> ServerInfo {
        ServerInfo {
            name: "changing".into(),
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

impl Tools for Changing {
    fn list_tools(_: Option<String>) -> Result<ToolPage, Error> {
        let tool = |name: String| Tool {
            name,
            title: None,
            description: None,
            input_schema: r#"{"type":"object"}"#.into(),
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            task_support: TaskSupport::Forbidden,
            meta: None,
            more: None,
        };
        let names = TOOLS.map(String::from).into_iter().chain([new_name()]);
        Ok(ToolPage { tools: names.map(tool).collect(), next: None, cache: None })
    }

    fn call_tool(name: String, _: String) -> Result<ToolOutcome, Error> {
        match name.as_str() {
            "tools" => changes::tools_changed(),
            "prompts" => changes::prompts_changed(),
            "resources" => changes::resources_changed(),
            "update" => changes::resource_updated(ONE),
            "update-other" => changes::resource_updated(OTHER),
            "update-then-fail" => {
                changes::resource_updated(ONE);
                return Err(Error::Internal("after all".into()));
            }
            _ => return Err(Error::NotFound(name)),
        }
        let text = TextContent { text: "announced".into(), annotations: None, meta: None };
        Ok(ToolOutcome::Complete(ToolResult {
            content: vec![Content::Text(text)],
            structured_content: None,
            is_error: false,
            meta: None,
            more: None,
        }))
    }
}

impl Resources for Changing {
    fn list_resources(_: Option<String>) -> Result<ResourcePage, Error> {
        let entry = |uri: &str| ResourceEntry {
            uri: uri.into(),
            name: uri.into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            icons: Vec::new(),
            annotations: None,
            meta: None,
            more: None,
        };
        Ok(ResourcePage { resources: [ONE, OTHER, REFUSED].map(entry).into(), next: None, cache: None })
    }

    fn list_templates(_: Option<String>) -> Result<TemplatePage, Error> {
        Ok(TemplatePage { templates: Vec::new(), next: None, cache: None })
    }

    fn read_resource(uri: String) -> Result<ReadOutcome, Error> {
        let contents = vec![ResourceContents { uri, mime_type: None, body: Body::Text(String::new()), meta: None }];
        Ok(ReadOutcome::Complete(ReadResult { contents, cache: None, meta: None }))
    }
}

impl Subscriptions for Changing {
    fn subscribe(uri: String) -> Result<(), Error> {
        if uri == REFUSED {
            return Err(Error::NotFound(uri));
        }
        changes::resources_changed();
        Ok(())
    }

    fn unsubscribe(_: String) -> Result<(), Error> {
        changes::prompts_changed();
        Ok(())
    }
}

impl Prompts for Changing {
    fn list_prompts(_: Option<String>) -> Result<PromptPage, Error> {
        let prompt = Prompt {
            name: new_name(),
            title: None,
            description: None,
            arguments: Vec::new(),
            icons: Vec::new(),
            meta: None,
            more: None,
        };
        Ok(PromptPage { prompts: vec![prompt], next: None, cache: None })
    }

    fn get_prompt(name: String, _: Vec<(String, String)>) -> Result<PromptOutcome, Error> {
        Err(Error::NotFound(name))
    }
}
