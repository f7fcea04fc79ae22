//! The one dispatcher under every transport: which guest answers a request, and what became of the call.
//!
//! It validates arguments before a guest runs and structured content after, finds the owner of a name, pages the lists
//! that are asked once per version, and turns a guest's failure into the protocol's.

mod cursor;
mod lists;
mod seat;
mod tools;
mod validate;

use crate::convert;
use crate::guest;
use crate::guest::bindings::{prompts, resources, types};
use crate::registry::{Endpoint, Loaded, Registry, View};
use crate::seal::Sealer;
use arc_swap::ArcSwap;
use guesthouse_protocol::model::{Reference, Reply, Request};
use guesthouse_protocol::{Call, Failure, InternalKind, NotFound, Outcome, RpcError};
use seat::Seat;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// When a client whose call found no room may come back, in seconds.
const RETRY_AFTER_S: u32 = 1;

/// A notification on its way to the client, ahead of the response of the call that sent it.
pub struct Frame {
    /// One JSON-RPC message, unframed.
    pub message: bytes::Bytes,
    /// Told when the message is on the wire; dropped if it never gets there.
    pub written: oneshot::Sender<()>,
}

/// Where a call's notifications go. Bounded: a slow client slows its own call down, and nothing else.
pub type FrameSender = mpsc::Sender<Frame>;

/// Runs calls on the guests of the current snapshot.
pub struct Dispatcher {
    registry: ArcSwap<Registry>,
    sealer: Sealer,
    page_len: usize,
}

impl Dispatcher {
    /// A dispatcher over a first snapshot; lists are cut into pages of `page_len` entries.
    pub fn new(registry: Registry, sealer: Sealer, page_len: usize) -> Self {
        Self { registry: ArcSwap::from_pointee(registry), sealer, page_len }
    }

    /// The snapshot in force.
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.load_full()
    }

    /// What the endpoint serves now; `None` if there is no such guest.
    pub fn view(&self, endpoint: &Endpoint) -> Option<Arc<View>> {
        self.registry.load().view(endpoint).cloned()
    }

    /// Runs one call to its end. Dropping the future stops the guest.
    pub async fn run(&self, endpoint: &Endpoint, call: Call, frames: Option<FrameSender>) -> Outcome {
        let Some(view) = self.view(endpoint) else { return Err(Failure::MethodNotFound) };
        if !view.profile.capabilities.serves(call.request.method()) {
            return Err(Failure::MethodNotFound);
        }
        let scope = Scope { dispatcher: self, endpoint, view: &view };
        let Call { request, context, reporter, .. } = call;
        let quiet = || seat::caller(Seat::silent(context.clone()));
        match request {
            Request::Initialize(_) | Request::Discover => Ok(Reply::Profile(Box::new(view.profile.clone()))),
            Request::ListTools { cursor } => scope.list_tools(cursor.as_deref()),
            Request::ListPrompts { cursor } => scope.list_prompts(cursor.as_deref()),
            Request::ListTemplates { cursor } => scope.list_templates(cursor.as_deref()),
            Request::ListResources { cursor } => scope.list_resources(quiet, cursor.as_deref()).await,
            Request::CallTool { name, arguments } => scope.call_tool(Seat::new(context, reporter, frames), &name, arguments).await,
            Request::ReadResource { uri } => scope.read_resource(Seat::new(context, reporter, frames), uri).await,
            Request::GetPrompt { name, arguments } => scope.get_prompt(Seat::new(context, reporter, frames), &name, arguments).await,
            Request::Complete { reference, argument, value, resolved } => {
                scope.complete(quiet(), reference, argument, value, resolved).await
            }
            // No guest is told of watchers yet, and the capability is not offered.
            Request::Subscribe { .. } | Request::Unsubscribe { .. } => Err(Failure::MethodNotFound),
        }
    }
}

/// What the handling of one request refers to.
struct Scope<'a> {
    dispatcher: &'a Dispatcher,
    endpoint: &'a Endpoint,
    view: &'a View,
}

