//! Reads the parameters of each method, and says which one is missing or wrong.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::completion::Reference;
use super::lifecycle::InitializeParams;
use super::logging::LogLevel;
use super::{Request, Retry, TaskAsked};
use crate::error::RpcError;
use crate::json::is_object;
use crate::message::{Params, entries, integer, text};
use crate::method::Method;
use crate::revision::{Era, Revision};
use crate::subscription::Filter;

/// What to do about a request whose parameters are sound.
pub(crate) enum Asked {
    /// Answer `{}` at once.
    Ping,
    /// Set the session's log level and answer `{}`.
    SetLevel(LogLevel),
    /// Let the dispatcher answer.
    Run(Request),
}

/// Reads the parameters of a method.
pub(crate) fn asked(method: Method, params: &Params<'_>) -> Result<Asked, RpcError> {
    let request = match method {
        Method::Ping => return Ok(Asked::Ping),
        Method::SetLevel => return set_level(params),
        Method::Initialize => Request::Initialize(Box::new(initialize(params)?)),
        Method::Discover => Request::Discover,
        Method::ListTools => Request::ListTools { cursor: cursor(params)? },
        Method::ListResources => Request::ListResources { cursor: cursor(params)? },
        Method::ListTemplates => Request::ListTemplates { cursor: cursor(params)? },
        Method::ListPrompts => Request::ListPrompts { cursor: cursor(params)? },
        Method::CallTool => Request::CallTool {
            name: required_text(params, "name")?,
            arguments: optional_object(params, "arguments")?.map(RawValue::to_owned),
        },
        Method::ReadResource => Request::ReadResource { uri: required_text(params, "uri")? },
        Method::Subscribe => Request::Subscribe { uri: required_text(params, "uri")? },
        Method::Unsubscribe => Request::Unsubscribe { uri: required_text(params, "uri")? },
        Method::Listen => Request::Listen(Filter::read(params)?),
        Method::GetPrompt => Request::GetPrompt {
            name: required_text(params, "name")?,
            arguments: match params.get("arguments") {
                None => Vec::new(),
                Some(arguments) => strings(arguments, "arguments")?,
            },
        },
        Method::Complete => complete(params)?,
        Method::GetTask => Request::GetTask { id: required_text(params, "taskId")? },
        Method::UpdateTask => update_task(params)?,
        Method::CancelTask => Request::CancelTask { id: required_text(params, "taskId")? },
        Method::ListTasks => Request::ListTasks { cursor: cursor(params)? },
        Method::TaskResult => Request::TaskResult { id: required_text(params, "taskId")? },
    };
    Ok(Asked::Run(request))
}

/// The members that make a request a later round of an earlier one.
pub(crate) fn retry(method: Method, params: &Params<'_>) -> Result<Option<Retry>, RpcError> {
    if !method.may_ask() {
        return Ok(None);
    }
    let input_responses = optional_object(params, "inputResponses")?.map(RawValue::to_owned);
    let request_state = optional_text(params, "requestState")?;
    let given = input_responses.is_some() || request_state.is_some();
    Ok(given.then_some(Retry { input_responses, request_state }))
}

/// The member with which a client of 2025-11-25 asks for a task. Other revisions do not know it.
pub(crate) fn task_asked(method: Method, revision: Revision, params: &Params<'_>) -> Result<Option<TaskAsked>, RpcError> {
    if method != Method::CallTool || !revision.has_task_param() {
        return Ok(None);
    }
    let Some(task) = optional_object(params, "task")?.map(members) else { return Ok(None) };
    let wrong = || RpcError::invalid_param("task.ttl", "must be a positive integer");
    let ttl = task.get("ttl").map(|ttl| integer(ttl).and_then(|ttl| u64::try_from(ttl).ok()).filter(|ttl| *ttl > 0).ok_or_else(wrong));
    Ok(Some(TaskAsked { ttl_ms: ttl.transpose()? }))
}

fn update_task(params: &Params<'_>) -> Result<Request, RpcError> {
    required(params, &["taskId", "inputResponses"])?;
    Ok(Request::UpdateTask { id: required_text(params, "taskId")?, answers: required_object(params, "inputResponses")?.to_owned() })
}

fn set_level(params: &Params<'_>) -> Result<Asked, RpcError> {
    required(params, &["level"])?;
    let level = params.text("level").and_then(|level| level.parse().ok());
    level.map(Asked::SetLevel).ok_or_else(|| RpcError::invalid_param("level", "must be one of the eight log levels"))
}

