//! Tools: their descriptions as constants, and what they may return.

use std::borrow::Cow;

use serde::Serialize;

use crate::error::Kind;
use crate::schema::{About, Writer};
use crate::wit::{
    EmbeddedResource, MediaContent, ResourceContents, TaskSupport, TextContent, Tool, ToolAnnotations, ToolOutcome, ToolPage,
};
use crate::{Error, Json, Result, Schema, json, schema, wit};

/// One block of a result or a message.
pub use crate::wit::Content;

/// What [`crate::server`] knows of a tool.
#[doc(hidden)]
pub struct ToolSpec {
    pub name: &'static str,
    pub title: Option<&'static str>,
    pub description: &'static str,
    pub input: SchemaSource,
    pub output: Option<SchemaSource>,
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
    pub task: TaskSupport,
    pub meta: Option<&'static str>,
}

/// Where a schema comes from.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum SchemaSource {
    /// From types.
    Body(fn(&mut Writer, &About)),
    /// JSON text of the author's, which must reach clients as it is.
    Text(&'static str),
}

impl SchemaSource {
    fn text(self) -> String {
        match self {
            SchemaSource::Body(body) => schema::text(body),
            SchemaSource::Text(text) => text.into(),
        }
    }
}

#[doc(hidden)]
pub fn page(specs: &[ToolSpec]) -> ToolPage {
    ToolPage { tools: specs.iter().map(tool).collect(), ..ToolPage::default() }
}

fn tool(spec: &ToolSpec) -> Tool {
    let hints = [spec.read_only, spec.destructive, spec.idempotent, spec.open_world];
    let [read_only, destructive, idempotent, open_world] = hints;
    let annotations = ToolAnnotations { title: None, read_only, destructive, idempotent, open_world };
    Tool {
        name: spec.name.into(),
        title: spec.title.map(str::to_owned),
        description: Some(spec.description.to_owned()).filter(|text| !text.is_empty()),
        input_schema: spec.input.text(),
        output_schema: spec.output.map(SchemaSource::text),
        annotations: hints.iter().any(Option::is_some).then_some(annotations),
        icons: Vec::new(),
        task_support: spec.task,
        meta: spec.meta.map(str::to_owned),
        more: None,
    }
}

/// A result with everything that a tool can say.
#[derive(Clone, Debug, Default)]
pub struct ToolResult(pub(crate) wit::ToolResult);

impl ToolResult {
    /// Nothing yet.
    pub fn new() -> Self {
        ToolResult::default()
    }

    /// Adds a text.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.content(Content::text(text))
    }

    /// Adds a block.
    pub fn content(mut self, content: Content) -> Self {
        self.0.content.push(content);
        self
    }

    /// Says that the tool failed; the content says why.
    pub fn error(mut self) -> Self {
        self.0.is_error = true;
        self
    }

    /// Sets the structured content. Declare its schema with `#[tool(output = T)]`.
    pub fn structured<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self> {
        self.0.structured_content = Some(json::to_text(value)?);
        Ok(self)
    }

    /// Sets `_meta`, a JSON object.
    pub fn meta<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self> {
        self.0.meta = Some(json::to_text(value)?);
        Ok(self)
    }
}

impl Content {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text(TextContent { text: text.into(), ..TextContent::default() })
    }

    /// An image: its bytes (the host does the Base64) and its type, such as `image/png`.
    pub fn image(data: impl Into<Vec<u8>>, mime_type: impl Into<String>) -> Self {
        Content::Image(MediaContent { data: data.into(), mime_type: mime_type.into(), annotations: None, meta: None })
    }

    /// A sound: its bytes and its type, such as `audio/wav`.
    pub fn audio(data: impl Into<Vec<u8>>, mime_type: impl Into<String>) -> Self {
        Content::Audio(MediaContent { data: data.into(), mime_type: mime_type.into(), annotations: None, meta: None })
    }

    /// A resource with its contents.
    pub fn embed(contents: ResourceContents) -> Self {
        Content::EmbeddedResource(EmbeddedResource { contents, annotations: None, meta: None })
    }

    /// A resource to be read elsewhere.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Content::ResourceLink(wit::ResourceEntry { uri: uri.into(), name: name.into(), ..Default::default() })
    }
}

