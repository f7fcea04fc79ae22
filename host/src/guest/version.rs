//! One build of a guest, ready to be called: what all its calls share.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use wasmtime::component::InstancePre;

use super::bindings::{completion, handoff, lifecycle, migration, prompts, resources, subscriptions, tasks, tools};
use super::commits::CommitLock;
use super::engine::{Engines, SizeClass};
use super::instances::Instances;
use super::limits::CallLimits;
use super::log::GuestLog;
use super::manifest::{Exports, Manifest};
use super::room::Room;
use super::shares::Share;
use super::state::State;
use crate::policy::Effective;
use crate::principals::Principals;
use crate::telemetry::{Ended, GuestFigures};

/// One build of a guest. Cloning is cheap; calls in flight keep their version alive.
#[derive(Clone)]
pub struct Version {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) guest: Arc<Guest>,
    pub(crate) pre: InstancePre<State>,
    pub(crate) indices: Indices,
    /// The operator's table for this guest, which every instance gets first.
    pub(crate) config_json: String,
    pub(crate) digest: String,
    pub(crate) class: SizeClass,
    pub(crate) manifest: Manifest,
    /// One for each call that may be alive.
    pub(crate) permits: Arc<Semaphore>,
    /// How many of them are whose.
    pub(crate) principals: Principals,
    /// Its part of the places in the engine's pool, which it shares with other guests.
    pub(crate) share: Share,
    /// Its turns on the threads for long calls.
    pub(crate) turns: Arc<Semaphore>,
    /// Shared by the calls of the guest that commit, or held by the one that must not lose to them.
    pub(crate) commit_lock: CommitLock,
    /// Which state of its guest it is for; older ones cannot commit.
    pub(crate) generation: AtomicU64,
    /// How its calls ended so far.
    pub(crate) tally: Tally,
    /// Set when nothing is to run on it any more.
    pub(crate) stopped: CancellationToken,
    /// Those that outlive a call.
    pub(crate) instances: Arc<Instances>,
    /// Last, so that what was made by an engine is gone before the engine.
    pub(crate) engines: Engines,
}

/// What the stores of all calls refer to.
pub(crate) struct Guest {
    pub(crate) name: String,
    pub(crate) limits: CallLimits,
    pub(crate) log: Arc<GuestLog>,
    pub(crate) room: Room,
    pub(crate) figures: GuestFigures,
}

/// Where the exported functions are, looked up once. `lifecycle` is required, the others are what the guest offers.
pub(crate) struct Indices {
    pub(crate) lifecycle: lifecycle::GuestIndices,
    pub(crate) tools: Option<tools::GuestIndices>,
    pub(crate) resources: Option<resources::GuestIndices>,
    pub(crate) subscriptions: Option<subscriptions::GuestIndices>,
    pub(crate) prompts: Option<prompts::GuestIndices>,
    pub(crate) completion: Option<completion::GuestIndices>,
    pub(crate) tasks: Option<tasks::GuestIndices>,
    pub(crate) migration: Option<migration::GuestIndices>,
    pub(crate) handoff: Option<handoff::GuestIndices>,
}

impl Indices {
    /// Looks every offered function up; fails where an interface lacks one.
    pub(crate) fn new(pre: &InstancePre<State>, offers: Exports) -> wasmtime::Result<Indices> {
        Ok(Indices {
            lifecycle: lifecycle::GuestIndices::new(pre)?,
            tools: offers.tools.then(|| tools::GuestIndices::new(pre)).transpose()?,
            resources: offers.resources.then(|| resources::GuestIndices::new(pre)).transpose()?,
            subscriptions: offers.subscriptions.then(|| subscriptions::GuestIndices::new(pre)).transpose()?,
            prompts: offers.prompts.then(|| prompts::GuestIndices::new(pre)).transpose()?,
            completion: offers.completion.then(|| completion::GuestIndices::new(pre)).transpose()?,
            tasks: offers.tasks.then(|| tasks::GuestIndices::new(pre)).transpose()?,
            migration: offers.migration.then(|| migration::GuestIndices::new(pre)).transpose()?,
            handoff: offers.handoff.then(|| handoff::GuestIndices::new(pre)).transpose()?,
        })
    }
}

