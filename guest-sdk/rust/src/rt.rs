//! What the macros' code refers to; not for use by hand.

pub use crate::arguments::{Arguments, As, BySerde, Direct};
pub use crate::completion::{finish as finish_completion, from_list};
pub use crate::export::{Exported, Instance, Slot};
pub use crate::prompt::{ArgumentSpec, PromptSpec, argument, finish as finish_prompt, page as prompt_page, parse, required};
pub use crate::resource::{ResourceSpec, finish as finish_resource, page as resource_page, template_page};
pub use crate::schema::{About, Property, Writer};
pub use crate::template::{Part, matches};
pub use crate::tool::{SchemaSource, ToolSpec, finish as finish_tool, page as tool_page};

use serde::de::DeserializeOwned;

use crate::{json, wit};

/// A tool's arguments. The host has checked them, so what fails here is what a schema cannot say.
pub fn arguments<T: DeserializeOwned>(text: &str) -> Result<T, wit::Error> {
    json::from_text(text).map_err(|error| wit::Error::InvalidParams(format!("The arguments do not fit: {error}")))
}

/// The operator's configuration.
pub fn config<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    json::from_text(if text.is_empty() { "{}" } else { text }).map_err(|error| format!("the configuration does not fit: {error}"))
}

pub fn unknown<T>(name: &str) -> Result<T, wit::Error> {
    Err(wit::Error::NotFound(name.into()))
}

/// How a server begins that says nothing about it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how it begins",
    label = "cannot be made",
    note = "put `#[derive(Default)]` on `{Self}`, or give it an `#[init]` function that makes one"
)]
pub trait Start: Sized {
    fn start() -> Self;
}

impl<T: Default> Start for T {
    fn start() -> Self {
        T::default()
    }
}

/// What an `#[init]` function may return.
#[diagnostic::on_unimplemented(message = "an `#[init]` function cannot return `{Self}`", note = "return the server, or a `Result` of it")]
pub trait InitReturn<S> {
    fn server(self) -> Result<S, String>;
}

impl<S> InitReturn<S> for S {
    fn server(self) -> Result<S, String> {
        Ok(self)
    }
}

impl<S, E: Into<crate::Error>> InitReturn<S> for Result<S, E> {
    fn server(self) -> Result<S, String> {
        self.map_err(|error| match error.into().split() {
            Err(error) => contract_text(error),
            Ok(_) => "a server cannot ask the client before it runs".into(),
        })
    }
}

/// The text that the author gave.
fn contract_text(error: wit::Error) -> String {
    match error {
        wit::Error::NotFound(text) | wit::Error::InvalidParams(text) | wit::Error::Internal(text) => text,
        wit::Error::MissingClientCapability(text) => text,
        wit::Error::Rpc(error) => error.message,
    }
}

/// What `#[subscribe]` and `#[unsubscribe]` functions may return.
#[diagnostic::on_unimplemented(message = "a subscription cannot return `{Self}`", note = "return nothing, or a `guesthouse::Result<()>`")]
pub trait SubscriptionReturn {
    fn result(self) -> crate::Result<()>;
}

impl SubscriptionReturn for () {
    fn result(self) -> crate::Result<()> {
        Ok(())
    }
}

impl<E: Into<crate::Error>> SubscriptionReturn for Result<(), E> {
    fn result(self) -> crate::Result<()> {
        self.map_err(Into::into)
    }
}

pub fn finish_subscription(returned: impl SubscriptionReturn) -> Result<(), wit::Error> {
    returned.result().map_err(|error| match error.split() {
        Err(error) => error,
        Ok(_) => wit::Error::Internal("a subscription cannot ask the client".into()),
    })
}
