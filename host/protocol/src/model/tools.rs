//! `tools/list` and `tools/call`: tools, their pages, and what a call answers.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::common::{CacheHint, Icon, icons, item_meta, next_cursor, title};
use super::content::Content;
use crate::json::{Json, Object, array, is_object};
use crate::message::{entries, text};
use crate::revision::Revision;

/// A tool, as it is listed.
#[derive(Clone, Debug)]
pub struct Tool {
    /// What a call names.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For the model.
    pub description: Option<String>,
    /// Of the arguments. Must be an object with `type: "object"`; whoever loads the tool sees to that.
    pub input_schema: Json,
    /// Of the structured content. Reaches only revisions that can have it.
    pub output_schema: Option<Json>,
    /// Hints about what the tool does.
    pub annotations: Option<ToolAnnotations>,
    /// Pictures of it.
    pub icons: Vec<Icon>,
    /// Whether a call may run as a task. Clients learn of it in 2025-11-25 alone.
    pub task_support: TaskSupport,
    /// Its own `_meta`.
    pub meta: Option<Json>,
}

/// Hints about what a tool does. None means that its author did not say.
#[derive(Clone, Debug, Default)]
pub struct ToolAnnotations {
    /// For people; older than the tool's own title.
    pub title: Option<String>,
    /// Changes nothing.
    pub read_only: Option<bool>,
    /// May destroy something.
    pub destructive: Option<bool>,
    /// Twice is the same as once.
    pub idempotent: Option<bool>,
    /// Touches the world outside.
    pub open_world: Option<bool>,
}

/// Whether the host may run a call of a tool as a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TaskSupport {
    /// Never.
    #[default]
    Forbidden,
    /// If the client can follow a task.
    Optional,
    /// Always.
    Required,
}

/// A page of `tools/list`. The order is the dispatcher's, and is kept.
#[derive(Clone, Debug, Default)]
pub struct ToolPage {
    /// Shared, since a list is made once per version and sent many times.
    pub tools: Vec<Arc<Tool>>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
    /// How long the page stays fresh.
    pub cache: Option<CacheHint>,
}

/// What a tool answered.
#[derive(Clone, Debug, Default)]
pub struct CallToolResult {
    /// For the model.
    pub content: Vec<Content>,
    /// For programs.
    pub structured_content: Option<Json>,
    /// The tool ran, and failed at what it was asked to do.
    pub is_error: bool,
    /// The result's own `_meta`.
    pub meta: Option<Json>,
}

impl CallToolResult {
    /// A failure that the model should read.
    pub fn error(message: impl Into<String>) -> CallToolResult {
        CallToolResult { content: vec![Content::text(message)], is_error: true, ..CallToolResult::default() }
    }

    pub(crate) fn write(&self, object: &mut Object<'_>, revision: Revision) {
        let structured = self.structured_content.as_deref().filter(|value| can_structure(value, revision));
        let mirror = self.mirror(structured.is_some());
        let out = object.key("content");
        match mirror {
            None => array(out, &self.content, |out, content| content.write(out, revision)),
            Some(mirror) if self.content.is_empty() => {
                array(out, &[mirror], |out, content| content.write(out, revision));
            }
            Some(mirror) => {
                let blocks: Vec<&Content> = self.content.iter().chain([&mirror]).collect();
                array(out, &blocks, |out, content| content.write(out, revision));
            }
        }
        if let Some(structured) = structured {
            object.raw("structuredContent", structured);
        }
        if self.is_error {
            object.boolean("isError", true);
        }
    }

    /// The structured content as a text block: where there is no content at all, as the specification asks, and
    /// where the revision cannot carry it and no block looks like JSON already.
    fn mirror(&self, carried: bool) -> Option<Content> {
        let structured = self.structured_content.as_deref()?;
        let looks_mirrored = |content: &Content| match content {
            Content::Text { text, .. } => text.trim_start().starts_with(['{', '[']),
            Content::Image(_) | Content::Audio(_) | Content::Link(_) | Content::Embedded { .. } => false,
        };
        let needed = self.content.is_empty() || (!carried && !self.content.iter().any(looks_mirrored));
        needed.then(|| Content::text(structured.get()))
    }
}

/// Whether the revision has structured content, and of that kind.
fn can_structure(value: &RawValue, revision: Revision) -> bool {
    revision.has_structured_output() && (is_object(value) || revision.has_any_structured_output())
}

/// Whether the revision accepts the output schema: before the modern era it had to describe an object.
fn accepts_output_schema(schema: &RawValue, revision: Revision) -> bool {
    if revision.has_any_structured_output() {
        return is_object(schema);
    }
    revision.has_structured_output()
        && entries(schema)
            .is_some_and(|members| members.iter().any(|(name, value)| name == "type" && text(value).as_deref() == Some("object")))
}

impl ToolPage {
    pub(crate) fn write(&self, object: &mut Object<'_>, revision: Revision) {
        object.array("tools", &self.tools, |out, tool| tool.write(out, revision));
        next_cursor(object, self.next_cursor.as_deref());
        CacheHint::write(self.cache, object, revision);
    }
}

impl Tool {
    fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let mut object = Object::new(out);
        object.text("name", &self.name);
        title(&mut object, self.title.as_deref(), revision);
        object.optional_text("description", self.description.as_deref());
        object.raw("inputSchema", &self.input_schema);
        if let Some(schema) = self.output_schema.as_deref().filter(|schema| accepts_output_schema(schema, revision)) {
            object.raw("outputSchema", schema);
        }
        if let Some(annotations) = self.annotations.as_ref().filter(|_| revision.has_tool_annotations()) {
            annotations.write(object.key("annotations"));
        }
        if revision.has_task_param() {
            self.task_support.write(&mut object);
        }
        icons(&mut object, &self.icons, revision);
        item_meta(&mut object, self.meta.as_ref(), revision);
        object.end();
    }
}

impl TaskSupport {
    fn write(self, object: &mut Object<'_>) {
        let word = match self {
            TaskSupport::Forbidden => return,
            TaskSupport::Optional => "optional",
            TaskSupport::Required => "required",
        };
        let mut execution = Object::new(object.key("execution"));
        execution.text("taskSupport", word);
        execution.end();
    }
}

impl ToolAnnotations {
    fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::new(out);
        object.optional_text("title", self.title.as_deref());
        object.optional_boolean("readOnlyHint", self.read_only);
        object.optional_boolean("destructiveHint", self.destructive);
        object.optional_boolean("idempotentHint", self.idempotent);
        object.optional_boolean("openWorldHint", self.open_world);
        object.end();
    }
}
