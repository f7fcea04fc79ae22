//! Between the contract's types and the protocol's: the only code, with the dispatcher, that knows both.
//!
//! What a guest hands over is checked on the way: JSON must be JSON that clients can read, and `_meta` an object. What is
//! wrong is named by its path, so that the guest's author finds it.

mod sound;

use crate::guest::bindings::{completion, context, lifecycle, prompts, resources, tools, types};
use guesthouse_protocol::model;
use guesthouse_protocol::{Json, RpcError};
use serde_json::value::RawValue;
use std::fmt;

/// A value of a guest that the protocol cannot carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadValue {
    /// Where it is, such as `tools[3].input-schema`.
    pub path: String,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.path, self.problem)
    }
}

impl std::error::Error for BadValue {}

impl BadValue {
    fn within(mut self, outer: &str) -> Self {
        self.path = format!("{outer}.{}", self.path);
        self
    }
}

type Checked<T> = Result<T, BadValue>;

/// Takes a text that must be JSON, such that clients can read it.
pub fn json(text: String, path: &str) -> Checked<Json> {
    let bad = |problem: String| BadValue { path: path.into(), problem };
    let json = RawValue::from_string(text).map_err(|error| bad(format!("is not JSON: {error}")))?;
    match sound::problem(json.get()) {
        None => Ok(json),
        Some(problem) => Err(bad(problem)),
    }
}

/// Takes an optional text that must be a JSON object, as `_meta` is.
fn object(text: Option<String>, path: &str) -> Checked<Option<Json>> {
    let Some(value) = text.map(|text| json(text, path)).transpose()? else { return Ok(None) };
    if value.get().starts_with('{') { Ok(Some(value)) } else { Err(BadValue { path: path.into(), problem: "is not a JSON object".into() }) }
}

fn each<T, U>(items: Vec<T>, path: &str, convert: impl Fn(T) -> Checked<U>) -> Checked<Vec<U>> {
    items.into_iter().enumerate().map(|(index, item)| convert(item).map_err(|error| error.within(&format!("{path}[{index}]")))).collect()
}

/// What a guest says about itself.
pub fn server_info(info: lifecycle::ServerInfo) -> (model::Implementation, Option<String>) {
    let implementation = model::Implementation {
        name: info.name,
        version: info.version,
        title: info.title,
        description: info.description,
        website_url: info.website_url,
        icons: icons(info.icons),
    };
    (implementation, info.instructions)
}

fn icons(icons: Vec<types::Icon>) -> Vec<model::Icon> {
    icons
        .into_iter()
        .map(|icon| model::Icon {
            src: icon.src,
            mime_type: icon.mime_type,
            sizes: icon.sizes,
            theme: icon.theme.map(|theme| match theme {
                types::IconTheme::Light => model::IconTheme::Light,
                types::IconTheme::Dark => model::IconTheme::Dark,
            }),
        })
        .collect()
}

fn role(role: types::Role) -> model::Role {
    match role {
        types::Role::User => model::Role::User,
        types::Role::Assistant => model::Role::Assistant,
    }
}

fn annotations(annotations: Option<types::Annotations>) -> Option<model::Annotations> {
    annotations.map(|annotations| model::Annotations {
        audience: annotations.audience.into_iter().map(role).collect(),
        priority: annotations.priority,
        last_modified: annotations.last_modified,
    })
}

/// How long a result stays fresh.
pub fn cache_hint(hint: Option<types::CacheHint>) -> Option<model::CacheHint> {
    hint.map(|hint| model::CacheHint {
        ttl_ms: hint.ttl_ms,
        scope: match hint.scope {
            types::CacheScope::Public => model::CacheScope::Public,
            types::CacheScope::Private => model::CacheScope::Private,
        },
    })
}

