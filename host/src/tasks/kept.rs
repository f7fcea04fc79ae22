//! Tasks that outlive the process: the work is done in memory, and a copy of every task goes to the storage.
//!
//! Each process keeps its tasks in a space of its own. When it is gone, the next one that starts takes over those of the guests that
//! it serves. What happens to
//! a task is saved a moment later, all that happened meanwhile at once; whoever must not go on before can wait for it.

use super::record::{Owner, Record};
use super::store::{Full, MemoryStore, Store, StoreLimits};
use crate::storage::{Backend, Commit, CommitError, Failed, Part, Quota, Space, Storage};
use futures_util::future::BoxFuture;
use guesthouse_protocol::model::Task;
use guesthouse_protocol::model::tasks::Stage;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

/// The realm of all tasks.
const REALM: &str = "tasks";
/// Tasks that are saved or taken over at once.
const GROUP_MAX: usize = 64;
/// How long it takes until a task's message is saved, which may change all the time.
const NOTES_PAUSE: Duration = Duration::from_secs(1);
/// How long to wait before the storage is tried again that failed.
const FAILED_PAUSE: Duration = Duration::from_secs(5);

/// Keeps tasks in memory and in the storage.
pub struct KeptStore {
    kept: Arc<Kept>,
    saver: AbortHandle,
}

struct Kept {
    memory: MemoryStore,
    storage: Storage,
    unsaved: Mutex<Unsaved>,
    /// Told when there is something to save.
    changed: Notify,
    attempts: watch::Sender<Attempt>,
}

#[derive(Default)]
struct Unsaved {
    ids: HashSet<Arc<str>>,
    /// Those that are being saved, as they were when that began.
    saving: Vec<Arc<str>>,
    /// Not only messages have changed, or somebody waits.
    urgent: bool,
}

/// How the newest attempt to save ended.
#[derive(Clone, Copy, Default)]
struct Attempt {
    failed: bool,
}

impl KeptStore {
    /// Opens the storage, and takes over what processes left that are gone, of the guests that are served here. Must be called within
    /// a runtime.
    pub async fn open(storage: &Storage, limits: StoreLimits, now_ms: u64, serves: &Serves<'_>) -> Result<Self, Failed> {
        let backend = storage.open().await?;
        let memory = MemoryStore::new(limits);
        let left = take_over(backend, now_ms, serves).await?;
        for record in left {
            if memory.insert(record).is_err() {
                tracing::warn!("there is no room for all tasks that another process left");
                break;
            }
        }
        let kept = Arc::new(Kept {
            memory,
            storage: storage.clone(),
            unsaved: Mutex::default(),
            changed: Notify::new(),
            attempts: watch::Sender::default(),
        });
        let saver = tokio::spawn(save_always(kept.clone())).abort_handle();
        Ok(Self { kept, saver })
    }
}

impl Drop for KeptStore {
    fn drop(&mut self) {
        self.saver.abort();
    }
}

impl Kept {
    fn mark(&self, ids: impl IntoIterator<Item = Arc<str>>, urgent: bool) {
        let mut unsaved = self.lock();
        unsaved.ids.extend(ids);
        unsaved.urgent |= urgent;
        drop(unsaved);
        self.changed.notify_one();
    }

    /// Saves some of what has changed.
    async fn save(&self) -> Result<(), Failed> {
        let backend = self.storage.open().await?;
        let ids = {
            let mut unsaved = self.lock();
            let ids: Vec<Arc<str>> = unsaved.ids.iter().take(GROUP_MAX).cloned().collect();
            unsaved.ids.retain(|id| !ids.contains(id));
            unsaved.urgent &= !unsaved.ids.is_empty();
            unsaved.saving.clone_from(&ids);
            ids
        };
        let mut part = Part::new(space(backend.node()), Quota::NONE);
        for id in &ids {
            let mut text = None;
            self.memory.read(id, None, &mut |record| text = serde_json::to_vec(record).ok());
            part.writes.push((id.to_string(), text.map(Into::into)));
        }
        let saved = backend.commit(Commit { parts: vec![part] }).await.map_err(words);
        let mut unsaved = self.lock();
        unsaved.saving.clear();
        if saved.is_err() {
            unsaved.ids.extend(ids);
            unsaved.urgent = true;
        }
        drop(unsaved);
        self.attempts.send_replace(Attempt { failed: saved.is_err() });
        saved
    }

    /// Whether a task is as it was saved. If it is not, it is to be saved at once.
    fn is_saved(&self, id: &str) -> bool {
        let mut unsaved = self.lock();
        let waits = unsaved.ids.contains(id);
        unsaved.urgent |= waits;
        let saved = !waits && !unsaved.saving.iter().any(|saving| **saving == *id);
        drop(unsaved);
        if waits {
            self.changed.notify_one();
        }
        saved
    }

