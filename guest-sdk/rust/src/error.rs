//! Why a callback failed, and who gets to know.

use std::borrow::Cow;

use crate::wit;

/// What handlers return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a handler failed. Anything that implements [`std::error::Error`] becomes one by `?`; [`crate::bail!`] makes one of a text.
///
/// It is no `std::error::Error` itself, since that would make the conversion by `?` ambiguous.
#[derive(Debug)]
pub struct Error(pub(crate) Kind);

#[derive(Debug)]
pub(crate) enum Kind {
    /// For a tool, a result with `isError` and this text; elsewhere it goes to the log.
    Failed(Cow<'static, str>),
    /// Passed on as it is.
    Contract(wit::Error),
    /// Not a failure: answers are needed first.
    Ask(wit::InputRequired),
}

impl Error {
    /// The work failed. In a tool, the model sees this text and may try again; in a resource or a prompt it goes to the log.
    pub fn failed(text: impl Into<Cow<'static, str>>) -> Self {
        Error(Kind::Failed(text.into()))
    }

    /// There is no such resource, prompt or whatever was asked for by this name.
    pub fn not_found(name: impl Into<String>) -> Self {
        Error(Kind::Contract(wit::Error::NotFound(name.into())))
    }

    /// The arguments are wrong. The client sees this text.
    pub fn invalid(text: impl Into<String>) -> Self {
        Error(Kind::Contract(wit::Error::InvalidParams(text.into())))
    }

    /// The guest is at fault. The text goes to the log, never to the client.
    pub fn internal(text: impl Into<String>) -> Self {
        Error(Kind::Contract(wit::Error::Internal(text.into())))
    }

    /// The client lacks capabilities: a `ClientCapabilities` object, such as `{"sampling":{}}`.
    pub fn missing_capability(capabilities: impl Into<String>) -> Self {
        Error(Kind::Contract(wit::Error::MissingClientCapability(capabilities.into())))
    }

    /// A JSON-RPC error with a code of the server's own.
    pub fn rpc(code: i32, message: impl Into<String>) -> Self {
        Error(Kind::Contract(wit::Error::Rpc(wit::RpcError { code, message: message.into(), data: None })))
    }

    /// Ends the callback with questions for the client, after whose answers it is run again from the top.
    pub fn ask(questions: Vec<wit::Asked>) -> Self {
        Error(Kind::Ask(wit::InputRequired { questions, state: None }))
    }

    /// Adds what [`crate::Ctx::state`] is to give on the next run; means nothing unless the error asks for answers.
    pub fn with_state(mut self, state: impl Into<Vec<u8>>) -> Self {
        if let Kind::Ask(asked) = &mut self.0 {
            asked.state = Some(state.into());
        }
        self
    }

    /// The error outside of a tool's result, or the questions.
    pub(crate) fn split(self) -> Result<wit::InputRequired, wit::Error> {
        match self.0 {
            Kind::Failed(text) => Err(wit::Error::Internal(text.into())),
            Kind::Contract(error) => Err(error),
            Kind::Ask(asked) => Ok(asked),
        }
    }
}

impl<E: std::error::Error + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let mut error = Some(error);
        // An error of the contract keeps its meaning.
        if let Some(error) = (&mut error as &mut dyn std::any::Any).downcast_mut::<Option<wit::Error>>().and_then(Option::take) {
            return Error(Kind::Contract(error));
        }
        Error::failed(error.map(|error| error.to_string()).unwrap_or_default())
    }
}

/// Fails with a formatted text: `bail!("no city is called {name}")`.
#[macro_export]
macro_rules! bail {
    ($($text:tt)+) => {
        return ::core::result::Result::Err($crate::Error::failed(::std::format!($($text)+)).into())
    };
}

/// Fails with a formatted text unless a condition holds: `ensure!(count > 0, "nothing to count")`.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            $crate::bail!($($text)+);
        }
    };
}
