//! The one dispatcher under every transport: which guest answers a request, and what became of the call.
//!
//! It validates arguments before a guest runs and structured content after, finds the owner of a name, pages the lists
//! that are asked once per version, and turns a guest's failure into the protocol's.

mod cursor;
mod frame;
mod listen;
mod lists;
mod news;
mod questions;
mod seat;
mod shares;
mod tasks;
mod tools;
mod trace;
mod validate;
mod watch;

pub use frame::{Backlog, Frame, FrameSender, Share};
#[cfg(test)]
pub(crate) use listen::pass_on;

use crate::changes::{Hub, Listener, Lists};
use crate::config::Config;
use crate::convert;
use crate::guest;
use crate::guest::bindings::{prompts, resources, types};
use crate::registry::{Endpoint, Loaded, Registry, View};
use crate::seal::Sealer;
use crate::seal::replay::{MemoryReplays, Replays, StoredReplays};
use crate::seal::state::{States, USED_PER_PRINCIPAL_MAX};
use crate::storage::Storage;
use crate::tasks::{Store, Tasks};
use guesthouse_protocol::model::{Capabilities, Reference, Reply, Request};
use guesthouse_protocol::{Call, Failure, Identity, InternalKind, Method, NotFound, Outcome, RETRY_AFTER_S, RpcError};
use news::{News, Voice};
use seat::Seat;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tasks::Desk;
use tokio_util::sync::CancellationToken;
use trace::Subject;
use tracing::Instrument as _;
use watch::Teller;

/// Longest name or URI that is shown in the log, so that what went wrong with it is shown, too.
const NAME_SHOWN_BYTES_MAX: usize = 256;

/// Where used states of calls are remembered.
fn replays(storage: &Storage) -> Box<dyn Replays> {
    match storage.outlives_process() {
        true => Box::new(StoredReplays::new(storage, USED_PER_PRINCIPAL_MAX)),
        false => Box::new(MemoryReplays::new(USED_PER_PRINCIPAL_MAX)),
    }
}

/// The caller's end of a call.
#[derive(Clone, Default)]
pub struct Line {
    /// Where notifications go, ahead of the response; none if the client takes none.
    pub frames: Option<FrameSender>,
    /// The session that the call belongs to, as a listener; none in the modern era.
    pub session: Option<Arc<Listener>>,
    /// Ends subscriptions, when the connection is about to end.
    pub stopping: CancellationToken,
}

/// Runs calls on the guests of the current snapshot.
pub struct Dispatcher {
    news: Arc<News>,
    sealer: Arc<Sealer>,
    states: States,
    page_len: usize,
    listen_time: Duration,
    /// How long a call runs before it becomes a task.
    task_after: Duration,
    desk: Desk,
    _teller: Teller,
}

impl Dispatcher {
    /// A dispatcher over a first snapshot, which goes on with the tasks that are in the store. Must be called within a runtime.
    pub fn new(registry: Registry, sealer: Sealer, config: &Config, tasks: Box<dyn Store>, storage: &Storage) -> Self {
        let sealer = Arc::new(sealer);
        let seal = &config.seal;
        let replays = seal.single_use.then(|| replays(storage));
        // A state that fills the client's next message leaves no room for the answers.
        let state_len_max = usize::try_from(config.limits.message.0 / 2).unwrap_or(usize::MAX);
        let states = States::new(sealer.clone(), seal.ttl.0 / 1_000, seal.skew.0.div_ceil(1_000), replays).with_len_max(state_len_max);
        let news = News::new(registry, config);
        let tasks = Tasks::new(tasks, &config.tasks, news.hub.clone());
        let desk = Desk { news: news.clone(), tasks, rounds_max: config.limits.question_rounds };
        desk.take_up();
        Self {
            _teller: Teller::start(&news),
            news,
            sealer,
            states,
            page_len: config.limits.page,
            listen_time: config.streams.listen_time.duration(),
            task_after: config.tasks.after.duration(),
            desk,
        }
    }

    /// The snapshot in force.
    pub fn registry(&self) -> Arc<Registry> {
        self.news.registry.load_full()
    }

    /// What the endpoint serves now; `None` if there is no such guest.
    pub fn view(&self, endpoint: &Endpoint) -> Option<Arc<View>> {
        self.news.registry.load().view(endpoint).cloned()
    }

    /// Puts another version of a guest in force; see [`News::swap`].
    pub(crate) fn swap(&self, guest: Arc<Loaded>) -> anyhow::Result<Option<Arc<Loaded>>> {
        self.news.swap(guest)
    }

    /// Gives a version that is not in force a share of the calls of its guest's tools.
    pub(crate) fn share(&self, guest: &Arc<Loaded>, percent: u8) -> anyhow::Result<()> {
        self.news.share(guest, percent)
    }

