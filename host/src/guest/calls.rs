//! The callbacks of a guest, each as a typed method: one call within its limits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::allowance::Allowance;
use super::attempts::{self, Body};
use super::bindings::{completion, lifecycle, migration, prompts, resources, tasks, tools, types};
use super::failure::{Failure, Stage};
use super::kept;
use super::outcome::Outcome;
use super::shares::Place;
use super::state::{CallContext, Visit};
use super::version::{Inner, Version};
use crate::audit::{Event, What};
use crate::identity::Identity;
use crate::principals::Share;
use crate::telemetry::Ended;

/// How long a call waits for others to end, of its guest or of those that share the engine, before the answer is that the
/// guest is busy.
pub(super) const PERMIT_WAIT: Duration = Duration::from_millis(500);

/// The caller's end of a call; None where no request is served, as for lists that are asked once per version.
pub type Caller = Option<Box<dyn CallContext>>;

/// Runs one exported function of an interface. Its arguments are named first, since they are lent to each run of it.
macro_rules! callback {
    ($version:expr, $caller:expr, $interface:ident($($argument:ident),*), |$guest:ident, $store:ident| $call:expr) => {
        callback!($version, $caller, None, $interface($($argument),*), |$guest, $store| $call)
    };
    ($version:expr, $caller:expr, $allowance:expr, $interface:ident($($argument:ident),*), |$guest:ident, $store:ident| $call:expr) => {{
        if $version.inner.indices.$interface.is_none() {
            return Err(Failure::NotExported(stringify!($interface)));
        }
        $version
            .run($caller, $allowance, ($($argument,)*), |version, ($($argument,)*), live| {
                Box::pin(async move {
                    let Some(indices) = &version.indices.$interface else {
                        return Err(Failure::NotExported(stringify!($interface)));
                    };
                    let $guest = match indices.load(&mut live.store, &live.instance) {
                        Ok(guest) => guest,
                        Err(error) => return Err(live.fail(&error, Stage::Start)),
                    };
                    let $store = &mut live.store;
                    let answer = $call.await;
                    live.answered(answer)
                })
            })
            .await
    }};
}

impl Version {
    /// Who the guest is. Asked once per version.
    pub async fn describe(&self) -> Result<lifecycle::ServerInfo, Failure> {
        let described = self.run(None, None, (), |version, (), live| {
            Box::pin(async move {
                let guest = match version.indices.lifecycle.load(&mut live.store, &live.instance) {
                    Ok(guest) => guest,
                    Err(error) => return Err(live.fail(&error, Stage::Start)),
                };
                let answer = guest.call_describe(&mut live.store).await;
                live.answered(answer.map(Ok::<_, types::Error>))
            })
        });
        let described = described.await?;
        // What instances save is labelled with it.
        self.inner.instances.described.get_or_init(|| described.version.as_str().into());
        Ok(described)
    }

    /// A page of the tools.
    pub async fn list_tools(&self, caller: Caller, cursor: Option<String>) -> Result<tools::ToolPage, Failure> {
        callback!(self, caller, tools(cursor), |guest, store| guest.call_list_tools(store, cursor.as_ref()))
    }

    /// Calls a tool; the arguments are a JSON object.
    pub async fn call_tool(&self, caller: Caller, name: String, arguments: String) -> Result<tools::ToolOutcome, Failure> {
        callback!(self, caller, tools(name, arguments), |guest, store| guest.call_call_tool(store, name, arguments))
    }

    /// The same for a call that may become a task. It needs nothing but itself, so that it can outlive its request.
    pub async fn call_tool_within(
        self,
        caller: Caller,
        allowance: Allowance,
        name: String,
        arguments: String,
    ) -> Result<tools::ToolOutcome, Failure> {
        callback!(self, caller, Some(allowance), tools(name, arguments), |guest, store| guest.call_call_tool(store, name, arguments))
    }

    /// A page of the resources.
    pub async fn list_resources(&self, caller: Caller, cursor: Option<String>) -> Result<resources::ResourcePage, Failure> {
        callback!(self, caller, resources(cursor), |guest, store| guest.call_list_resources(store, cursor.as_ref()))
    }

    /// A page of the resource templates.
    pub async fn list_templates(&self, caller: Caller, cursor: Option<String>) -> Result<resources::TemplatePage, Failure> {
        callback!(self, caller, resources(cursor), |guest, store| guest.call_list_templates(store, cursor.as_ref()))
    }

    /// Reads a resource.
    pub async fn read_resource(&self, caller: Caller, uri: String) -> Result<resources::ReadOutcome, Failure> {
        callback!(self, caller, resources(uri), |guest, store| guest.call_read_resource(store, uri))
    }

    /// Tells the guest that a resource has its first watcher.
    pub async fn subscribe(&self, caller: Caller, uri: String) -> Result<(), Failure> {
        callback!(self, caller, subscriptions(uri), |guest, store| guest.call_subscribe(store, uri))
    }

    /// Tells the guest that a resource has lost its last watcher.
    pub async fn unsubscribe(&self, caller: Caller, uri: String) -> Result<(), Failure> {
        callback!(self, caller, subscriptions(uri), |guest, store| guest.call_unsubscribe(store, uri))
    }

    /// A page of the prompts.
    pub async fn list_prompts(&self, caller: Caller, cursor: Option<String>) -> Result<prompts::PromptPage, Failure> {
        callback!(self, caller, prompts(cursor), |guest, store| guest.call_list_prompts(store, cursor.as_ref()))
    }

