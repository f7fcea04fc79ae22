//! `prompts/list` and `prompts/get`.

use std::sync::Arc;

use super::common::{CacheHint, Icon, Role, icons, item_meta, next_cursor, title};
use super::content::Content;
use crate::json::{Json, Object};
use crate::revision::Revision;

/// A prompt, as it is listed.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    /// What `prompts/get` names.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For people, too.
    pub description: Option<String>,
    /// What can be filled in.
    pub arguments: Vec<PromptArgument>,
    /// Pictures of it.
    pub icons: Vec<Icon>,
    /// Its own `_meta`.
    pub meta: Option<Json>,
}

/// Something that can be filled in.
#[derive(Clone, Debug, Default)]
pub struct PromptArgument {
    /// What `arguments` names.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For people, too.
    pub description: Option<String>,
    /// The prompt cannot do without it.
    pub required: bool,
}

/// A page of `prompts/list`.
#[derive(Clone, Debug, Default)]
pub struct PromptPage {
    /// Shared, since a list is made once per version and sent many times.
    pub prompts: Vec<Arc<Prompt>>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
    /// How long the page stays fresh.
    pub cache: Option<CacheHint>,
}

/// A prompt, filled in.
#[derive(Clone, Debug, Default)]
pub struct GetPromptResult {
    /// What it is for.
    pub description: Option<String>,
    /// What goes to the model.
    pub messages: Vec<PromptMessage>,
    /// The result's own `_meta`.
    pub meta: Option<Json>,
}

/// One message of a prompt.
#[derive(Clone, Debug)]
pub struct PromptMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: Content,
}

impl PromptPage {
    pub(crate) fn write(&self, object: &mut Object<'_>, revision: Revision) {
        object.array("prompts", &self.prompts, |out, prompt| prompt.write(out, revision));
        next_cursor(object, self.next_cursor.as_deref());
        CacheHint::write(self.cache, object, revision);
    }
}

impl Prompt {
    fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let mut object = Object::new(out);
        object.text("name", &self.name);
        title(&mut object, self.title.as_deref(), revision);
        object.optional_text("description", self.description.as_deref());
        if !self.arguments.is_empty() {
            object.array("arguments", &self.arguments, |out, argument| argument.write(out, revision));
        }
        icons(&mut object, &self.icons, revision);
        item_meta(&mut object, self.meta.as_ref(), revision);
        object.end();
    }
}

impl PromptArgument {
    fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let mut object = Object::new(out);
        object.text("name", &self.name);
        title(&mut object, self.title.as_deref(), revision);
        object.optional_text("description", self.description.as_deref());
        if self.required {
            object.boolean("required", true);
        }
        object.end();
    }
}

impl GetPromptResult {
    pub(crate) fn write(&self, object: &mut Object<'_>, revision: Revision) {
        object.optional_text("description", self.description.as_deref());
        object.array("messages", &self.messages, |out, message| {
            let mut object = Object::new(out);
            object.text("role", message.role.as_str());
            message.content.write(object.key("content"), revision);
            object.end();
        });
    }
}