    /// Ends that.
    pub(crate) fn end_share(&self, guest: &str) {
        self.news.shares.end(guest);
    }

    /// Takes a guest out.
    pub(crate) fn remove(&self, name: &str) -> anyhow::Result<Option<Arc<Loaded>>> {
        self.news.remove(name)
    }

    /// Tells listeners what became of a guest, and its new version what is watched. Must be called within a runtime.
    pub(crate) fn tell_swapped(&self, guest: &Arc<str>, differ: Lists) {
        self.news.tell_swapped(guest, differ);
        watch::tell_again(&self.news, guest);
    }

    /// What guests keep for a session goes with it.
    pub(crate) fn end_session(&self, session: &Arc<str>) {
        self.registry().guests().iter().for_each(|guest| guest.version.end_session(session));
    }

    /// Tasks that are worked on now.
    pub fn tasks_running(&self) -> usize {
        self.desk.tasks.running()
    }

    /// Where changes meet whoever listens.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.news.hub
    }

    /// Runs one call to its end. Dropping the future stops the guest.
    pub async fn run(&self, endpoint: &Endpoint, call: Call, line: Line) -> Outcome {
        let Some(mut view) = self.view(endpoint) else { return Err(Failure::MethodNotFound) };
        if let Request::CallTool { name, .. } = &call.request
            && let Some(tried) = self.news.shares.view(endpoint, &view, name)
        {
            view = tried;
        }
        let served = Capabilities { task_list: true, ..view.profile.capabilities };
        if !served.serves(call.request.method()) {
            return Err(Failure::MethodNotFound);
        }
        let Call { request, context, reporter, .. } = call;
        let scope = Scope { dispatcher: self, endpoint, view: &view, identity: context.identity.clone() };
        match request {
            Request::Initialize(_) | Request::Discover => {
                let mut profile = view.profile.clone();
                profile.capabilities.task_list = scope.lists_tasks(&context);
                Ok(Reply::Profile(Box::new(profile)))
            }
            Request::ListTools { cursor } => scope.list_tools(cursor.as_deref()),
            Request::ListPrompts { cursor } => scope.list_prompts(cursor.as_deref()),
            Request::ListTemplates { cursor } => scope.list_templates(cursor.as_deref()),
            Request::ListResources { cursor } => scope.list_resources(|| Seat::silent(context.clone()), cursor.as_deref()).await,
            Request::CallTool { name, arguments } => {
                let seat = Seat::new(context, reporter, line.frames.clone());
                let span = seat.span(Subject::Tool(&name));
                scope.call_tool(seat, &name, arguments, &line).instrument(span).await
            }
            Request::ReadResource { uri } => {
                let seat = Seat::new(context, reporter, line.frames);
                let span = seat.span(Subject::Resource(&uri));
                scope.read_resource(seat, &uri).instrument(span).await
            }
            Request::GetPrompt { name, arguments } => {
                let seat = Seat::new(context, reporter, line.frames);
                let span = seat.span(Subject::Prompt(&name));
                scope.get_prompt(seat, &name, arguments).instrument(span).await
            }
            Request::Complete { reference, argument, value, resolved } => {
                let seat = Seat::silent(context);
                let span = seat.span(match &reference {
                    Reference::Prompt(name) => Subject::Prompt(name),
                    Reference::Template(template) => Subject::Resource(template),
                });
                scope.complete(seat, reference, argument, value, resolved).instrument(span).await
            }
            Request::Subscribe { uri } => scope.subscribe(line.session.as_deref(), &uri).await,
            Request::Unsubscribe { uri } => scope.unsubscribe(line.session.as_deref(), &uri),
            Request::Listen(wanted) => {
                let subscription = scope.open_subscription(&context, wanted, &line).await?;
                // It lasts, and must not keep old versions of guests.
                drop(view);
                subscription.run(&line, self.listen_time).await
            }
            Request::GetTask { id } => scope.get_task(context, &id).await,
            Request::UpdateTask { id, answers } => scope.update_task(context, &id, &answers).await,
            Request::CancelTask { id } => scope.cancel_task(context, &id).await,
            Request::ListTasks { cursor } => scope.list_tasks(&context, cursor.as_deref()),
            Request::TaskResult { id } => scope.task_result(context, &id).await,
        }
    }
}

/// What the handling of one request refers to.
struct Scope<'a> {
    dispatcher: &'a Dispatcher,
    endpoint: &'a Endpoint,
    view: &'a View,
    /// Who asks.
    identity: Identity,
}