    /// Fills in a prompt.
    pub async fn get_prompt(
        &self,
        caller: Caller,
        name: String,
        arguments: Vec<(String, String)>,
    ) -> Result<prompts::PromptOutcome, Failure> {
        callback!(self, caller, prompts(name, arguments), |guest, store| guest.call_get_prompt(store, name, arguments))
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
        callback!(self, caller, completion(reference, argument, value, resolved), |guest, store| guest
            .call_complete(store, reference, argument, value, resolved))
    }

    /// The state of a job that the guest runs elsewhere.
    pub async fn get_task(&self, caller: Caller, id: String) -> Result<tasks::Task, Failure> {
        callback!(self, caller, tasks(id), |guest, store| guest.call_get_task(store, id))
    }

    /// Tells a job that these questions of its are answered.
    pub async fn update_task(&self, caller: Caller, id: String, answered: Vec<String>) -> Result<(), Failure> {
        callback!(self, caller, tasks(id, answered), |guest, store| guest.call_update_task(store, id, answered))
    }

    /// Ends a job.
    pub async fn cancel_task(&self, caller: Caller, id: String) -> Result<(), Failure> {
        callback!(self, caller, tasks(id), |guest, store| guest.call_cancel_task(store, id))
    }

    /// Migrates what an older version stored for one owner. What it writes is collected by the caller's end.
    pub(crate) async fn migrate(&self, caller: Caller, from_version: String, owner: migration::Owner) -> Result<(), Failure> {
        callback!(self, caller, migration(from_version, owner), |guest, store| guest.call_migrate(store, from_version, owner))
    }

    /// Runs a callback, counts how it ended, and notes a failure that is not the guest's own error.
    async fn run<A, T>(&self, caller: Caller, allowance: Option<Allowance>, arguments: A, body: Body<A, T>) -> Result<T, Failure>
    where
        A: Send + Sync + 'static,
        T: Outcome + Send + Sync + 'static,
    {
        let guest = &self.inner.guest;
        let principal = caller.as_ref().and_then(|caller| caller.identity().principal);
        let counting = guest.figures.begin();
        let outcome = self.run_within_limits(caller, allowance, arguments, body).await;
        let how = Ended::of(&outcome);
        counting.end(how);
        self.inner.tally.note(how);
        if how.is_failure() {
            let value = how.as_str();
            guest.room.audit.record(&Event {
                what: What::Failed,
                guest: &guest.name,
                subject: "call",
                value,
                principal: principal.as_deref(),
            });
        }
        outcome
    }

    /// Runs a callback within all limits of a call. The whole call is one future that owns all it needs, so that it can
    /// move to another thread and so that dropping it ends everything.
    async fn run_within_limits<A, T>(
        &self,
        caller: Caller,
        allowance: Option<Allowance>,
        arguments: A,
        body: Body<A, T>,
    ) -> Result<T, Failure>
    where
        A: Send + Sync + 'static,
        T: Outcome + Send + Sync + 'static,
    {
        let version = &self.inner;
        let deadline = Instant::now() + PERMIT_WAIT;
        // What the host itself wants of a guest is nobody's share.
        let identity = caller.as_deref().filter(|_| version.principals.counts()).map(CallContext::identity);
        let migrates = caller.as_deref().is_some_and(|caller| caller.migrating().is_some());
        let key = if migrates { None } else { version.instances.key(caller.as_deref()) };
        let own = own_share(version, identity.as_ref(), deadline).await?;
        if let Some(key) = key {
            let limits = &version.guest.limits;
            let visit = |allowance: &Allowance| Visit::new(limits, caller, allowance.clone());
            return kept::run(version, (key, own), visit, allowance, arguments, body).await;
        }
        let admitted = (admit(version, deadline).await?, own);
        let allowance = allowance.unwrap_or_else(|| Allowance::of_call(&version.guest.limits));
        let call = {
            let visit = Visit::new(&version.guest.limits, caller, allowance.clone());
            let version = Arc::clone(version);
            async move {
                // Both go last, after the instances that they stand for.
                let _alive = (admitted, version.engines.running());
                attempts::run(&version, visit, &arguments, body).await
            }
        };
        let schedule = version.engines.schedule();
        tokio::select! {
            biased;
            outcome = schedule.run(call, &allowance, &version.turns) => outcome,
            () = version.stopped.cancelled() => Err(Failure::Deadline),
        }
    }
}

/// Waits until the caller may have one more call of the guest.
async fn own_share(version: &Inner, identity: Option<&Identity>, deadline: Instant) -> Result<Option<Share>, Failure> {
    let Some(identity) = identity else { return Ok(None) };
    timeout_at(deadline, version.principals.take(identity)).await.map(Some).map_err(|_| Failure::TooMany)
}

/// A call's place among those of its guest, and in the pool of the engine.
type Admitted = (OwnedSemaphorePermit, Place);

/// Lets a call begin. A burst of short calls waits for a moment; a guest that is full of long ones says so. The wait comes
/// before the call's deadline starts, and how many wait is bounded by the requests in flight.
async fn admit(version: &Inner, deadline: Instant) -> Result<Admitted, Failure> {
    if let Ok(permit) = Arc::clone(&version.permits).try_acquire_owned()
        && let Some(place) = version.share.try_take()
    {
        return Ok((permit, place));
    }
    let both = async {
        let permit = Arc::clone(&version.permits).acquire_owned().await.ok()?;
        Some((permit, version.engines.lobby().place(version).await))
    };
    timeout_at(deadline, both).await.ok().flatten().ok_or(Failure::Busy)
}
