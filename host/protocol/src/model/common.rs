//! What several method families share: implementations, icons, annotations, cache hints.

use crate::json::{Json, Object, string};
use crate::revision::Revision;

/// A client or a server, as it describes itself.
#[derive(Clone, Debug, Default)]
pub struct Implementation {
    /// For programs.
    pub name: String,
    /// Its version, in whatever form it likes.
    pub version: String,
    /// For people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Where to read more.
    pub website_url: Option<String>,
    /// Pictures of it.
    pub icons: Vec<Icon>,
}

/// A picture that a client may show.
#[derive(Clone, Debug)]
pub struct Icon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// Overrides what the server of the picture says.
    pub mime_type: Option<String>,
    /// `48x48`, `any`.
    pub sizes: Vec<String>,
    /// The background that it is meant for.
    pub theme: Option<IconTheme>,
}

/// The background that an icon is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IconTheme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

/// Who speaks, or whom something is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Hints about how a client may use something.
#[derive(Clone, Debug, Default)]
pub struct Annotations {
    /// Whom it is meant for; empty if nobody said.
    pub audience: Vec<Role>,
    /// 0 (least) to 1 (most important); anything else is left out.
    pub priority: Option<f64>,
    /// ISO 8601.
    pub last_modified: Option<String>,
}

/// Who may keep a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CacheScope {
    /// Anyone, for anyone.
    Public,
    /// Only for the caller who asked.
    #[default]
    Private,
}

/// How long a result stays fresh, and for whom. The default is: not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CacheHint {
    /// Milliseconds.
    pub ttl_ms: u32,
    /// Who may keep it.
    pub scope: CacheScope,
}

impl Implementation {
    pub(crate) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let mut object = Object::new(out);
        object.text("name", &self.name);
        object.text("version", &self.version);
        title(&mut object, self.title.as_deref(), revision);
        if revision.has_icons() {
            object.optional_text("description", self.description.as_deref());
            object.optional_text("websiteUrl", self.website_url.as_deref());
        }
        icons(&mut object, &self.icons, revision);
        object.end();
    }
}

impl Annotations {
    fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let mut object = Object::new(out);
        if !self.audience.is_empty() {
            object.array("audience", &self.audience, |out, role| string(out, role.as_str()));
        }
        if let Some(priority) = self.priority.filter(|priority| (0.0..=1.0).contains(priority)) {
            object.number("priority", priority);
        }
        if revision.has_last_modified() {
            object.optional_text("lastModified", self.last_modified.as_deref());
        }
        object.end();
    }
}

impl Role {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

impl CacheHint {
    /// Only the modern era has cache hints; there, every cacheable result must have them.
    pub(crate) fn write(hint: Option<CacheHint>, object: &mut Object<'_>, revision: Revision) {
        if revision < Revision::V2026_07_28 {
            return;
        }
        let hint = hint.unwrap_or_default();
        object.integer("ttlMs", u64::from(hint.ttl_ms));
        let scope = match hint.scope {
            CacheScope::Public => "public",
            CacheScope::Private => "private",
        };
        object.text("cacheScope", scope);
    }
}

/// `title`, where the revision has it.
pub(super) fn title(object: &mut Object<'_>, title: Option<&str>, revision: Revision) {
    if revision.has_title() {
        object.optional_text("title", title);
    }
}

/// `icons`, where the revision has them.
pub(super) fn icons(object: &mut Object<'_>, icons: &[Icon], revision: Revision) {
    if icons.is_empty() || !revision.has_icons() {
        return;
    }
    object.array("icons", icons, |out, icon| {
        let mut object = Object::new(out);
        object.text("src", &icon.src);
        object.optional_text("mimeType", icon.mime_type.as_deref());
        if !icon.sizes.is_empty() {
            object.array("sizes", &icon.sizes, |out, size| string(out, size));
        }
        match icon.theme {
            Some(IconTheme::Light) => object.text("theme", "light"),
            Some(IconTheme::Dark) => object.text("theme", "dark"),
            None => {}
        }
        object.end();
    });
}

/// `annotations` of a resource or a content block.
pub(super) fn annotations(object: &mut Object<'_>, annotations: Option<&Annotations>, revision: Revision) {
    if let Some(annotations) = annotations {
        annotations.write(object.key("annotations"), revision);
    }
}

/// The `_meta` of an item, where the revision has it.
pub(super) fn item_meta(object: &mut Object<'_>, meta: Option<&Json>, revision: Revision) {
    if revision.has_item_meta() {
        object.optional_object("_meta", meta.map(AsRef::as_ref));
    }
}

/// `nextCursor` of a page.
pub(super) fn next_cursor(object: &mut Object<'_>, cursor: Option<&str>) {
    object.optional_text("nextCursor", cursor);
}