impl Scope<'_> {
    fn voice(&self, guest: &Arc<Loaded>) -> Voice {
        self.dispatcher.news.voice(guest)
    }

    async fn read_resource(&self, mut seat: Seat, uri: &str) -> Outcome {
        let not_found = || Failure::NotFound { kind: NotFound::Resource, name: uri.into() };
        let guest = self.view.resource_owner(uri).ok_or_else(not_found)?;
        let turn = self.turn(seat.context_mut(), Method::ReadResource, uri, String::new).await?;
        let outcome = match guest.version.read_resource(seat.of(self.voice(guest)), uri.into()).await {
            Ok(resources::ReadOutcome::Complete(result)) => {
                convert::read_result(result).map(Reply::Resource).map_err(|bad| bad_output(guest, "resource", uri, &bad.to_string()))
            }
            Ok(resources::ReadOutcome::InputRequired(required)) => turn.ask(guest, "resource", required),
            Err(guest::Failure::Guest(types::Error::NotFound(_))) => Err(not_found()),
            Err(failure) => Err(failed(guest, "resource", uri, failure)),
        };
        turn.conclude(outcome)
    }

    async fn get_prompt(&self, mut seat: Seat, name: &str, arguments: Vec<(String, String)>) -> Outcome {
        let not_found = || Failure::NotFound { kind: NotFound::Prompt, name: name.into() };
        let prompt = self.view.prompt(name).ok_or_else(not_found)?;
        let missing =
            prompt.listed.arguments.iter().find(|wanted| wanted.required && !arguments.iter().any(|(given, _)| *given == wanted.name));
        if let Some(argument) = missing {
            return Err(Failure::InvalidParams(format!("the prompt `{name}` needs the argument `{}`", argument.name)));
        }
        let text = || arguments.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect::<Value>().to_string();
        let turn = self.turn(seat.context_mut(), Method::GetPrompt, name, text).await?;
        let guest = &prompt.guest;
        let outcome = match guest.version.get_prompt(seat.of(self.voice(guest)), prompt.own_name.clone(), arguments).await {
            Ok(prompts::PromptOutcome::Complete(result)) => {
                convert::prompt_result(result).map(Reply::Prompt).map_err(|bad| bad_output(guest, "prompt", name, &bad.to_string()))
            }
            Ok(prompts::PromptOutcome::InputRequired(required)) => turn.ask(guest, "prompt", required),
            Err(guest::Failure::Guest(types::Error::NotFound(_))) => Err(not_found()),
            Err(failure) => Err(failed(guest, "prompt", name, failure)),
        };
        turn.conclude(outcome)
    }

    async fn complete(
        &self,
        seat: Seat,
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
        let answer = guest.version.complete(seat.of(self.voice(guest)), convert::reference(own), argument, value, resolved).await;
        answer.map(|completions| Reply::Completion(convert::completion(completions))).map_err(|failure| match failure {
            guest::Failure::Guest(types::Error::NotFound(_)) => Failure::NotFound { kind, name: name.clone() },
            other => failed(guest, "completion", &name, other),
        })
    }
}

/// The failure table of the host: what the protocol is told of a call that failed. Details go to the log alone.
fn failed(guest: &Loaded, kind: &str, name: &str, failure: guest::Failure) -> Failure {
    let of = || format!("{kind} `{name}` of guest `{}`", guest.name);
    let internal = |internal: InternalKind, what: &str| {
        report(guest, kind, name, &format!("{what}: {failure}"));
        Failure::Internal { kind: internal, text: format!("{} {what}", of()) }
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
            // The contract promises the author a line in the log where a code is not the guest's to use.
            types::Error::Rpc(error) if guesthouse_protocol::failure::is_reserved(error.code) => {
                internal(InternalKind::HandlerError, "failed with an error code that the protocol reserves")
            }
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
        guest::Failure::StateConflict => internal(InternalKind::StateConflict, "met with other calls that changed the same state"),
        guest::Failure::NotSaved(_) => internal(InternalKind::HandlerError, "could not save its state"),
        guest::Failure::NotExported(_) => internal(InternalKind::HandlerError, "is not implemented"),
        guest::Failure::Busy => Failure::Busy { retry_after_s: RETRY_AFTER_S },
        guest::Failure::TooMany => Failure::TooMany { retry_after_s: RETRY_AFTER_S },
    }
}

/// The guest's answer breaks the contract or its own schema; where and how is for the log.
fn bad_output(guest: &Loaded, kind: &str, name: &str, problem: &str) -> Failure {
    report(guest, kind, name, &format!("gave an invalid answer: {problem}"));
    Failure::Internal {
        kind: InternalKind::InvalidOutput,
        text: format!("{kind} `{name}` of guest `{}` gave an invalid answer", guest.name),
    }
}

/// Says in the log what became of a call. The name may be a client's own words, and the rest a guest's.
fn report(guest: &Loaded, kind: &str, name: &str, what: &str) {
    guest.version.report(&format!("{kind} `{}` {what}", guest::clean(name, NAME_SHOWN_BYTES_MAX)));
}
