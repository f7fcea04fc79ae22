//! Tasks: calls that outlive the request they came with. What is kept of them, who may see them, and what runs.
//!
//! This module knows nothing of guests: whoever runs a task says what became of it. Every step is taken in the store,
//! and told from within that step, so that nobody hears of one change before another that came first.

mod handover;
mod kept;
mod questions;
mod record;
mod store;

use crate::changes::Hub;
use crate::config::tasks::TaskLimits;
use crate::registry::Endpoint;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::FutureExt;
use guesthouse_protocol::model::Task;
use guesthouse_protocol::model::tasks::{Live, Over, Stage};
use guesthouse_protocol::{Failure, InternalKind, Revision};
pub use handover::Handover;
pub use kept::KeptStore;
pub use questions::{Answered, Asking, Report, ReportedState};
pub use record::{Keys, Owner, Record, Work};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
pub use store::{Full, MemoryStore, Store, StoreLimits};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// Random bytes of a task's id: enough that nobody guesses one.
const ID_BYTES: usize = 24;

/// All tasks of a host.
pub struct Tasks {
    store: Box<dyn Store>,
    limits: TaskLimits,
    hub: Arc<Hub>,
    running: Mutex<Runs>,
    /// Told at every change.
    changed: watch::Sender<()>,
    runtime: Handle,
    /// Milliseconds since 1970.
    clock: fn() -> u64,
}

#[derive(Default)]
struct Runs {
    by_task: HashMap<Arc<str>, Run>,
    last: u64,
}

/// A task on which something works in this process.
struct Run {
    number: u64,
    guest: Arc<str>,
    work: AbortHandle,
}

impl Tasks {
    /// No tasks, to be kept in this store. Must be called within a runtime.
    pub fn new(store: Box<dyn Store>, limits: &TaskLimits, hub: Arc<Hub>) -> Arc<Self> {
        Self::with_clock(store, limits, hub, now_ms)
    }

    fn with_clock(store: Box<dyn Store>, limits: &TaskLimits, hub: Arc<Hub>, clock: fn() -> u64) -> Arc<Self> {
        Arc::new(Self {
            store,
            limits: limits.clone(),
            hub,
            running: Mutex::default(),
            changed: watch::Sender::new(()),
            runtime: Handle::current(),
            clock,
        })
    }

    /// Keeps a new task. The client may have asked for a time to keep it.
    pub fn create(&self, owner: Owner, work: Work, ttl_ms: Option<u64>) -> Result<Task, Full> {
        self.purge();
        let random = crate::seal::random::<ID_BYTES>().map_err(|error| {
            tracing::error!("a task gets no id: {error:#}");
            Full
        })?;
        let id = format!("task_{}", URL_SAFE_NO_PAD.encode(random));
        let ttl_ms = ttl_ms.map_or(self.limits.ttl.0, |asked| asked.min(self.limits.ttl_max.0));
        let task = Task::new(id, (self.clock)(), ttl_ms, self.limits.poll.0);
        self.store.insert(Record { owner, task: task.clone(), work, keys: Keys::default() })?;
        Ok(task)
    }

    /// How many are worked on.
    pub fn running(&self) -> usize {
        self.lock().by_task.len()
    }

    /// Waits until a new task is saved, before anybody is told of it. One that is not, or that nobody waits for any more, is
    /// cancelled.
    pub async fn saved(self: &Arc<Self>, id: &str) -> Result<(), Full> {
        let mut unannounced = Unannounced { tasks: self, id: Some(id) };
        self.store.saved(id).await.map_err(|error| {
            tracing::error!("a task cannot be saved: {error}");
            Full
        })?;
        unannounced.id = None;
        Ok(())
    }

    /// A task that is over, as a client is to see it: it stays over, whatever becomes of the process. Where the storage fails,
    /// there is nothing to wait for.
    pub async fn settle(&self, task: Task) -> Task {
        if task.live().is_none()
            && let Err(error) = self.store.saved(&task.id).await
        {
            tracing::error!("how a task ended cannot be saved: {error}");
        }
        task
    }

    /// The tasks that another process left, and that nothing works on: for each its id, where it belongs, the guest, and its tool.
    pub fn left(&self) -> Vec<(Arc<str>, Endpoint, Arc<str>, String)> {
        let look = |id: &Arc<str>| {
            self.record(id, None, |record| {
                let works = matches!(record.task.live(), Some(Live::Working(_))) && record.work.job.is_none();
                works.then(|| (id.clone(), record.owner.endpoint.clone(), record.work.guest.clone(), record.work.tool.clone()))
            })
        };
        self.store.ids().iter().filter_map(look).flatten().collect()
    }

    /// Whether another task may occupy that guest, of whose places tasks may have so many.
    pub fn has_place(&self, guest: &str, places: usize) -> bool {
        self.lock().by_task.values().filter(|run| *run.guest == *guest).count() < places
    }

