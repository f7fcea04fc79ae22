//! The callbacks of a guest, each as a typed method: one call, one fresh instance.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use wasmtime::Store;
use wasmtime::component::Instance;

use super::allowance::Allowance;
use super::bindings::{completion, lifecycle, migration, prompts, resources, tasks, tools, types};
use super::failure::{Failure, Stage, classify};
use super::shares::Place;
use super::state::{CallContext, State};
use super::version::{Inner, Version};

/// Host calls may carry this much beyond the output limit: the fixed parts of small results.
const OUTPUT_SLACK_BYTES: usize = 16 << 10;

/// How long a call waits for others to end, of its guest or of those that share the engine, before the answer is that the
/// guest is busy.
const PERMIT_WAIT: Duration = Duration::from_millis(500);

/// The caller's end of a call; None where no request is served, as for lists that are asked once per version.
pub type Caller = Option<Box<dyn CallContext>>;

/// Runs one exported function of an interface on a fresh instance. The whole call is one future that owns all it
/// needs, so that it can move to another thread and so that dropping it ends everything.
macro_rules! callback {
    ($version:expr, $caller:expr, $interface:ident, |$guest:ident, $store:ident| $call:expr) => {
        callback!($version, $caller, None, $interface, |$guest, $store| $call)
    };
    ($version:expr, $caller:expr, $allowance:expr, $interface:ident, |$guest:ident, $store:ident| $call:expr) => {{
        let version = Arc::clone(&$version.inner);
        if version.indices.$interface.is_none() {
            return Err(Failure::NotExported(stringify!($interface)));
        }
        $version
            .run($caller, $allowance, move |mut live: Live| async move {
                let Some(indices) = &version.indices.$interface else {
                    return Err(Failure::NotExported(stringify!($interface)));
                };
                let $guest = match indices.load(&mut live.store, &live.instance) {
                    Ok(guest) => guest,
                    Err(error) => return Err(live.fail(&error, Stage::Start)),
                };
                let $store = &mut live.store;
                let answer = $call.await;
                live.finish(answer).await
            })
            .await
    }};
}

impl Version {
    /// Who the guest is. Asked once per version.
    pub async fn describe(&self) -> Result<lifecycle::ServerInfo, Failure> {
        let version = Arc::clone(&self.inner);
        self.run(None, None, move |mut live: Live| async move {
            let guest = match version.indices.lifecycle.load(&mut live.store, &live.instance) {
                Ok(guest) => guest,
                Err(error) => return Err(live.fail(&error, Stage::Start)),
            };
            let answer = guest.call_describe(&mut live.store).await;
            live.finish(answer.map(Ok::<_, types::Error>)).await
        })
        .await
    }

    /// A page of the tools.
    pub async fn list_tools(&self, caller: Caller, cursor: Option<String>) -> Result<tools::ToolPage, Failure> {
        callback!(self, caller, tools, |guest, store| guest.call_list_tools(store, cursor.as_ref()))
    }

    /// Calls a tool; the arguments are a JSON object.
    pub async fn call_tool(&self, caller: Caller, name: String, arguments: String) -> Result<tools::ToolOutcome, Failure> {
        callback!(self, caller, tools, |guest, store| guest.call_call_tool(store, &name, &arguments))
    }

    /// The same for a call that may become a task. It needs nothing but itself, so that it can outlive its request.
    pub async fn call_tool_within(
        self,
        caller: Caller,
        allowance: Allowance,
        name: String,
        arguments: String,
    ) -> Result<tools::ToolOutcome, Failure> {
        callback!(self, caller, Some(allowance), tools, |guest, store| guest.call_call_tool(store, &name, &arguments))
    }

    /// A page of the resources.
    pub async fn list_resources(&self, caller: Caller, cursor: Option<String>) -> Result<resources::ResourcePage, Failure> {
        callback!(self, caller, resources, |guest, store| guest.call_list_resources(store, cursor.as_ref()))
    }

    /// A page of the resource templates.
    pub async fn list_templates(&self, caller: Caller, cursor: Option<String>) -> Result<resources::TemplatePage, Failure> {
        callback!(self, caller, resources, |guest, store| guest.call_list_templates(store, cursor.as_ref()))
    }

