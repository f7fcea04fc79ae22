//! Tests of handlers with `cargo test`, without WebAssembly: a stand-in for the host, per thread.
//!
//! ```
//! # #[derive(Default)] struct Greeter;
//! # #[guesthouse::server] impl Greeter { #[tool] fn greet(name: &str) -> String { format!("Hello, {name}!") } }
//! use guesthouse::testing;
//!
//! let server = testing::start::<Greeter>("{}").unwrap();
//! assert_eq!(testing::call(&server, "greet", r#"{"name":"Ada"}"#).unwrap().text(), "Hello, Ada!");
//! ```

use crate::wit::{self, Content, ToolOutcome};
use crate::{Server, Tools};

/// Makes a server as the host does, from a configuration in JSON.
pub fn start<S: Server>(config: &str) -> Result<S, String> {
    S::init(config)
}

/// Calls a tool that is expected to finish; an outcome of another kind is an error that shows it. State that the call wrote
/// is kept for later calls on this thread if it finished, and forgotten if it did not, as a host does it.
pub fn call(server: &impl Tools, name: &str, arguments: &str) -> Result<Called, String> {
    #[cfg(all(feature = "state", not(target_family = "wasm")))]
    let before = crate::state::stand_in::snapshot();
    let outcome = server.call_tool(name, arguments);
    #[cfg(all(feature = "state", not(target_family = "wasm")))]
    if !matches!(&outcome, Ok(ToolOutcome::Complete(result)) if !result.is_error) && !matches!(outcome, Ok(ToolOutcome::Task(_))) {
        crate::state::stand_in::restore(before);
    }
    match outcome {
        Ok(ToolOutcome::Complete(result)) => Ok(Called(result)),
        other => Err(format!("{other:?}")),
    }
}

/// The result of a call.
#[derive(Debug)]
pub struct Called(pub wit::ToolResult);

impl Called {
    /// All text blocks.
    pub fn text(&self) -> String {
        let texts = self.0.content.iter().filter_map(|content| match content {
            Content::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The structured content; null where there is none.
    pub fn structured(&self) -> serde_json::Value {
        self.0.structured_content.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Whether the tool failed.
    pub fn is_error(&self) -> bool {
        self.0.is_error
    }
}

#[cfg(not(target_family = "wasm"))]
pub use stand_in::{Changes, Script, Seen, script, seen};

#[cfg(not(target_family = "wasm"))]
pub(crate) mod stand_in {
    use std::cell::RefCell;
    use std::collections::HashMap;

    use crate::wit::{LogLevel, ProgressError, RequestInfo, RpcError};

    /// What the stand-in is to say.
    #[derive(Clone, Debug, Default)]
    pub struct Script {
        /// The request; none by default.
        pub request: Option<RequestInfo>,
        /// Answers by key: the `result` of the client as JSON.
        pub answers: HashMap<String, Result<String, RpcError>>,
        /// State of the round before.
        pub state: Option<Vec<u8>>,
    }

    /// What the handlers did since [`script`].
    #[derive(Clone, Debug, Default)]
    pub struct Seen {
        /// Level, logger and JSON of each log message.
        pub logs: Vec<(LogLevel, Option<String>, String)>,
        /// Value, total and message of each report.
        pub progress: Vec<(f64, Option<f64>, Option<String>)>,
        /// Changes that were announced.
        pub changes: Changes,
    }

    /// Announced changes.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Changes {
        /// Of the list of tools.
        pub tools: bool,
        /// Of the list of prompts.
        pub prompts: bool,
        /// Of the list of resources.
        pub resources: bool,
        /// URIs of resources with other contents.
        pub updated: Vec<String>,
    }

    thread_local! {
        static HOST: RefCell<(Script, Seen)> = RefCell::default();
    }

    /// Sets what the stand-in says on this thread, and forgets what it saw.
    pub fn script(script: Script) {
        HOST.set((script, Seen::default()));
    }

    /// What the handlers on this thread did.
    pub fn seen() -> Seen {
        HOST.with_borrow(|host| host.1.clone())
    }

    pub(crate) fn request() -> Option<RequestInfo> {
        HOST.with_borrow(|host| host.0.request.clone())
    }

    pub(crate) fn answer(key: &str) -> Option<Result<String, RpcError>> {
        HOST.with_borrow(|host| host.0.answers.get(key).cloned())
    }

    pub(crate) fn state() -> Option<Vec<u8>> {
        HOST.with_borrow(|host| host.0.state.clone())
    }

    pub(crate) fn report_progress(progress: f64, total: Option<f64>, message: Option<&str>) -> Result<(), ProgressError> {
        HOST.with_borrow_mut(|(_, seen)| {
            if seen.progress.last().is_some_and(|last| last.0 >= progress) {
                return Err(ProgressError::NotIncreasing);
            }
            seen.progress.push((progress, total, message.map(str::to_owned)));
            Ok(())
        })
    }

    pub(crate) fn log(level: LogLevel, logger: Option<&str>, data: &str) {
        HOST.with_borrow_mut(|host| host.1.logs.push((level, logger.map(str::to_owned), data.into())));
    }

    /// Tests have all the time there is.
    pub(crate) fn time_left_ms() -> u32 {
        u32::MAX
    }

    pub(crate) fn tools_changed() {
        HOST.with_borrow_mut(|host| host.1.changes.tools = true);
    }

    pub(crate) fn prompts_changed() {
        HOST.with_borrow_mut(|host| host.1.changes.prompts = true);
    }

    pub(crate) fn resources_changed() {
        HOST.with_borrow_mut(|host| host.1.changes.resources = true);
    }

    pub(crate) fn resource_updated(uri: &str) {
        HOST.with_borrow_mut(|host| host.1.changes.updated.push(uri.into()));
    }
}