impl Scope<'_> {
    async fn read_resource(&self, seat: Seat, uri: String) -> Outcome {
        let not_found = |uri: String| Failure::NotFound { kind: NotFound::Resource, name: uri };
        let Some(guest) = self.view.resource_owner(&uri) else { return Err(not_found(uri)) };
        let outcome = guest.version.read_resource(seat::caller(seat), uri.clone()).await.map_err(|failure| match failure {
            guest::Failure::Guest(types::Error::NotFound(_)) => not_found(uri.clone()),
            other => failed(guest, "resource", &uri, other),
        })?;
        match outcome {
            resources::ReadOutcome::Complete(result) => {
                convert::read_result(result).map(Reply::Resource).map_err(|bad| bad_output(guest, "resource", &uri, &bad.to_string()))
            }
            resources::ReadOutcome::InputRequired(_) => Err(cannot_ask(guest, "resource", &uri)),
        }
    }

    async fn get_prompt(&self, seat: Seat, name: &str, arguments: Vec<(String, String)>) -> Outcome {
        let not_found = || Failure::NotFound { kind: NotFound::Prompt, name: name.into() };
        let prompt = self.view.prompt(name).ok_or_else(not_found)?;
        let missing =
            prompt.listed.arguments.iter().find(|wanted| wanted.required && !arguments.iter().any(|(given, _)| *given == wanted.name));
        if let Some(argument) = missing {
            return Err(Failure::InvalidParams(format!("the prompt `{name}` needs the argument `{}`", argument.name)));
        }
        let guest = &prompt.guest;
        let outcome =
            guest.version.get_prompt(seat::caller(seat), prompt.own_name.clone(), arguments).await.map_err(|failure| match failure {
                guest::Failure::Guest(types::Error::NotFound(_)) => not_found(),
                other => failed(guest, "prompt", name, other),
            })?;
        match outcome {
            prompts::PromptOutcome::Complete(result) => {
                convert::prompt_result(result).map(Reply::Prompt).map_err(|bad| bad_output(guest, "prompt", name, &bad.to_string()))
            }
            prompts::PromptOutcome::InputRequired(_) => Err(cannot_ask(guest, "prompt", name)),
        }
    }

    async fn complete(
        &self,
        caller: guest::Caller,
        reference: Reference,
        argument: String,
        value: String,
        resolved: Vec<(String, String)>,
    ) -> Outcome {
        let (guest, own, kind, name) = match reference {
            Reference::Prompt(name) => {
                let prompt = self.view.prompt(&name).ok_or_else(|| Failure::NotFound { kind: NotFound::Prompt, name: name.clone() })?;
                (&prompt.guest, Reference::Prompt(prompt.own_name.clone()), NotFound::Prompt, name)
            }
            Reference::Template(template) => {
                let guest = self
                    .view
                    .template_owner(&template)
                    .ok_or_else(|| Failure::NotFound { kind: NotFound::Template, name: template.clone() })?;
                (guest, Reference::Template(template.clone()), NotFound::Template, template)
            }
        };
        if !guest.version.exports().completion {
            return Ok(Reply::Completion(guesthouse_protocol::model::Completion::default()));
        }
        let answer = guest.version.complete(caller, convert::reference(own), argument, value, resolved).await;
        answer.map(|completions| Reply::Completion(convert::completion(completions))).map_err(|failure| match failure {
            guest::Failure::Guest(types::Error::NotFound(_)) => Failure::NotFound { kind, name: name.clone() },
            other => failed(guest, "completion", &name, other),
        })
    }
}

/// The failure table of the host: what the protocol is told of a call that failed. Details go to the log alone.
fn failed(guest: &Loaded, kind: &str, name: &str, failure: guest::Failure) -> Failure {
    let of = || format!("{kind} `{name}` of guest `{}`", guest.name);
    let internal = |kind: InternalKind, what: &str| {
        tracing::error!(guest = %guest.name, version = %guest.version.digest(), "{} {what}: {failure}", of());
        Failure::Internal { kind, text: format!("{} {what}", of()) }
    };
    match &failure {
        guest::Failure::Guest(error) => match error {
            types::Error::NotFound(missing) => Failure::InvalidParams(format!("{}: `{missing}` was not found", of())),
            types::Error::InvalidParams(text) => Failure::InvalidParams(text.clone()),
            types::Error::MissingClientCapability(capabilities) => match convert::json(capabilities.clone(), "missing-client-capability") {
                Ok(capabilities) => Failure::MissingClientCapability(capabilities),
                Err(bad) => bad_output(guest, kind, name, &bad.to_string()),
            },
            types::Error::Internal(_) => internal(InternalKind::HandlerError, "failed"),
            types::Error::Rpc(error) => match error.data.clone().map(|data| convert::json(data, "rpc.data")).transpose() {
                Ok(data) => Failure::Rpc(RpcError { code: error.code, message: error.message.clone(), data }),
                Err(bad) => bad_output(guest, kind, name, &bad.to_string()),
            },
        },
        guest::Failure::Trap(_) => internal(InternalKind::HandlerCrash, "crashed"),
        guest::Failure::Deadline => internal(InternalKind::HandlerTimeout, "did not finish in time"),
        guest::Failure::CpuBudget => internal(InternalKind::HandlerTimeout, "used up its processor time"),
        guest::Failure::Memory => internal(InternalKind::HandlerMemory, "ran out of memory"),
        guest::Failure::OutputTooLarge { .. } => internal(InternalKind::OutputTooLarge, "answered more than it may"),
        guest::Failure::StartFailed(_) => internal(InternalKind::HandlerStartFailed, "could not be started"),
        guest::Failure::NotExported(_) => internal(InternalKind::HandlerError, "is not implemented"),
        guest::Failure::Busy => Failure::Busy { retry_after_s: RETRY_AFTER_S },
    }
}

/// The guest's answer breaks the contract or its own schema; where and how is for the log.
fn bad_output(guest: &Loaded, kind: &str, name: &str, problem: &str) -> Failure {
    tracing::error!(guest = %guest.name, version = %guest.version.digest(), "{kind} `{name}` gave an invalid answer: {problem}");
    Failure::Internal {
        kind: InternalKind::InvalidOutput,
        text: format!("{kind} `{name}` of guest `{}` gave an invalid answer", guest.name),
    }
}

/// The guest asks the client something, which this version of the host cannot carry.
fn cannot_ask(guest: &Loaded, kind: &str, name: &str) -> Failure {
    tracing::error!(guest = %guest.name, "{kind} `{name}` asked the client a question, which is not supported yet");
    Failure::Internal {
        kind: InternalKind::HandlerError,
        text: format!("{kind} `{name}` of guest `{}` asked the client a question, which this server does not support yet", guest.name),
    }
}
