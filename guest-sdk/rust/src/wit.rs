//! The contract's types, as the traits of the contract use them.

pub use crate::bindings::completion::exports::guesthouse::mcp::completion::{Completions, Reference};
pub use crate::bindings::imports::guesthouse::mcp::context::{LogLevel, ProgressError, RequestInfo};
pub use crate::bindings::lifecycle::exports::guesthouse::mcp::lifecycle::ServerInfo;
pub use crate::bindings::migration::exports::guesthouse::mcp::migration::Owner;
pub use crate::bindings::prompts::exports::guesthouse::mcp::prompts::{
    Prompt, PromptArgument, PromptMessage, PromptOutcome, PromptPage, PromptResult,
};
pub use crate::bindings::resources::exports::guesthouse::mcp::resources::{
    ReadOutcome, ReadResult, ResourcePage, ResourceTemplate, TemplatePage,
};
pub use crate::bindings::tasks::exports::guesthouse::mcp::tasks::{Task, TaskStatus};
pub use crate::bindings::tools::exports::guesthouse::mcp::tools::{TaskSupport, Tool, ToolAnnotations, ToolOutcome, ToolPage};
pub use crate::bindings::types::{
    Annotations, Asked, Body, CacheHint, CacheScope, Content, EmbeddedResource, Error, Icon, IconTheme, InputRequired, MediaContent,
    Question, ResourceContents, ResourceEntry, Role, RpcError, TextContent, ToolResult,
};

macro_rules! defaults {
    ($($type:ident { $($field:ident: $value:expr),* $(,)? })*) => {
        $(impl Default for $type {
            fn default() -> Self {
                $type { $($field: $value),* }
            }
        })*
    };
}
defaults! {
    ServerInfo {
        name: String::new(), version: String::new(), title: None, description: None, website_url: None, icons: Vec::new(),
        instructions: None, more: None,
    }
    Tool {
        name: String::new(), title: None, description: None, input_schema: "{\"type\":\"object\"}".into(), output_schema: None,
        annotations: None, icons: Vec::new(), task_support: TaskSupport::Forbidden, meta: None, more: None,
    }
    ToolPage { tools: Vec::new(), next: None, cache: None }
    ToolResult { content: Vec::new(), structured_content: None, is_error: false, meta: None, more: None }
    TextContent { text: String::new(), annotations: None, meta: None }
    ResourceEntry {
        uri: String::new(), name: String::new(), title: None, description: None, mime_type: None, size: None, icons: Vec::new(),
        annotations: None, meta: None, more: None,
    }
    ResourcePage { resources: Vec::new(), next: None, cache: None }
    ResourceTemplate {
        uri_template: String::new(), name: String::new(), title: None, description: None, mime_type: None, icons: Vec::new(),
        annotations: None, meta: None, more: None,
    }
    TemplatePage { templates: Vec::new(), next: None, cache: None }
    ReadResult { contents: Vec::new(), cache: None, meta: None }
    Prompt {
        name: String::new(), title: None, description: None, arguments: Vec::new(), icons: Vec::new(), meta: None, more: None,
    }
    PromptPage { prompts: Vec::new(), next: None, cache: None }
    PromptResult { description: None, messages: Vec::new(), meta: None }
    Completions { values: Vec::new(), total: None, has_more: false }
}
