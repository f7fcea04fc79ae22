//! What a handler may know of its request, and send while it runs.

use std::cell::OnceCell;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::wit::RequestInfo;
use crate::{Error, Result, host, json, wit};

pub use crate::wit::{LogLevel as Level, ProgressError};

/// The request that a handler serves. A handler that takes a `&Ctx` parameter gets it; it cannot outlive the call.
#[derive(Default)]
pub struct Ctx {
    request: OnceCell<Option<RequestInfo>>,
}

impl Ctx {
    #[doc(hidden)]
    pub fn new() -> Self {
        Ctx::default()
    }

    /// All that the host tells of the request; none outside of one.
    pub fn request(&self) -> Option<&RequestInfo> {
        self.request.get_or_init(host::request).as_ref()
    }

    /// The authenticated caller, as the host verified it.
    pub fn principal(&self) -> Option<&str> {
        self.request()?.principal.as_deref()
    }

    /// The caller's tenant.
    pub fn tenant(&self) -> Option<&str> {
        self.request()?.tenant.as_deref()
    }

    /// The session, which only clients of the handshake era have.
    pub fn session(&self) -> Option<&str> {
        self.request()?.session.as_deref()
    }

    /// The revision in use, such as `2026-07-28`.
    pub fn protocol_version(&self) -> Option<&str> {
        self.request().map(|request| request.protocol_version.as_str())
    }

    /// Whether the client declared a capability: `sampling`, or deeper, `elicitation/url`.
    pub fn client_supports(&self, capability: &str) -> bool {
        self.request()
            .and_then(|request| json::from_text::<Value>(&request.client_capabilities).ok())
            .is_some_and(|capabilities| capabilities.pointer(&format!("/{capability}")).is_some())
    }

    /// Fails, with the error that clients understand, unless the client declared a capability such as `sampling`.
    pub fn require_client(&self, capability: &str) -> Result<()> {
        if self.client_supports(capability) {
            return Ok(());
        }
        let missing = capability.rsplit('/').fold("{}".to_string(), |inner, key| format!("{{{}:{inner}}}", json::quote(key)));
        Err(Error::missing_capability(missing))
    }

    /// Time left for this callback.
    pub fn time_left(&self) -> Duration {
        Duration::from_millis(host::time_left_ms().into())
    }

    /// Reports progress, where the client asked for it; it is on the wire when this returns.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let _ = self.try_progress(progress, total, message);
    }

    /// Reports progress, and says why it did not reach the client.
    pub fn try_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) -> Result<(), ProgressError> {
        host::report_progress(progress, total, message)
    }

    /// Sends a log message to the client, if it asked for this level.
    pub fn log(&self, level: Level, message: &str) {
        host::log(level, None, &json::quote(message));
    }

    /// Sends a structured log message under a logger's name.
    pub fn log_data<T: Serialize + ?Sized>(&self, level: Level, logger: Option<&str>, data: &T) -> Result<()> {
        host::log(level, logger, &json::to_text(data)?);
        Ok(())
    }

    /// Logs at level `debug`.
    pub fn debug(&self, message: &str) {
        self.log(Level::Debug, message);
    }

    /// Logs at level `info`.
    pub fn info(&self, message: &str) {
        self.log(Level::Info, message);
    }

    /// Logs at level `warning`.
    pub fn warn(&self, message: &str) {
        self.log(Level::Warning, message);
    }

    /// Logs at level `error`.
    pub fn error(&self, message: &str) {
        self.log(Level::Error, message);
    }

    /// The list of tools is another now. Clients are told when the callback succeeds.
    pub fn tools_changed(&self) {
        host::tools_changed();
    }

    /// The list of prompts is another now. Clients are told when the callback succeeds.
    pub fn prompts_changed(&self) {
        host::prompts_changed();
    }

    /// The list of resources is another now. Clients are told when the callback succeeds.
    pub fn resources_changed(&self) {
        host::resources_changed();
    }

    /// A resource has other contents now. Its watchers are told when the callback succeeds.
    pub fn resource_updated(&self, uri: &str) {
        host::resource_updated(uri);
    }

    /// The client's answer to a question of an earlier round: the result as JSON, or the error that it sent instead.
    pub fn answer(&self, key: &str) -> Option<Result<String, wit::RpcError>> {
        host::answer(key)
    }

    /// What the round before left with [`Error::with_state`]. Clients can neither read nor forge it.
    pub fn state(&self) -> Option<Vec<u8>> {
        host::state()
    }
}

impl std::error::Error for wit::RpcError {}

impl std::fmt::Display for wit::RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}
