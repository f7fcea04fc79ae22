//! The failure table: what a client reads when a call did not succeed, per method and era.

use serde_json::json;

use crate::error::{BUSY, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY, RESOURCE_NOT_FOUND, RpcError};
use crate::json::{Json, is_object};
use crate::method::Method;
use crate::model::{CallToolResult, Reply};
use crate::revision::{Era, Revision};

/// When a client may come back for whose call, questions or connection there is no room.
pub const RETRY_AFTER_S: u32 = 1;

/// How a call ended.
pub type Outcome = Result<Reply, Failure>;

/// Why a call did not succeed. Texts reach the client: whoever makes one sees to it that it tells no secrets.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The capability that the method needs is not served; see [`crate::model::Capabilities::serves`].
    MethodNotFound,
    /// There is no such thing.
    NotFound {
        /// What kind of thing.
        kind: NotFound,
        /// Its name, or its URI.
        name: String,
    },
    /// The arguments fail the schema.
    InvalidArguments {
        /// JSON pointer to the value that is wrong.
        pointer: String,
        /// What is wrong with it.
        message: String,
    },
    /// The parameters are wrong in another way; the text says how.
    InvalidParams(String),
    /// The client did not declare these capabilities (a `ClientCapabilities` object).
    MissingClientCapability(Json),
    /// The state that the client sent back is not what it was given. The call has not run.
    RequestState(StateProblem),
    /// The client cannot be asked, for a reason that the text says.
    CannotAsk(String),
    /// The client was asked, and did not answer in time; the text says so.
    Unanswered(String),
    /// The tool runs only as a task and was called without one, or the other way round (2025-11-25); the text says which.
    WrongTaskMode(String),
    /// The error that a task ended with, as it was recorded.
    TaskFailed(RpcError),
    /// An error of the guest's own. A code that JSON-RPC or MCP reserves reaches the client as an internal error.
    Rpc(RpcError),
    /// The host or the guest is at fault.
    Internal {
        /// In what way.
        kind: InternalKind,
        /// One sentence that names guest and tool; details belong in the log.
        text: String,
    },
    /// No free permit.
    Busy {
        /// When to come back, in seconds.
        retry_after_s: u32,
    },
    /// The caller has too many calls running.
    TooMany {
        /// When to come back, in seconds.
        retry_after_s: u32,
    },
    /// The call was cancelled: the client gets no response.
    Cancelled,
}

/// The kinds of things that may not be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A resource template.
    Template,
    /// A task.
    Task,
}

/// What is wrong with a `requestState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateProblem {
    /// It was changed, or was never one.
    Invalid,
    /// It is longer than any that was given out.
    TooLarge,
    /// It is too old.
    Expired,
    /// It is from the future.
    NotYetValid,
    /// Nobody here knows its key.
    KeyUnknown,
    /// Its key is no longer trusted.
    KeyRevoked,
    /// It belongs to another request, client, endpoint or revision.
    BindingMismatch,
    /// It was used before, and may be used once.
    Replayed,
}

/// The ways in which the host or a guest can be at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InternalKind {
    /// The guest said so itself.
    HandlerError,
    /// It trapped.
    HandlerCrash,
    /// It ran too long.
    HandlerTimeout,
    /// It used too much memory.
    HandlerMemory,
    /// It answered too much.
    OutputTooLarge,
    /// No instance of it could be started.
    HandlerStartFailed,
    /// Its answer breaks its own output schema.
    InvalidOutput,
    /// It asked the client too often.
    TooManyRounds,
    /// Its writes collided with those of others.
    StateConflict,
}

/// What goes to the client.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A JSON-RPC error.
    Error {
        /// The error.
        error: RpcError,
        /// The HTTP status that goes with it.
        status: u16,
        /// When to come back.
        retry_after_s: Option<u32>,
    },
    /// A tool result with `isError`, which the model reads.
    Tool(CallToolResult),
    /// No response at all.
    Nothing,
}

impl NotFound {
    fn noun(self) -> &'static str {
        match self {
            NotFound::Tool => "Tool",
            NotFound::Prompt => "Prompt",
            NotFound::Resource => "Resource",
            NotFound::Template => "Resource template",
            NotFound::Task => "Task",
        }
    }
}

impl StateProblem {
    /// The word in `data.reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            StateProblem::Invalid => "invalid_request_state",
            StateProblem::TooLarge => "request_state_too_large",
            StateProblem::Expired => "request_state_expired",
            StateProblem::NotYetValid => "request_state_not_yet_valid",
            StateProblem::KeyUnknown => "request_state_key_unknown",
            StateProblem::KeyRevoked => "request_state_key_revoked",
            StateProblem::BindingMismatch => "request_state_binding_mismatch",
            StateProblem::Replayed => "request_state_replayed",
        }
    }
}

impl InternalKind {
    /// The word in `data.type`.
    pub fn as_str(self) -> &'static str {
        match self {
            InternalKind::HandlerError => "handler_error",
            InternalKind::HandlerCrash => "handler_crash",
            InternalKind::HandlerTimeout => "handler_timeout",
            InternalKind::HandlerMemory => "handler_memory",
            InternalKind::OutputTooLarge => "output_too_large",
            InternalKind::HandlerStartFailed => "handler_start_failed",
            InternalKind::InvalidOutput => "invalid_output",
            InternalKind::TooManyRounds => "too_many_rounds",
            InternalKind::StateConflict => "state_conflict",
        }
    }
}