/// One entry of a tool list.
pub fn tool(tool: tools::Tool) -> Checked<model::Tool> {
    Ok(model::Tool {
        input_schema: json(tool.input_schema, "input-schema")?,
        output_schema: tool.output_schema.map(|schema| json(schema, "output-schema")).transpose()?,
        meta: object(tool.meta, "meta")?,
        name: tool.name,
        title: tool.title,
        description: tool.description,
        annotations: tool.annotations.map(|annotations| model::ToolAnnotations {
            title: annotations.title,
            read_only: annotations.read_only,
            destructive: annotations.destructive,
            idempotent: annotations.idempotent,
            open_world: annotations.open_world,
        }),
        icons: icons(tool.icons),
        task_support: match tool.task_support {
            tools::TaskSupport::Forbidden => model::TaskSupport::Forbidden,
            tools::TaskSupport::Optional => model::TaskSupport::Optional,
            tools::TaskSupport::Required => model::TaskSupport::Required,
        },
    })
}

/// What a tool answered.
pub fn tool_result(result: types::ToolResult) -> Checked<model::CallToolResult> {
    Ok(model::CallToolResult {
        content: each(result.content, "content", content)?,
        structured_content: result.structured_content.map(|value| json(value, "structured-content")).transpose()?,
        is_error: result.is_error,
        meta: object(result.meta, "meta")?,
    })
}

fn content(content: types::Content) -> Checked<model::Content> {
    Ok(match content {
        types::Content::Text(text) => {
            model::Content::Text { text: text.text, annotations: annotations(text.annotations), meta: object(text.meta, "meta")? }
        }
        types::Content::Image(image) => model::Content::Image(media(image)?),
        types::Content::Audio(audio) => model::Content::Audio(media(audio)?),
        types::Content::ResourceLink(entry) => model::Content::Link(Box::new(resource(entry)?)),
        types::Content::EmbeddedResource(embedded) => model::Content::Embedded {
            contents: resource_contents(embedded.contents).map_err(|error| error.within("contents"))?,
            annotations: annotations(embedded.annotations),
            meta: object(embedded.meta, "meta")?,
        },
    })
}

fn media(media: types::MediaContent) -> Checked<model::Media> {
    Ok(model::Media {
        data: media.data.into(),
        mime_type: media.mime_type,
        annotations: annotations(media.annotations),
        meta: object(media.meta, "meta")?,
    })
}

/// One entry of a resource list.
pub fn resource(entry: types::ResourceEntry) -> Checked<model::Resource> {
    Ok(model::Resource {
        uri: entry.uri,
        name: entry.name,
        title: entry.title,
        description: entry.description,
        mime_type: entry.mime_type,
        size: entry.size,
        icons: icons(entry.icons),
        annotations: annotations(entry.annotations),
        meta: object(entry.meta, "meta")?,
    })
}

/// One entry of a template list.
pub fn template(template: resources::ResourceTemplate) -> Checked<model::ResourceTemplate> {
    Ok(model::ResourceTemplate {
        uri_template: template.uri_template,
        name: template.name,
        title: template.title,
        description: template.description,
        mime_type: template.mime_type,
        icons: icons(template.icons),
        annotations: annotations(template.annotations),
        meta: object(template.meta, "meta")?,
    })
}

/// A page of a guest's resource list; the cursor is still the guest's.
pub fn resource_page(page: resources::ResourcePage) -> Checked<model::ResourcePage> {
    Ok(model::ResourcePage {
        resources: each(page.resources, "resources", resource)?,
        next_cursor: page.next,
        cache: cache_hint(page.cache),
    })
}

fn resource_contents(contents: types::ResourceContents) -> Checked<model::ResourceContents> {
    Ok(model::ResourceContents {
        uri: contents.uri,
        mime_type: contents.mime_type,
        body: match contents.body {
            types::Body::Text(text) => model::Body::Text(text),
            types::Body::Blob(bytes) => model::Body::Blob(bytes.into()),
        },
        meta: object(contents.meta, "meta")?,
    })
}

/// What a resource holds.
pub fn read_result(result: resources::ReadResult) -> Checked<model::ReadResult> {
    Ok(model::ReadResult {
        contents: each(result.contents, "contents", resource_contents)?,
        cache: cache_hint(result.cache),
        meta: object(result.meta, "meta")?,
    })
}

