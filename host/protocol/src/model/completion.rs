//! `completion/complete`: what can stand for an argument of a prompt or a variable of a template.

use crate::json::{Object, string};

/// The specification allows no more values than these.
pub const COMPLETION_VALUES_MAX: usize = 100;

/// What is being filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A prompt, by name.
    Prompt(String),
    /// A resource template, by its URI template.
    Template(String),
}

/// What can stand there.
#[derive(Clone, Debug, Default)]
pub struct Completion {
    /// Best first. Cut to [`COMPLETION_VALUES_MAX`].
    pub values: Vec<String>,
    /// How many there are in all.
    pub total: Option<u32>,
    /// There are more than these.
    pub has_more: bool,
}

impl Completion {
    pub(crate) fn write(&self, object: &mut Object<'_>) {
        let shown = self.values.get(..COMPLETION_VALUES_MAX).unwrap_or(&self.values);
        let mut completion = Object::new(object.key("completion"));
        completion.array("values", shown, |out, value| string(out, value));
        if let Some(total) = self.total {
            completion.integer("total", u64::from(total));
        }
        if self.has_more || shown.len() < self.values.len() {
            completion.boolean("hasMore", true);
        }
        completion.end();
    }
}
