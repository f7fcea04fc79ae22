//! Resources and templates: their descriptions as constants, and what they may return.

use std::borrow::Cow;

use serde::Serialize;

use crate::wit::{Body, ReadOutcome, ReadResult, ResourceContents, ResourceEntry, ResourcePage, ResourceTemplate, TemplatePage};
use crate::{Error, Json, Result, json, wit};

/// What [`crate::server`] knows of a resource or of a template.
#[doc(hidden)]
pub struct ResourceSpec {
    pub uri: &'static str,
    pub name: &'static str,
    pub title: Option<&'static str>,
    pub description: &'static str,
    pub mime_type: &'static str,
    pub meta: Option<&'static str>,
}

#[doc(hidden)]
pub fn page(specs: &[ResourceSpec]) -> ResourcePage {
    let entry = |spec: &ResourceSpec| ResourceEntry {
        uri: spec.uri.into(),
        name: spec.name.into(),
        title: spec.title.map(str::to_owned),
        description: some(spec.description),
        mime_type: some(spec.mime_type),
        meta: spec.meta.map(str::to_owned),
        ..ResourceEntry::default()
    };
    ResourcePage { resources: specs.iter().map(entry).collect(), ..ResourcePage::default() }
}

#[doc(hidden)]
pub fn template_page(specs: &[ResourceSpec]) -> TemplatePage {
    let entry = |spec: &ResourceSpec| ResourceTemplate {
        uri_template: spec.uri.into(),
        name: spec.name.into(),
        title: spec.title.map(str::to_owned),
        description: some(spec.description),
        mime_type: some(spec.mime_type),
        meta: spec.meta.map(str::to_owned),
        ..ResourceTemplate::default()
    };
    TemplatePage { templates: specs.iter().map(entry).collect(), ..TemplatePage::default() }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

/// What a resource may return.
#[diagnostic::on_unimplemented(
    message = "a resource cannot return `{Self}`",
    label = "not something that a resource can hold",
    note = "return a text, bytes (`Vec<u8>`), `Json<T>`, an `Option` of these (`None`: no such resource), `guesthouse::wit::ReadResult`, or a `guesthouse::Result` of one of these"
)]
pub trait ResourceReturn: Sized {
    /// The type of the contents, where the resource does not declare one; empty for unknown.
    const MIME_TYPE: &'static str;

    /// The contents; none where there is no such resource.
    fn contents(self, uri: &str, mime_type: &str) -> Result<Option<ReadResult>>;
}

fn single(uri: &str, mime_type: &str, body: Body) -> Result<Option<ReadResult>> {
    let contents = ResourceContents { uri: uri.into(), mime_type: some(mime_type), body, meta: None };
    Ok(Some(ReadResult { contents: vec![contents], ..ReadResult::default() }))
}

macro_rules! bodies {
    ($($type:ty, $mime:literal, $variant:ident;)*) => {
        $(impl ResourceReturn for $type {
            const MIME_TYPE: &'static str = $mime;
            fn contents(self, uri: &str, mime_type: &str) -> Result<Option<ReadResult>> {
                single(uri, mime_type, Body::$variant(self.into()))
            }
        })*
    };
}
bodies! {
    String, "text/plain", Text;
    &str, "text/plain", Text;
    Cow<'_, str>, "text/plain", Text;
    Vec<u8>, "application/octet-stream", Blob;
    &[u8], "application/octet-stream", Blob;
}

impl<T: Serialize> ResourceReturn for Json<T> {
    const MIME_TYPE: &'static str = "application/json";

    fn contents(self, uri: &str, mime_type: &str) -> Result<Option<ReadResult>> {
        json::to_text(&self.0)?.contents(uri, mime_type)
    }
}

impl ResourceReturn for ReadResult {
    const MIME_TYPE: &'static str = "";

    fn contents(self, _uri: &str, _mime_type: &str) -> Result<Option<ReadResult>> {
        Ok(Some(self))
    }
}

impl<T: ResourceReturn> ResourceReturn for Option<T> {
    const MIME_TYPE: &'static str = T::MIME_TYPE;

    fn contents(self, uri: &str, mime_type: &str) -> Result<Option<ReadResult>> {
        self.map_or(Ok(None), |found| found.contents(uri, mime_type))
    }
}

impl<T: ResourceReturn, E: Into<Error>> ResourceReturn for Result<T, E> {
    const MIME_TYPE: &'static str = T::MIME_TYPE;

    fn contents(self, uri: &str, mime_type: &str) -> Result<Option<ReadResult>> {
        self.map_err(Into::into)?.contents(uri, mime_type)
    }
}

/// Ends a read.
#[doc(hidden)]
pub fn finish(returned: impl ResourceReturn, uri: &str, mime_type: &str) -> Result<ReadOutcome, wit::Error> {
    match returned.contents(uri, mime_type).map_err(Error::split) {
        Ok(Some(result)) => Ok(ReadOutcome::Complete(result)),
        Ok(None) => Err(wit::Error::NotFound(uri.into())),
        Err(Ok(asked)) => Ok(ReadOutcome::InputRequired(asked)),
        Err(Err(error)) => Err(error),
    }
}