/// One entry of a prompt list.
pub fn prompt(prompt: prompts::Prompt) -> Checked<model::Prompt> {
    Ok(model::Prompt {
        name: prompt.name,
        title: prompt.title,
        description: prompt.description,
        arguments: prompt
            .arguments
            .into_iter()
            .map(|argument| model::PromptArgument {
                name: argument.name,
                title: argument.title,
                description: argument.description,
                required: argument.required,
            })
            .collect(),
        icons: icons(prompt.icons),
        meta: object(prompt.meta, "meta")?,
    })
}

/// A prompt, filled in.
pub fn prompt_result(result: prompts::PromptResult) -> Checked<model::GetPromptResult> {
    Ok(model::GetPromptResult {
        description: result.description,
        messages: each(result.messages, "messages", |message: prompts::PromptMessage| {
            Ok(model::PromptMessage {
                role: role(message.role),
                content: content(message.content).map_err(|error| error.within("content"))?,
            })
        })?,
        meta: object(result.meta, "meta")?,
    })
}

/// What a guest asks the client.
pub fn input_required(required: types::InputRequired) -> Checked<model::InputRequired> {
    let questions = questions(required.questions)?;
    Ok(model::InputRequired { questions, guest_state: required.state, ..model::InputRequired::default() })
}

/// Questions, in the guest's order.
pub fn questions(asked: Vec<types::Asked>) -> Checked<Vec<model::questions::Asked>> {
    each(asked, "questions", |asked: types::Asked| {
        let question = match asked.question {
            types::Question::Elicit(params) => model::Question::Elicit(json(params, "elicit")?),
            types::Question::Sample(params) => model::Question::Sample(json(params, "sample")?),
            types::Question::ListRoots => model::Question::Roots,
        };
        Ok(model::questions::Asked { key: asked.key, question })
    })
}

/// A client's answer.
pub fn answer(answer: &Result<Json, RpcError>) -> Result<String, types::RpcError> {
    match answer {
        Ok(result) => Ok(result.get().to_owned()),
        Err(error) => Err(types::RpcError {
            code: error.code,
            message: error.message.clone(),
            data: error.data.as_ref().map(|data| data.get().to_owned()),
        }),
    }
}

/// What can stand for an argument.
pub fn completion(completions: completion::Completions) -> model::Completion {
    model::Completion { values: completions.values, total: completions.total, has_more: completions.has_more }
}

/// What an argument is completed for.
pub fn reference(reference: model::Reference) -> completion::Reference {
    match reference {
        model::Reference::Prompt(name) => completion::Reference::Prompt(name),
        model::Reference::Template(template) => completion::Reference::ResourceTemplate(template),
    }
}

/// How severe a log message is.
pub fn log_level(level: context::LogLevel) -> model::LogLevel {
    match level {
        context::LogLevel::Debug => model::LogLevel::Debug,
        context::LogLevel::Info => model::LogLevel::Info,
        context::LogLevel::Notice => model::LogLevel::Notice,
        context::LogLevel::Warning => model::LogLevel::Warning,
        context::LogLevel::Error => model::LogLevel::Error,
        context::LogLevel::Critical => model::LogLevel::Critical,
        context::LogLevel::Alert => model::LogLevel::Alert,
        context::LogLevel::Emergency => model::LogLevel::Emergency,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, meta: Option<&str>) -> types::Content {
        types::Content::Text(types::TextContent { text: text.into(), annotations: None, meta: meta.map(Into::into) })
    }

    #[test]
    fn a_bad_value_is_named_by_its_path() {
        let result = |content, structured: Option<&str>| types::ToolResult {
            content,
            structured_content: structured.map(Into::into),
            is_error: false,
            meta: None,
            more: None,
        };
        for (value, path) in [
            (result(vec![text("a", None), text("b", Some("{"))], None), "content[1].meta"),
            (result(vec![text("a", Some("[]"))], None), "content[0].meta"),
            (result(vec![], Some("{]")), "structured-content"),
        ] {
            assert_eq!(tool_result(value).unwrap_err().path, path);
        }
        assert!(tool_result(result(vec![text("a", Some("{}"))], Some("7"))).is_ok());
    }
}