/// The dispatcher answered a method with the reply to another one.
pub(crate) fn wrong_reply() -> Failure {
    Failure::Internal { kind: InternalKind::HandlerError, text: "The server made an answer of the wrong kind".to_owned() }
}

/// Looks a failure up.
pub(crate) fn answer(failure: Failure, method: Method, revision: Revision) -> Answer {
    let modern = revision.era() == Era::Modern;
    match failure {
        Failure::MethodNotFound => Answer::Error {
            error: RpcError::method_not_found(method.as_str(), revision),
            status: if modern { 404 } else { 200 },
            retry_after_s: None,
        },
        Failure::NotFound { kind, name } => error(not_found(kind, &name, modern)),
        Failure::InvalidArguments { pointer, message } => {
            let text = format!("Invalid arguments at {}: {message}", shown_pointer(&pointer));
            if method == Method::CallTool {
                return Answer::Tool(CallToolResult::error(text));
            }
            error(RpcError::new(INVALID_PARAMS, text, &json!({ "type": "invalid_params", "pointer": pointer, "reason": message })))
        }
        Failure::InvalidParams(text) if method == Method::CallTool => Answer::Tool(CallToolResult::error(text)),
        Failure::InvalidParams(text) => error(RpcError::typed(INVALID_PARAMS, "invalid_params", text)),
        Failure::RequestState(problem) => error(RpcError::new(
            INVALID_PARAMS,
            "Invalid requestState",
            &json!({ "type": "invalid_request_state", "reason": problem.as_str() }),
        )),
        Failure::CannotAsk(text) | Failure::Unanswered(text) if method == Method::CallTool => Answer::Tool(CallToolResult::error(text)),
        Failure::CannotAsk(text) => error(RpcError::typed(INVALID_PARAMS, "cannot_ask_client", text)),
        Failure::Unanswered(text) => error(RpcError::typed(INTERNAL_ERROR, "client_did_not_answer", text)),
        Failure::WrongTaskMode(text) => error(RpcError::typed(METHOD_NOT_FOUND, "wrong_task_mode", text)),
        Failure::MissingClientCapability(required) => missing_capability(required, method, modern),
        Failure::Rpc(own) if is_reserved(own.code) => {
            error(internal(InternalKind::HandlerError, "The handler failed with an error code that it may not use".to_owned()))
        }
        Failure::Rpc(own) | Failure::TaskFailed(own) => error(own),
        Failure::Internal { kind, text } => error(internal(kind, text)),
        Failure::Busy { retry_after_s } => {
            let (error, status) = busy(retry_after_s);
            Answer::Error { error, status, retry_after_s: Some(retry_after_s) }
        }
        Failure::TooMany { retry_after_s } => {
            let data = json!({ "type": "too_many_calls", "retryAfterSeconds": retry_after_s });
            let error = RpcError::new(BUSY, "Too many calls of this caller are running", &data);
            Answer::Error { error, status: 429, retry_after_s: Some(retry_after_s) }
        }
        Failure::Cancelled => Answer::Nothing,
    }
}

/// The error when there is no room for another call, and its HTTP status.
pub(crate) fn busy(retry_after_s: u32) -> (RpcError, u16) {
    let data = json!({ "type": "busy", "retryAfterSeconds": retry_after_s });
    (RpcError::new(BUSY, "The server is busy", &data), 503)
}

fn error(error: RpcError) -> Answer {
    Answer::Error { error, status: 200, retry_after_s: None }
}

fn internal(kind: InternalKind, text: String) -> RpcError {
    RpcError::typed(INTERNAL_ERROR, kind.as_str(), text)
}

fn not_found(kind: NotFound, name: &str, modern: bool) -> RpcError {
    let code = if kind == NotFound::Resource && !modern { RESOURCE_NOT_FOUND } else { INVALID_PARAMS };
    let data = match kind {
        NotFound::Resource | NotFound::Template => json!({ "type": "not_found", "uri": name }),
        NotFound::Task => json!({ "type": "not_found", "taskId": name }),
        NotFound::Tool | NotFound::Prompt => json!({ "type": "not_found", "name": name }),
    };
    RpcError::new(code, format!("{} not found: {name}", kind.noun()), &data)
}

fn missing_capability(required: Json, method: Method, modern: bool) -> Answer {
    let required = if is_object(&required) { required } else { crate::json::to_raw(&json!({})) };
    if modern {
        let error =
            RpcError::new(MISSING_CLIENT_CAPABILITY, "Missing required client capability", &json!({ "requiredCapabilities": required }));
        return Answer::Error { error, status: 400, retry_after_s: None };
    }
    let text = format!("The client lacks a capability that this needs: {}", required.get());
    if method == Method::CallTool {
        return Answer::Tool(CallToolResult::error(text));
    }
    error(RpcError::new(INVALID_PARAMS, text, &json!({ "type": "missing_client_capability", "requiredCapabilities": required })))
}

/// JSON-RPC keeps this range for itself and for MCP; a guest has all the other integers.
pub fn is_reserved(code: i32) -> bool {
    (-32768..=-32000).contains(&code)
}

/// The pointer to the whole document is the empty string, which no reader would see.
fn shown_pointer(pointer: &str) -> &str {
    if pointer.is_empty() { "the top level" } else { pointer }
}