    /// Reads a resource.
    pub async fn read_resource(&self, caller: Caller, uri: String) -> Result<resources::ReadOutcome, Failure> {
        callback!(self, caller, resources, |guest, store| guest.call_read_resource(store, &uri))
    }

    /// Tells the guest that a resource has its first watcher.
    pub async fn subscribe(&self, caller: Caller, uri: String) -> Result<(), Failure> {
        callback!(self, caller, subscriptions, |guest, store| guest.call_subscribe(store, &uri))
    }

    /// Tells the guest that a resource has lost its last watcher.
    pub async fn unsubscribe(&self, caller: Caller, uri: String) -> Result<(), Failure> {
        callback!(self, caller, subscriptions, |guest, store| guest.call_unsubscribe(store, &uri))
    }

    /// A page of the prompts.
    pub async fn list_prompts(&self, caller: Caller, cursor: Option<String>) -> Result<prompts::PromptPage, Failure> {
        callback!(self, caller, prompts, |guest, store| guest.call_list_prompts(store, cursor.as_ref()))
    }

    /// Fills in a prompt.
    pub async fn get_prompt(
        &self,
        caller: Caller,
        name: String,
        arguments: Vec<(String, String)>,
    ) -> Result<prompts::PromptOutcome, Failure> {
        callback!(self, caller, prompts, |guest, store| guest.call_get_prompt(store, &name, &arguments))
    }

    /// Completes an argument of a prompt or a template.
    pub async fn complete(
        &self,
        caller: Caller,
        reference: completion::Reference,
        argument: String,
        value: String,
        resolved: Vec<(String, String)>,
    ) -> Result<completion::Completions, Failure> {
        callback!(self, caller, completion, |guest, store| guest.call_complete(store, &reference, &argument, &value, &resolved))
    }

    /// The state of a job that the guest runs elsewhere.
    pub async fn get_task(&self, caller: Caller, id: String) -> Result<tasks::Task, Failure> {
        callback!(self, caller, tasks, |guest, store| guest.call_get_task(store, &id))
    }

    /// Tells a job that these questions of its are answered.
    pub async fn update_task(&self, caller: Caller, id: String, answered: Vec<String>) -> Result<(), Failure> {
        callback!(self, caller, tasks, |guest, store| guest.call_update_task(store, &id, &answered))
    }

    /// Ends a job.
    pub async fn cancel_task(&self, caller: Caller, id: String) -> Result<(), Failure> {
        callback!(self, caller, tasks, |guest, store| guest.call_cancel_task(store, &id))
    }

    /// Migrates what an older version stored for one owner.
    pub async fn migrate(&self, from_version: String, owner: migration::Owner) -> Result<(), Failure> {
        callback!(self, None, migration, |guest, store| guest.call_migrate(store, &from_version, &owner))
    }

    /// Saves an instance's memory for the version after it.
    pub async fn save(&self) -> Result<Vec<u8>, Failure> {
        callback!(self, None, handoff, |guest, store| guest.call_save(store))
    }

    /// Gives a new instance the memory of one before it.
    pub async fn restore(&self, from_version: String, saved: Vec<u8>) -> Result<(), Failure> {
        callback!(self, None, handoff, |guest, store| guest.call_restore(store, &from_version, &saved))
    }

    /// Starts an instance and runs `body` on it, within all limits of a call.
    async fn run<B, F, T>(&self, caller: Caller, allowance: Option<Allowance>, body: B) -> Result<T, Failure>
    where
        B: FnOnce(Live) -> F + Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Send + 'static,
    {
        let version = &self.inner;
        let limits = &version.guest.limits;
        let admitted = admit(version).await?;
        let allowance = allowance.unwrap_or_else(|| Allowance::of_call(limits));
        let call = {
            let (version, allowance) = (Arc::clone(version), allowance.clone());
            async move {
                // Both go last, after the instance that they stand for.
                let _alive = (admitted, version.engines.running());
                let live = Live::start(&version, caller, allowance).await?;
                body(live).await
            }
        };
        let schedule = version.engines.schedule();
        schedule.run(call, &allowance, &version.turns).await
    }
}