    /// No code panics while it holds the lock; were it ever to, the state would still be whole.
    fn lock(&self) -> MutexGuard<'_, Unsaved> {
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Saves what changes, until the store is dropped.
async fn save_always(kept: Arc<Kept>) {
    loop {
        let (nothing, urgent) = {
            let unsaved = kept.lock();
            (unsaved.ids.is_empty(), unsaved.urgent)
        };
        if nothing {
            kept.changed.notified().await;
        } else if !urgent {
            let until = Instant::now() + NOTES_PAUSE;
            // More messages do not put it off.
            while !kept.lock().urgent && timeout_at(until, kept.changed.notified()).await.is_ok() {}
        }
        if let Err(error) = kept.save().await {
            tracing::error!("tasks cannot be saved, and would not survive a restart: {error}");
            tokio::time::sleep(FAILED_PAUSE).await;
        }
    }
}

/// Whether a guest of that name is served here.
type Serves<'a> = dyn Fn(&str) -> bool + Sync + 'a;

/// The tasks of processes that are gone, which are this one's from now on. Those of other guests are left to whoever serves them.
async fn take_over(backend: &dyn Backend, now_ms: u64, serves: &Serves<'_>) -> Result<Vec<Record>, Failed> {
    // In this order: a node that has a space by now is seen, if it is still there.
    let spaces = backend.spaces(REALM.into()).await?;
    let nodes = backend.nodes().await?;
    let mut left = Vec::new();
    for from in spaces.into_iter().filter(|space| !nodes.iter().any(|node| **node == *space.name)) {
        let mut after = None;
        while let Some(records) = take_some(backend, &from, &mut after, now_ms, serves).await? {
            left.extend(records);
        }
    }
    left.sort_by_key(|record: &Record| record.task.created_at_ms);
    Ok(left)
}

/// Takes over some of the tasks in a space, after a key; None where there are none, or where another process takes them.
async fn take_some(
    backend: &dyn Backend,
    from: &Space,
    after: &mut Option<String>,
    now_ms: u64,
    serves: &Serves<'_>,
) -> Result<Option<Vec<Record>>, Failed> {
    let keys = backend.keys(from.clone(), after.take(), GROUP_MAX).await?.keys;
    let Some(last) = keys.last() else { return Ok(None) };
    *after = Some(last.clone());
    let records = backend.get(from.clone(), keys.clone()).await?;
    let (mut old, mut own) = (Part::new(from.clone(), Quota::NONE), Part::new(space(backend.node()), Quota::NONE));
    let mut taken = Vec::new();
    for (key, found) in keys.into_iter().zip(records) {
        let revision = found.as_ref().map(|found| found.revision);
        let record = found.and_then(|found| serde_json::from_slice::<Record>(&found.value).ok());
        // Only another version of ours writes anything else.
        let record = record.filter(|record| record.task.expires_at_ms() > now_ms);
        if record.as_ref().is_some_and(|record| !serves(&record.work.guest)) {
            continue;
        }
        old.seen.push((key.clone(), revision));
        old.writes.push((key.clone(), None));
        let Some(mut record) = record else { continue };
        // The session went with the process.
        record.work.context.identity.session = None;
        let text = serde_json::to_vec(&record).map_err(|error| Failed(format!("a task cannot be written: {error}")))?;
        own.writes.push((key, Some(text.into())));
        taken.push(record);
    }
    match backend.commit(Commit { parts: vec![old, own] }).await {
        Ok(()) => Ok(Some(taken)),
        Err(CommitError::Conflict) => Ok(None),
        Err(error) => Err(words(error)),
    }
}

fn space(node: &str) -> Space {
    Space { realm: REALM.into(), name: node.into() }
}

fn words(error: CommitError) -> Failed {
    match error {
        CommitError::Failed(text) | CommitError::Quota(text) => Failed(text),
        CommitError::Conflict => Failed("another process changed tasks of this one".into()),
    }
}

/// What of a task is saved at once when it changes: all but its message.
fn gist(record: &Record) -> (u8, u32, usize, usize, bool) {
    let stage = match record.task.stage() {
        Stage::Live(_) => 0,
        Stage::Over(_) => 1,
    };
    let rounds = &record.work.context.rounds;
    (stage, rounds.round, rounds.answers.len(), record.keys.open_own().count(), record.work.job.is_some())
}

impl Store for KeptStore {
    fn insert(&self, record: Record) -> Result<(), Full> {
        let id = Arc::from(record.task.id.as_str());
        self.kept.memory.insert(record)?;
        self.kept.mark([id], true);
        Ok(())
    }

    fn read(&self, id: &str, owner: Option<&Owner>, read: &mut dyn FnMut(&Record)) -> bool {
        self.kept.memory.read(id, owner, read)
    }

    fn change(&self, id: &str, owner: Option<&Owner>, change: &mut dyn FnMut(&mut Record, usize)) -> bool {
        let mut urgent = false;
        let found = self.kept.memory.change(id, owner, &mut |record, room| {
            let before = gist(record);
            change(record, room);
            urgent = before != gist(record);
        });
        if found {
            self.kept.mark([id.into()], urgent);
        }
        found
    }

    fn list(&self, owner: &Owner, after: u64, len: usize) -> Vec<(u64, Task)> {
        self.kept.memory.list(owner, after, len)
    }

    fn purge(&self, now_ms: u64) -> Vec<Arc<str>> {
        let gone = self.kept.memory.purge(now_ms);
        if !gone.is_empty() {
            self.kept.mark(gone.iter().cloned(), false);
        }
        gone
    }

    fn ids(&self) -> Vec<Arc<str>> {
        self.kept.memory.ids()
    }

    fn saved<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Failed>> {
        Box::pin(async move {
            let mut attempts = self.kept.attempts.subscribe();
            while !self.kept.is_saved(id) {
                let ended = attempts.changed().await;
                if ended.is_err() || attempts.borrow_and_update().failed {
                    return Err(Failed("the storage failed".into()));
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