/// How the calls of one version ended.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    calls: AtomicUsize,
    failures: AtomicUsize,
    failed: Notify,
}

impl Tally {
    /// Counts a call. That there was no place for it, or that nobody waited for it, says nothing of the version.
    pub(crate) fn note(&self, how: Ended) {
        if matches!(how, Ended::Busy | Ended::Cancelled) {
            return;
        }
        if how.is_failure() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        if how.is_failure() {
            self.failed.notify_one();
        }
    }
}

/// A version that may be gone.
#[derive(Debug, Clone)]
pub(crate) struct WeakVersion(Weak<Inner>);

impl WeakVersion {
    pub(crate) fn upgrade(&self) -> Option<Version> {
        self.0.upgrade().map(|inner| Version { inner })
    }
}

impl Inner {
    /// Whether the state of its guest was replaced for a newer version.
    pub(super) fn is_superseded(&self) -> bool {
        self.generation.load(Ordering::SeqCst) != self.commit_lock.generation()
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl Version {
    /// The same without keeping it.
    pub(crate) fn downgrade(&self) -> WeakVersion {
        WeakVersion(Arc::downgrade(&self.inner))
    }

    /// Whether the two are the same build, loaded once.
    pub fn is(&self, other: &Version) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// How many hold it: its code and its memory are freed with the last one.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.inner)
    }

    /// What it shares with the other versions of its guest.
    pub(crate) fn commits(&self) -> &CommitLock {
        &self.inner.commit_lock
    }

    /// Ends whatever runs on it, on instances that live on, too.
    pub fn stop(&self) {
        self.inner.stopped.cancel();
    }

    /// Calls that ended on it, and how many of them failed by more than an error of the guest's own.
    pub fn tally(&self) -> (usize, usize) {
        let tally = &self.inner.tally;
        // Failures first: between the two, more calls may end, and never fewer.
        let failures = tally.failures.load(Ordering::Relaxed);
        (tally.calls.load(Ordering::Relaxed), failures)
    }

    /// Resolves after a call of it has failed. For one who waits at a time.
    pub(crate) async fn failed(&self) {
        self.inner.tally.failed.notified().await;
    }

    /// The guest's name in this host.
    pub fn name(&self) -> &str {
        &self.inner.guest.name
    }

    /// SHA-256 of the component, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.inner.digest
    }

    /// Which of the optional interfaces the guest exports.
    pub fn exports(&self) -> Exports {
        self.inner.manifest.offers
    }

    /// What the component says about itself.
    pub fn manifest(&self) -> &Manifest {
        &self.inner.manifest
    }

    /// The engine class that was chosen for it.
    pub fn class(&self) -> SizeClass {
        self.inner.class
    }

    /// Calls that are alive now; a version that is being replaced has drained when there are none.
    pub fn calls_alive(&self) -> usize {
        self.inner.guest.limits.concurrency.saturating_sub(self.inner.permits.available_permits())
    }

    /// Says in the host's log what went wrong with a call of this guest: on one line, which is cut and counted like those
    /// that the guest writes.
    pub fn report(&self, text: &str) {
        self.inner.guest.log.report(&self.inner.digest, text);
    }

    /// Whether it was granted state, and imports what it takes to use it.
    pub fn uses_state(&self) -> bool {
        self.inner.guest.room.grants.state && self.inner.manifest.imports.iter().any(|import| import.starts_with("wasi:keyvalue/"))
    }

    /// What it gets of what is granted.
    pub fn grants(&self) -> &Effective {
        &self.inner.guest.room.grants
    }

    /// What is counted of its guest's calls.
    pub fn figures(&self) -> &GuestFigures {
        &self.inner.guest.figures
    }

    /// The limits of its calls.
    pub fn limits(&self) -> &CallLimits {
        &self.inner.guest.limits
    }
}

impl std::fmt::Debug for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Version").field("name", &self.name()).field("digest", &self.digest()).finish_non_exhaustive()
    }
}
