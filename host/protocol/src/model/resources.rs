//! `resources/list`, `resources/templates/list` and `resources/read`.

use std::sync::Arc;

use super::common::{Annotations, CacheHint, Icon, annotations, icons, item_meta, next_cursor, title};
use super::content::ResourceContents;
use crate::json::{Json, Object};
use crate::revision::Revision;

/// A resource, as it is listed or linked to.
#[derive(Clone, Debug, Default)]
pub struct Resource {
    /// Where it lives.
    pub uri: String,
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For the model.
    pub description: Option<String>,
    /// What it is.
    pub mime_type: Option<String>,
    /// Bytes, before any encoding.
    pub size: Option<u64>,
    /// Pictures of it.
    pub icons: Vec<Icon>,
    /// Hints for the client.
    pub annotations: Option<Annotations>,
    /// Its own `_meta`.
    pub meta: Option<Json>,
}

/// A family of resources.
#[derive(Clone, Debug, Default)]
pub struct ResourceTemplate {
    /// RFC 6570.
    pub uri_template: String,
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For the model.
    pub description: Option<String>,
    /// What its members are, if they are all the same.
    pub mime_type: Option<String>,
    /// Pictures of it.
    pub icons: Vec<Icon>,
    /// Hints for the client.
    pub annotations: Option<Annotations>,
    /// Its own `_meta`.
    pub meta: Option<Json>,
}

/// A page of `resources/list`.
#[derive(Clone, Debug, Default)]
pub struct ResourcePage {
    /// In the dispatcher's order.
    pub resources: Vec<Resource>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
    /// How long the page stays fresh.
    pub cache: Option<CacheHint>,
}

/// A page of `resources/templates/list`.
#[derive(Clone, Debug, Default)]
pub struct TemplatePage {
    /// Shared, since a list is made once per version and sent many times.
    pub templates: Vec<Arc<ResourceTemplate>>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
    /// How long the page stays fresh.
    pub cache: Option<CacheHint>,
}

/// What a resource holds.
#[derive(Clone, Debug, Default)]
pub struct ReadResult {
    /// Usually one; several where a resource has parts.
    pub contents: Vec<ResourceContents>,
    /// How long the contents stay fresh.
    pub cache: Option<CacheHint>,
    /// The result's own `_meta`.
    pub meta: Option<Json>,
}

impl Resource {
    /// Writes the entry, or a content block that links to it.
    pub(super) fn write(&self, out: &mut Vec<u8>, as_link: bool, revision: Revision) {
        let mut object = Object::new(out);
        if as_link {
            object.text("type", "resource_link");
        }
        object.text("uri", &self.uri);
        object.text("name", &self.name);
        title(&mut object, self.title.as_deref(), revision);
        object.optional_text("description", self.description.as_deref());
        object.optional_text("mimeType", self.mime_type.as_deref());
        if let Some(size) = self.size {
            object.integer("size", size);
        }
        icons(&mut object, &self.icons, revision);
        annotations(&mut object, self.annotations.as_ref(), revision);
        item_meta(&mut object, self.meta.as_ref(), revision);
        object.end();
    }
}

impl ResourceTemplate {
    fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let mut object = Object::new(out);
        object.text("uriTemplate", &self.uri_template);
        object.text("name", &self.name);
        title(&mut object, self.title.as_deref(), revision);
        object.optional_text("description", self.description.as_deref());
        object.optional_text("mimeType", self.mime_type.as_deref());
        icons(&mut object, &self.icons, revision);
        annotations(&mut object, self.annotations.as_ref(), revision);
        item_meta(&mut object, self.meta.as_ref(), revision);
        object.end();
    }
}

impl ResourcePage {
    pub(crate) fn write(&self, object: &mut Object<'_>, revision: Revision) {
        object.array("resources", &self.resources, |out, resource| resource.write(out, false, revision));
        next_cursor(object, self.next_cursor.as_deref());
        CacheHint::write(self.cache, object, revision);
    }
}

impl TemplatePage {
    pub(crate) fn write(&self, object: &mut Object<'_>, revision: Revision) {
        object.array("resourceTemplates", &self.templates, |out, template| template.write(out, revision));
        next_cursor(object, self.next_cursor.as_deref());
        CacheHint::write(self.cache, object, revision);
    }
}

impl ReadResult {
    pub(crate) fn write(&self, object: &mut Object<'_>, revision: Revision) {
        object.array("contents", &self.contents, |out, contents| contents.write(out, revision));
        CacheHint::write(self.cache, object, revision);
    }
}