    /// Lets something work on a task, for as long as the task is kept. If it fails unforeseen, so does the task.
    pub fn work_on(self: &Arc<Self>, id: &Arc<str>, guest: Arc<str>, work: impl Future<Output = ()> + Send + 'static) {
        let mut expires = 0;
        self.store.read(id, None, &mut |record| expires = record.task.expires_at_ms());
        let left = Duration::from_millis(expires.saturating_sub((self.clock)()));
        let mut running = self.lock();
        running.last = running.last.saturating_add(1);
        let number = running.last;
        let (tasks, of) = (Arc::downgrade(self), id.clone());
        let work = self.runtime.spawn(async move {
            let ended = timeout(left, AssertUnwindSafe(work).catch_unwind()).await;
            let Some(tasks) = tasks.upgrade() else { return };
            if matches!(ended, Ok(Err(_))) {
                tracing::error!("the host failed while it worked on a task");
                tasks.end(&of, internal(InternalKind::HandlerError, "The server failed while it worked on the task"));
            }
            let mut running = tasks.lock();
            if running.by_task.get(&of).is_some_and(|run| run.number == number) {
                running.by_task.remove(&of);
            }
        });
        running.by_task.insert(id.clone(), Run { number, guest, work: work.abort_handle() });
    }

    /// How a task is.
    pub fn task(&self, id: &str, owner: &Owner) -> Option<Task> {
        self.record(id, Some(owner), |record| record.task.clone())
    }

    /// Shows what is kept of a task.
    pub fn record<T>(&self, id: &str, owner: Option<&Owner>, read: impl Fn(&Record) -> T) -> Option<T> {
        self.purge();
        let mut shown = None;
        self.store.read(id, owner, &mut |record| shown = Some(read(record)));
        shown
    }

    /// Some of an owner's tasks, after the position of one; each with its position.
    pub fn list(&self, owner: &Owner, after: u64, len: usize) -> Vec<(u64, Task)> {
        self.purge();
        self.store.list(owner, after, len)
    }

    /// Waits until a task needs answers or is over; `None` if there is none (any more).
    pub async fn settled(&self, id: &str, owner: &Owner) -> Option<Task> {
        loop {
            let mut changed = self.changed.subscribe();
            let task = self.task(id, owner)?;
            if !matches!(task.stage(), Stage::Live(Live::Working(_))) {
                return Some(self.settle(task).await);
            }
            let left = task.expires_at_ms().saturating_sub((self.clock)());
            // Either way the next look tells more.
            let _ = timeout(Duration::from_millis(left), changed.changed()).await;
        }
    }

    /// Says how far a task is.
    pub fn note(&self, id: &str, message: String) {
        let mut message = Some(message);
        self.change(id, None, |record, room| match message.take().filter(|message| message.len() <= room) {
            Some(message) => (record.task.note((self.clock)(), message), ()),
            None => (false, ()),
        });
    }

    /// The guest runs the task elsewhere, and calls it so.
    pub fn is_job(&self, id: &str, job: String) {
        let mut job = Some(job);
        self.change(id, None, |record, _| {
            record.work.job = job.take();
            (false, ())
        });
    }

    /// Ends a task. One that is over stays as it is.
    pub fn end(&self, id: &str, over: Over) {
        let mut over = Some(over);
        self.change(id, None, |record, room| {
            let Some(over) = over.take() else { return (false, ()) };
            (self.end_record(record, room, over), ())
        });
    }

    fn end_record(&self, record: &mut Record, room: usize, over: Over) -> bool {
        let over = if over.bytes() <= room {
            over
        } else {
            internal(InternalKind::OutputTooLarge, "There was no room to keep the result of the task")
        };
        let reason = over.reason();
        let ended = record.task.advance((self.clock)(), |_| over.into());
        if ended {
            record.task.message = reason;
            record.forget_work();
        }
        ended
    }

    /// Cancels a task and stops whatever works on it. Says how the task is then, and whether it was over already.
    pub fn cancel(&self, id: &str, owner: &Owner) -> Option<(Task, bool)> {
        self.purge();
        let cancelled = self.change(id, Some(owner), |record, room| {
            let cancelled = self.end_record(record, room, Over::Cancelled);
            (cancelled, (record.task.clone(), !cancelled))
        })?;
        self.stop(id);
        Some(cancelled)
    }

    /// Takes a step with a task, and tells whoever wants to know if that changed it.
    fn change<T>(&self, id: &str, owner: Option<&Owner>, mut change: impl FnMut(&mut Record, usize) -> (bool, T)) -> Option<T> {
        let mut outcome = None;
        self.store.change(id, owner, &mut |record, room| {
            let (changed, value) = change(record, room);
            outcome = Some(value);
            if changed {
                self.hub.publish_task(&record.task);
                self.changed.send_replace(());
            }
        });
        outcome
    }

    /// Forgets what has expired, and stops what works on it.
    fn purge(&self) {
        for id in self.store.purge((self.clock)()) {
            self.stop(&id);
            self.hub.forget_task(&id);
        }
    }

    fn stop(&self, id: &str) {
        let run = self.lock().by_task.remove(id);
        if let Some(run) = run {
            run.work.abort();
        }
    }

    /// No code panics while it holds the lock; were it ever to, the state would still be whole.
    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that its client has not been told of.
struct Unannounced<'a> {
    tasks: &'a Tasks,
    id: Option<&'a str>,
}

impl Drop for Unannounced<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.tasks.end(id, Over::Cancelled);
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        for run in self.lock().by_task.values() {
            run.work.abort();
        }
    }
}

/// An end that the host is to blame for.
pub(crate) fn internal(kind: InternalKind, text: &str) -> Over {
    Over::of(Err(Failure::Internal { kind, text: text.into() }), Revision::LATEST_MODERN)
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
