//! Prompts: their descriptions as constants, and what they may return.

use std::borrow::Cow;

use crate::wit::{self, PromptArgument, PromptMessage, PromptOutcome, PromptPage, PromptResult, Role};
use crate::{Content, Error, Result};

/// What [`crate::server`] knows of a prompt.
#[doc(hidden)]
pub struct PromptSpec {
    pub name: &'static str,
    pub title: Option<&'static str>,
    pub description: &'static str,
    pub arguments: &'static [ArgumentSpec],
    pub meta: Option<&'static str>,
}

/// What it knows of an argument.
#[doc(hidden)]
pub struct ArgumentSpec {
    pub name: &'static str,
    pub description: &'static str,
    pub required: bool,
}

#[doc(hidden)]
pub fn page(specs: &[PromptSpec]) -> PromptPage {
    let argument = |spec: &ArgumentSpec| PromptArgument {
        name: spec.name.into(),
        title: None,
        description: some(spec.description),
        required: spec.required,
    };
    let prompt = |spec: &PromptSpec| wit::Prompt {
        name: spec.name.into(),
        title: spec.title.map(str::to_owned),
        description: some(spec.description),
        arguments: spec.arguments.iter().map(argument).collect(),
        meta: spec.meta.map(str::to_owned),
        ..wit::Prompt::default()
    };
    PromptPage { prompts: specs.iter().map(prompt).collect(), ..PromptPage::default() }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

/// The value of an argument, if it was given.
#[doc(hidden)]
pub fn argument<'a>(arguments: &'a [(String, String)], name: &str) -> Option<&'a str> {
    arguments.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

#[doc(hidden)]
pub fn required<'a>(arguments: &'a [(String, String)], name: &str) -> Result<&'a str, wit::Error> {
    argument(arguments, name).ok_or_else(|| wit::Error::InvalidParams(format!("The argument `{name}` is missing.")))
}

#[doc(hidden)]
pub fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(name: &str, value: &str) -> Result<T, wit::Error> {
    value.parse().map_err(|error| wit::Error::InvalidParams(format!("The argument `{name}` is wrong: {error}")))
}

/// One message of a prompt.
#[derive(Clone, Debug)]
pub struct Message(PromptMessage);

impl Message {
    /// What the user says.
    pub fn user(text: impl Into<String>) -> Self {
        Message::new(Role::User, Content::text(text))
    }

    /// What the assistant says.
    pub fn assistant(text: impl Into<String>) -> Self {
        Message::new(Role::Assistant, Content::text(text))
    }

    /// Any content.
    pub fn new(role: Role, content: Content) -> Self {
        Message(PromptMessage { role, content })
    }
}

/// Messages with a description of their own.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    /// In place of the prompt's.
    pub description: Option<String>,
    /// In their order.
    pub messages: Vec<Message>,
}

/// What a prompt may return.
#[diagnostic::on_unimplemented(
    message = "a prompt cannot return `{Self}`",
    label = "not something that a prompt can say",
    note = "return a text (one message of the user), `Message`, `Vec<Message>`, `guesthouse::Prompt`, or a `guesthouse::Result` of one of these"
)]
pub trait PromptReturn: Sized {
    /// The messages.
    fn prompt(self) -> Result<Prompt>;
}

impl PromptReturn for Prompt {
    fn prompt(self) -> Result<Prompt> {
        Ok(self)
    }
}

impl PromptReturn for Vec<Message> {
    fn prompt(self) -> Result<Prompt> {
        Ok(Prompt { description: None, messages: self })
    }
}

impl PromptReturn for Message {
    fn prompt(self) -> Result<Prompt> {
        vec![self].prompt()
    }
}

macro_rules! texts {
    ($($type:ty)*) => {
        $(impl PromptReturn for $type {
            fn prompt(self) -> Result<Prompt> {
                Message::user(self).prompt()
            }
        })*
    };
}
texts! { String &str Cow<'_, str> }

impl<T: PromptReturn, E: Into<Error>> PromptReturn for Result<T, E> {
    fn prompt(self) -> Result<Prompt> {
        self.map_err(Into::into)?.prompt()
    }
}

/// Ends a request for a prompt.
#[doc(hidden)]
pub fn finish(returned: impl PromptReturn, description: &str) -> Result<PromptOutcome, wit::Error> {
    match returned.prompt().map_err(Error::split) {
        Ok(prompt) => Ok(PromptOutcome::Complete(PromptResult {
            description: prompt.description.or_else(|| some(description)),
            messages: prompt.messages.into_iter().map(|message| message.0).collect(),
            meta: None,
        })),
        Err(Ok(asked)) => Ok(PromptOutcome::InputRequired(asked)),
        Err(Err(error)) => Err(error),
    }
}