/// The id of a job that the server runs elsewhere and reports on through [`crate::Tasks`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskId(pub String);

/// What a tool may return.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not something that a tool can answer",
    note = "return a text, `Json<T>` (structured, with the schema of T), `(String, Json<T>)`, `Content`, `Vec<Content>`, `ToolResult`, or a `guesthouse::Result` of one of these"
)]
pub trait ToolReturn: Sized {
    /// The schema of its structured content.
    const OUTPUT: Option<fn(&mut Writer, &About)> = None;

    /// The result of the call.
    fn outcome(self) -> Result<ToolOutcome>;
}

impl ToolReturn for ToolResult {
    fn outcome(self) -> Result<ToolOutcome> {
        Ok(ToolOutcome::Complete(self.0))
    }
}

impl ToolReturn for wit::ToolOutcome {
    fn outcome(self) -> Result<ToolOutcome> {
        Ok(self)
    }
}

impl ToolReturn for () {
    fn outcome(self) -> Result<ToolOutcome> {
        ToolResult::new().outcome()
    }
}

macro_rules! texts {
    ($($type:ty)*) => {
        $(impl ToolReturn for $type {
            fn outcome(self) -> Result<ToolOutcome> {
                ToolResult::new().text(self).outcome()
            }
        })*
    };
}
texts! { String &str Cow<'_, str> }

impl ToolReturn for Content {
    fn outcome(self) -> Result<ToolOutcome> {
        ToolResult::new().content(self).outcome()
    }
}

impl ToolReturn for Vec<Content> {
    fn outcome(self) -> Result<ToolOutcome> {
        ToolResult(wit::ToolResult { content: self, ..Default::default() }).outcome()
    }
}

impl ToolReturn for TaskId {
    fn outcome(self) -> Result<ToolOutcome> {
        Ok(ToolOutcome::Task(self.0))
    }
}

const fn output<T: Schema>() -> Option<fn(&mut Writer, &About)> {
    assert!(T::OBJECT, "structured output must be a JSON object: put the value into a struct with `#[guesthouse::data]`");
    Some(T::members)
}

/// Structured content, and the same as text for clients that read only that.
impl<T: Serialize + Schema> ToolReturn for Json<T> {
    const OUTPUT: Option<fn(&mut Writer, &About)> = output::<T>();

    fn outcome(self) -> Result<ToolOutcome> {
        let text = json::to_text(&self.0)?;
        let mut result = ToolResult::new().text(text.as_str());
        result.0.structured_content = Some(text);
        result.outcome()
    }
}

/// Structured content, and a text of its own.
impl<S: Into<String>, T: Serialize + Schema> ToolReturn for (S, Json<T>) {
    const OUTPUT: Option<fn(&mut Writer, &About)> = output::<T>();

    fn outcome(self) -> Result<ToolOutcome> {
        ToolResult::new().text(self.0).structured(&self.1.0)?.outcome()
    }
}

impl<T: ToolReturn, E: Into<Error>> ToolReturn for Result<T, E> {
    const OUTPUT: Option<fn(&mut Writer, &About)> = T::OUTPUT;

    fn outcome(self) -> Result<ToolOutcome> {
        self.map_err(Into::into)?.outcome()
    }
}

/// Ends a call: a failure becomes a result with `isError`, so that the model can correct itself.
#[doc(hidden)]
pub fn finish(returned: impl ToolReturn) -> Result<ToolOutcome, wit::Error> {
    match returned.outcome().map_err(|error| error.0) {
        Ok(outcome) => Ok(outcome),
        Err(Kind::Failed(text)) => Ok(ToolOutcome::Complete(ToolResult::new().text(text).error().0)),
        Err(Kind::Ask(asked)) => Ok(ToolOutcome::InputRequired(asked)),
        Err(Kind::Contract(error)) => Err(error),
    }
}