/// A call's place among those of its guest, and in the pool of the engine.
type Admitted = (OwnedSemaphorePermit, Place);

/// Lets a call begin. A burst of short calls waits for a moment; a guest that is full of long ones says so. The wait comes
/// before the call's deadline starts, and how many wait is bounded by the requests in flight.
async fn admit(version: &Inner) -> Result<Admitted, Failure> {
    if let Ok(permit) = Arc::clone(&version.permits).try_acquire_owned()
        && let Some(place) = version.share.try_take()
    {
        return Ok((permit, place));
    }
    let both = async {
        let permit = Arc::clone(&version.permits).acquire_owned().await.ok()?;
        Some((permit, version.share.take().await))
    };
    tokio::time::timeout(PERMIT_WAIT, both).await.ok().flatten().ok_or(Failure::Busy)
}

/// An instance that has been initialised, in a store of its own.
struct Live {
    store: Store<State>,
    instance: Instance,
}

impl Live {
    async fn start(version: &Inner, caller: Caller, allowance: Allowance) -> Result<Live, Failure> {
        let limits = &version.guest.limits;
        let mut store = Store::new(version.pre.engine(), State::new(&version.guest, caller, allowance));
        store.limiter(|state| &mut state.limiter);
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        store.set_hostcall_fuel(limits.output_bytes.saturating_add(OUTPUT_SLACK_BYTES));
        store.set_max_component_handles(limits.handles);
        let started = async {
            let instance = version.pre.instantiate_async(&mut store).await?;
            let guest = version.indices.lifecycle.load(&mut store, &instance)?;
            let initialised = guest.call_init(&mut store, &version.config_json).await?;
            Ok((instance, initialised))
        };
        match started.await {
            Ok((instance, Ok(()))) => {
                store.data_mut().in_callback = true;
                Ok(Live { store, instance })
            }
            Ok((_, Err(text))) => {
                let text = super::log::clean(&text, limits.log_line_bytes);
                Err(Failure::StartFailed(format!("init refused: {text}")))
            }
            Err(error) => Err(fail(&store, &error, Stage::Start)),
        }
    }

    fn fail(&self, error: &wasmtime::Error, stage: Stage) -> Failure {
        fail(&self.store, error, stage)
    }

    /// Ends the call: sends the progress that was kept back, announces its changes if it succeeded, and destroys the
    /// instance in any case.
    async fn finish<T: Outcome, E: GuestError>(mut self, answer: wasmtime::Result<Result<T, E>>) -> Result<T, Failure> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Err(self.fail(&error, Stage::Callback)),
        };
        if let Some((context, progress)) = self.store.data_mut().reporting() {
            progress.finish(context).await;
        }
        let outcome = answer.map_err(|error| Failure::Guest(error.into_error()))?;
        let state = self.store.data_mut();
        if outcome.is_complete()
            && let Some(context) = state.context.as_deref_mut()
        {
            std::mem::take(&mut state.changes).send(context);
        }
        Ok(outcome)
    }
}

fn fail(store: &Store<State>, error: &wasmtime::Error, stage: Stage) -> Failure {
    let state = store.data();
    classify(error, stage, state.limiter.refused(), state.limits().output_bytes)
}

/// A callback's success. One that asks the client first has not done its work yet.
trait Outcome {
    fn is_complete(&self) -> bool {
        true
    }
}

impl Outcome for () {}
impl Outcome for Vec<u8> {}
impl Outcome for lifecycle::ServerInfo {}
impl Outcome for tools::ToolPage {}
impl Outcome for resources::ResourcePage {}
impl Outcome for resources::TemplatePage {}
impl Outcome for prompts::PromptPage {}
impl Outcome for completion::Completions {}
impl Outcome for tasks::Task {}

impl Outcome for tools::ToolOutcome {
    fn is_complete(&self) -> bool {
        match self {
            tools::ToolOutcome::Complete(_) | tools::ToolOutcome::Task(_) => true,
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
trait GuestError {
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
