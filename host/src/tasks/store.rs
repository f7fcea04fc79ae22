//! What is kept of tasks: behind a trait, so that it can be kept elsewhere than in memory.

use super::record::{Owner, Record};
use crate::storage::Failed;
use futures_util::future::BoxFuture;
use guesthouse_protocol::model::Task;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// There is no room for another task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// What a store may keep.
#[derive(Clone, Copy, Debug)]
pub struct StoreLimits {
    /// Records at a time.
    pub count: usize,
    /// Bytes of all of them.
    pub bytes: usize,
}

/// Keeps tasks. Every method is one step: nobody sees half of it. Time is passed in, in milliseconds since 1970.
pub trait Store: Send + Sync + 'static {
    /// Keeps a new task, if there is room for it.
    fn insert(&self, record: Record) -> Result<(), Full>;

    /// Shows a task to `read`; whoever names an owner sees that owner's alone.
    fn read(&self, id: &str, owner: Option<&Owner>, read: &mut dyn FnMut(&Record)) -> bool;

    /// Lets `change` change a task, and tells it by how many bytes the record may grow. False if there is no such task, or if
    /// it is another's.
    fn change(&self, id: &str, owner: Option<&Owner>, change: &mut dyn FnMut(&mut Record, usize)) -> bool;

    /// An owner's tasks in the order in which they were made, from after the position of one, at most `len`; each with its
    /// position.
    fn list(&self, owner: &Owner, after: u64, len: usize) -> Vec<(u64, Task)>;

    /// Forgets what has expired, and says what that was.
    fn purge(&self, now_ms: u64) -> Vec<Arc<str>>;

    /// All tasks, in the order in which they were made.
    fn ids(&self) -> Vec<Arc<str>>;

    /// Waits until what was done with a task so far is kept as safely as the store keeps anything.
    fn saved<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Failed>>;
}

/// Keeps tasks in memory.
pub struct MemoryStore {
    limits: StoreLimits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    records: HashMap<Arc<str>, Kept>,
    /// By position, which only ever rises.
    order: BTreeMap<u64, Arc<str>>,
    /// By the time at which they expire.
    expiry: BTreeSet<(u64, Arc<str>)>,
    bytes: usize,
    last: u64,
}

struct Kept {
    record: Record,
    position: u64,
}

impl MemoryStore {
    /// A store without tasks.
    pub fn new(limits: StoreLimits) -> Self {
        Self { limits, state: Mutex::default() }
    }

    /// Tasks, and the bytes that they take.
    pub fn size(&self) -> (usize, usize) {
        let state = self.lock();
        (state.records.len(), state.bytes)
    }

    /// No code panics while it holds the lock; were it ever to, the state would still be whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn insert(&self, record: Record) -> Result<(), Full> {
        let mut state = self.lock();
        let bytes = state.bytes.saturating_add(record.bytes());
        if state.records.len() >= self.limits.count || bytes > self.limits.bytes {
            return Err(Full);
        }
        let id: Arc<str> = record.task.id.as_str().into();
        state.bytes = bytes;
        state.last = state.last.saturating_add(1);
        let position = state.last;
        state.order.insert(position, id.clone());
        state.expiry.insert((record.task.expires_at_ms(), id.clone()));
        state.records.insert(id, Kept { record, position });
        Ok(())
    }

    fn read(&self, id: &str, owner: Option<&Owner>, read: &mut dyn FnMut(&Record)) -> bool {
        let state = self.lock();
        let kept = state.records.get(id).filter(|kept| owner.is_none_or(|owner| *owner == kept.record.owner));
        kept.map(|kept| read(&kept.record)).is_some()
    }

    fn change(&self, id: &str, owner: Option<&Owner>, change: &mut dyn FnMut(&mut Record, usize)) -> bool {
        let mut state = self.lock();
        let room = self.limits.bytes.saturating_sub(state.bytes);
        let kept = state.records.get_mut(id).filter(|kept| owner.is_none_or(|owner| *owner == kept.record.owner));
        let Some(Kept { record, .. }) = kept else { return false };
        let before = record.bytes();
        change(record, room);
        let after = record.bytes();
        state.bytes = state.bytes.saturating_sub(before).saturating_add(after);
        true
    }

    fn list(&self, owner: &Owner, after: u64, len: usize) -> Vec<(u64, Task)> {
        let state = self.lock();
        let kept = state.order.range(after.saturating_add(1)..).filter_map(|(_, id)| state.records.get(id));
        let own = kept.filter(|kept| kept.record.owner == *owner);
        own.take(len).map(|kept| (kept.position, kept.record.task.clone())).collect()
    }

    fn purge(&self, now_ms: u64) -> Vec<Arc<str>> {
        let mut state = self.lock();
        let mut gone = Vec::new();
        while state.expiry.first().is_some_and(|(expires, _)| *expires <= now_ms) {
            let Some((_, id)) = state.expiry.pop_first() else { break };
            if let Some(Kept { record, position }) = state.records.remove(&id) {
                state.order.remove(&position);
                state.bytes = state.bytes.saturating_sub(record.bytes());
            }
            gone.push(id);
        }
        gone
    }

    fn ids(&self) -> Vec<Arc<str>> {
        self.lock().order.values().cloned().collect()
    }

    fn saved<'a>(&'a self, _id: &'a str) -> BoxFuture<'a, Result<(), Failed>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
