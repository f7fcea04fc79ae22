//! What callbacks come to: whether a success is the whole work, and how guests say that they failed.

use super::bindings::{completion, lifecycle, prompts, resources, tasks, tools, types};

/// A callback's success.
pub(super) trait Outcome {
    /// Whether the callback has done its work. One that asks the client first has not.
    fn is_complete(&self) -> bool {
        true
    }

    /// Whether what the callback wrote is kept. What only describes the guest may be asked at any time, and changes nothing.
    fn keeps_writes(&self) -> bool {
        self.is_complete()
    }
}

impl Outcome for () {}
impl Outcome for completion::Completions {}
impl Outcome for tasks::Task {}

/// These only describe.
macro_rules! descriptions {
    ($($outcome:ty),*) => {
        $(impl Outcome for $outcome {
            fn keeps_writes(&self) -> bool {
                false
            }
        })*
    };
}

descriptions!(lifecycle::ServerInfo, tools::ToolPage, resources::ResourcePage, resources::TemplatePage, prompts::PromptPage);

impl Outcome for tools::ToolOutcome {
    fn is_complete(&self) -> bool {
        match self {
            tools::ToolOutcome::Complete(_) | tools::ToolOutcome::Task(_) => true,
            tools::ToolOutcome::InputRequired(_) => false,
        }
    }

    /// A result that says that the tool failed is how its errors look to a model: they leave no trace either.
    fn keeps_writes(&self) -> bool {
        match self {
            tools::ToolOutcome::Complete(result) => !result.is_error,
            tools::ToolOutcome::Task(_) => true,
            tools::ToolOutcome::InputRequired(_) => false,
        }
    }
}

impl Outcome for resources::ReadOutcome {
    fn is_complete(&self) -> bool {
        match self {
            resources::ReadOutcome::Complete(_) => true,
            resources::ReadOutcome::InputRequired(_) => false,
        }
    }
}

impl Outcome for prompts::PromptOutcome {
    fn is_complete(&self) -> bool {
        match self {
            prompts::PromptOutcome::Complete(_) => true,
            prompts::PromptOutcome::InputRequired(_) => false,
        }
    }
}

/// How guests say that a callback failed.
pub(super) trait GuestError {
    fn into_error(self) -> types::Error;
}

impl GuestError for types::Error {
    fn into_error(self) -> types::Error {
        self
    }
}

impl GuestError for String {
    fn into_error(self) -> types::Error {
        types::Error::Internal(self)
    }
}
