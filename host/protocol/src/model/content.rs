//! Content blocks of tool results and prompt messages, and the contents of resources.

use bytes::Bytes;

use super::common::{Annotations, annotations, item_meta};
use super::resources::Resource;
use crate::json::{Json, Object, base64};
use crate::revision::Revision;

/// One block of content. A kind that the client's revision lacks reaches it as a text that says what was there.
#[derive(Clone, Debug)]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Hints for the client.
        annotations: Option<Annotations>,
        /// The block's own `_meta`.
        meta: Option<Json>,
    },
    /// A picture.
    Image(Media),
    /// Sound (since 2025-03-26).
    Audio(Media),
    /// A resource that the client may read (since 2025-06-18).
    Link(Box<Resource>),
    /// A resource, given at once.
    Embedded {
        /// The resource.
        contents: ResourceContents,
        /// Hints for the client.
        annotations: Option<Annotations>,
        /// The block's own `_meta`.
        meta: Option<Json>,
    },
}

/// A picture or a sound.
#[derive(Clone, Debug)]
pub struct Media {
    /// The bytes themselves; Base64 is made when they are written.
    pub data: Bytes,
    /// What they are.
    pub mime_type: String,
    /// Hints for the client.
    pub annotations: Option<Annotations>,
    /// The block's own `_meta`.
    pub meta: Option<Json>,
}

/// A resource with what is in it.
#[derive(Clone, Debug)]
pub struct ResourceContents {
    /// Where it lives.
    pub uri: String,
    /// What it is.
    pub mime_type: Option<String>,
    /// What is in it.
    pub body: Body,
    /// Its own `_meta`.
    pub meta: Option<Json>,
}

/// What is in a resource.
#[derive(Clone, Debug)]
pub enum Body {
    /// Text.
    Text(String),
    /// Bytes; Base64 is made when they are written.
    Blob(Bytes),
}

impl Content {
    /// A plain text.
    pub fn text(text: impl Into<String>) -> Content {
        Content::Text { text: text.into(), annotations: None, meta: None }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        match self {
            Content::Text { text, annotations, meta } => {
                write_text(out, text, annotations.as_ref(), meta.as_ref(), revision);
            }
            Content::Image(media) => media.write(out, "image", revision),
            Content::Audio(media) if revision.has_audio() => media.write(out, "audio", revision),
            Content::Audio(media) => {
                let text = format!("[audio, {}, {} bytes]", media.mime_type, media.data.len());
                write_text(out, &text, media.annotations.as_ref(), None, revision);
            }
            Content::Link(resource) if revision.has_resource_link() => resource.write(out, true, revision),
            Content::Link(resource) => {
                write_text(out, &link_text(resource), resource.annotations.as_ref(), None, revision);
            }
            Content::Embedded { contents, annotations: hints, meta } => {
                let mut object = Object::new(out);
                object.text("type", "resource");
                contents.write(object.key("resource"), revision);
                annotations(&mut object, hints.as_ref(), revision);
                item_meta(&mut object, meta.as_ref(), revision);
                object.end();
            }
        }
    }
}

fn write_text(out: &mut Vec<u8>, text: &str, hints: Option<&Annotations>, meta: Option<&Json>, revision: Revision) {
    let mut object = Object::new(out);
    object.text("type", "text");
    object.text("text", text);
    annotations(&mut object, hints, revision);
    item_meta(&mut object, meta, revision);
    object.end();
}

/// What a link says to a client that knows no links: its name and its address are what a model needs.
fn link_text(resource: &Resource) -> String {
    let name = resource.title.as_deref().unwrap_or(&resource.name);
    match &resource.description {
        Some(description) => format!("[resource] {name}: {} ({description})", resource.uri),
        None => format!("[resource] {name}: {}", resource.uri),
    }
}

impl Media {
    fn write(&self, out: &mut Vec<u8>, kind: &str, revision: Revision) {
        let mut object = Object::new(out);
        object.text("type", kind);
        base64(object.key("data"), &self.data);
        object.text("mimeType", &self.mime_type);
        annotations(&mut object, self.annotations.as_ref(), revision);
        item_meta(&mut object, self.meta.as_ref(), revision);
        object.end();
    }
}

impl ResourceContents {
    pub(super) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let mut object = Object::new(out);
        object.text("uri", &self.uri);
        object.optional_text("mimeType", self.mime_type.as_deref());
        match &self.body {
            Body::Text(text) => object.text("text", text),
            Body::Blob(bytes) => base64(object.key("blob"), bytes),
        }
        item_meta(&mut object, self.meta.as_ref(), revision);
        object.end();
    }
}