fn initialize(params: &Params<'_>) -> Result<InitializeParams, RpcError> {
    required(params, &["protocolVersion", "capabilities", "clientInfo"])?;
    let requested_version = required_text(params, "protocolVersion")?;
    let capabilities = required_object(params, "capabilities")?.to_owned();
    let client_info = required_object(params, "clientInfo")?;
    if !is_implementation(client_info) {
        return Err(RpcError::invalid_param("clientInfo", "must have a name and a version"));
    }
    let negotiated =
        requested_version.parse().ok().filter(|revision: &Revision| revision.era() == Era::Handshake).unwrap_or(Revision::LATEST_HANDSHAKE);
    Ok(InitializeParams { requested_version, negotiated, capabilities, client_info: client_info.to_owned() })
}

/// Whether the value is an `Implementation`: an object with a name and a version that are not empty.
pub(crate) fn is_implementation(value: &RawValue) -> bool {
    let members = entries(value).unwrap_or_default();
    ["name", "version"]
        .iter()
        .all(|wanted| members.iter().any(|(name, value)| name == wanted && text(value).is_some_and(|text| !text.is_empty())))
}

fn complete(params: &Params<'_>) -> Result<Request, RpcError> {
    required(params, &["ref", "argument"])?;
    let reference = members(required_object(params, "ref")?);
    let reference = match reference.text("type").as_deref() {
        Some("ref/prompt") => Reference::Prompt(reference.non_empty("name", "ref.name")?),
        Some("ref/resource") => Reference::Template(reference.non_empty("uri", "ref.uri")?),
        Some(_) | None => {
            return Err(RpcError::invalid_param("ref.type", "must be ref/prompt or ref/resource"));
        }
    };
    let argument = members(required_object(params, "argument")?);
    let value = argument.text("value").ok_or_else(|| RpcError::invalid_param("argument.value", "must be a string"))?.into_owned();
    let resolved = match optional_object(params, "context")?.map(members) {
        None => Vec::new(),
        Some(context) => match context.get("arguments") {
            None => Vec::new(),
            Some(arguments) => strings(arguments, "context.arguments")?,
        },
    };
    Ok(Request::Complete { reference, argument: argument.non_empty("name", "argument.name")?, value, resolved })
}

/// The members of a small object.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

fn members(value: &RawValue) -> Members<'_> {
    Members(entries(value).unwrap_or_default())
}

impl<'a> Members<'a> {
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(text)
    }

    fn non_empty(&self, name: &str, field: &str) -> Result<String, RpcError> {
        match self.text(name) {
            Some(text) if !text.is_empty() => Ok(text.into_owned()),
            Some(_) | None => Err(RpcError::invalid_param(field, "must be a non-empty string")),
        }
    }
}

fn required(params: &Params<'_>, names: &[&str]) -> Result<(), RpcError> {
    let missing: Vec<&str> = names.iter().copied().filter(|name| params.get(name).is_none()).collect();
    if missing.is_empty() { Ok(()) } else { Err(RpcError::missing_params(&missing)) }
}

fn required_text(params: &Params<'_>, name: &str) -> Result<String, RpcError> {
    required(params, &[name])?;
    match params.text(name) {
        Some(text) if !text.is_empty() => Ok(text.into_owned()),
        Some(_) | None => Err(RpcError::invalid_param(name, "must be a non-empty string")),
    }
}

fn optional_text(params: &Params<'_>, name: &str) -> Result<Option<String>, RpcError> {
    match params.get(name).map(text) {
        None => Ok(None),
        Some(Some(text)) => Ok(Some(text.into_owned())),
        Some(None) => Err(RpcError::invalid_param(name, "must be a string")),
    }
}

/// A cursor is opaque; an empty one is a cursor, too.
fn cursor(params: &Params<'_>) -> Result<Option<String>, RpcError> {
    optional_text(params, "cursor")
}

fn required_object<'a>(params: &Params<'a>, name: &str) -> Result<&'a RawValue, RpcError> {
    required(params, &[name])?;
    optional_object(params, name)?.ok_or_else(|| RpcError::missing_params(&[name]))
}

fn optional_object<'a>(params: &Params<'a>, name: &str) -> Result<Option<&'a RawValue>, RpcError> {
    match params.get(name) {
        Some(value) if !is_object(value) => Err(RpcError::invalid_param(name, "must be an object")),
        value => Ok(value),
    }
}

/// An object of strings, in the client's order.
fn strings(value: &RawValue, field: &str) -> Result<Vec<(String, String)>, RpcError> {
    let members = entries(value).ok_or_else(|| RpcError::invalid_param(field, "must be an object"))?;
    let mut strings = Vec::with_capacity(members.len());
    for (name, value) in members {
        let Some(text) = text(value) else {
            return Err(RpcError::invalid_param(&format!("{field}.{name}"), "must be a string"));
        };
        strings.push((name.into_owned(), text.into_owned()));
    }
    Ok(strings)
}
