//! The instances of one guest that outlive a call: whose they are, whose turn it is, and when they go.
//!
//! Under the policy `session` an instance lives for a session of the handshake era, under `shared` for the version. Callbacks
//! have it one at a time, in order of arrival. Whoever has the turn owns the instance, and gives it back only after a callback
//! that ended as callbacks do: dropping a call anywhere destroys it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, Semaphore};
use tokio::task::AbortHandle;

use super::failure::Failure;
use super::live::Live;
use super::lobby::{Held, Lobby, Whose};
use super::saved::{Saved, Savings};
use super::state::CallContext;
use super::version::Inner;
use crate::config::grants::InstancePolicy;

/// How long the look at instances that are idle for too long takes at least to the next.
const WATCH_TIME_MIN: Duration = Duration::from_millis(100);

/// Whose an instance is: a session's, by name; or everybody's.
pub type Key = Option<Arc<str>>;

/// How instances of a guest are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeping {
    /// How long they live at most.
    pub policy: InstancePolicy,
    /// How many there are at a time.
    pub instances_max: usize,
    /// How long one may be idle.
    pub idle_ms: u64,
    /// What one may save of its memory.
    pub saved_bytes_max: usize,
    /// What is kept of all that they saved.
    pub saved_total_bytes_max: usize,
    /// How long a call waits for its turn.
    pub turn_ms: u64,
    /// How many calls wait for the same instance.
    pub waiting_max: usize,
}

impl Default for Keeping {
    fn default() -> Self {
        Keeping {
            policy: InstancePolicy::Call,
            instances_max: 32,
            idle_ms: 600_000,
            saved_bytes_max: 1 << 20,
            saved_total_bytes_max: 64 << 20,
            turn_ms: 10_000,
            waiting_max: 64,
        }
    }
}

/// An instance that is kept. The instance goes before the place that it has.
pub(super) struct Kept {
    pub(super) live: Live,
    pub(super) _held: Held,
}

/// Where an instance is kept: empty before the first call, after a call that destroyed it, and after an eviction.
#[derive(Default)]
pub(super) struct Slot {
    key: Key,
    kept: Arc<tokio::sync::Mutex<Option<Kept>>>,
    /// Calls that wait for their turn.
    waiting: AtomicUsize,
    /// The number of an idle instance in the lobby.
    number: AtomicU64,
    /// Whoever it was kept for is gone: nothing is kept here any more.
    ended: AtomicBool,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The kept instances of one version.
#[derive(Debug)]
pub(crate) struct Instances {
    guest: u64,
    pub(super) keeping: Keeping,
    /// One for each instance that may be kept.
    pub(super) permits: Arc<Semaphore>,
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
    saved: Mutex<Savings>,
    /// What looks after those that are idle for too long, while there are any. It ends with the version.
    watch: Mutex<Option<AbortHandle>>,
    /// What `describe` says of the version.
    pub(super) described: OnceLock<Arc<str>>,
    /// While the version is only tried, nothing of it lives on.
    trial: AtomicBool,
    /// The version before, until the memory of its instances is taken over.
    before: Mutex<Option<Arc<Inner>>>,
    /// The version after this one: calls that still come here find their instances there.
    after: OnceLock<Weak<Inner>>,
    lobby: Arc<Lobby>,
}

impl Instances {
    pub(crate) fn new(keeping: Keeping, lobby: &Arc<Lobby>) -> Arc<Instances> {
        static GUESTS: AtomicU64 = AtomicU64::new(0);
        let savings = Savings::new(keeping.saved_bytes_max, keeping.saved_total_bytes_max);
        Arc::new(Instances {
            guest: GUESTS.fetch_add(1, Ordering::Relaxed),
            permits: Arc::new(Semaphore::new(keeping.instances_max.min(Semaphore::MAX_PERMITS))),
            keeping,
            slots: Mutex::default(),
            saved: Mutex::new(savings),
            watch: Mutex::default(),
            described: OnceLock::new(),
            trial: AtomicBool::new(false),
            before: Mutex::default(),
            after: OnceLock::new(),
            lobby: Arc::clone(lobby),
        })
    }

    /// A number that no other version has.
    pub(super) fn guest(&self) -> u64 {
        self.guest
    }

    /// Whose instance serves a caller; None if a fresh one does.
    pub(super) fn key(&self, caller: Option<&dyn CallContext>) -> Option<Key> {
        if self.trial.load(Ordering::SeqCst) {
            return None;
        }
        match self.keeping.policy {
            InstancePolicy::Call => None,
            InstancePolicy::Session => caller?.identity().session.map(Some),
            InstancePolicy::Shared => Some(None),
        }
    }

    /// Waits for the turn on an instance, in order of arrival. Dropping the future leaves the others in their order.
    pub(super) async fn turn(self: &Arc<Self>, key: Key) -> Result<Turn, Failure> {
        let slot = Arc::clone(lock(&self.slots).entry(key.clone()).or_insert_with(|| Arc::new(Slot { key, ..Slot::default() })));
        let mut turn = Turn { guard: None, slot: Some(slot), instances: Arc::clone(self) };
        let Some(slot) = &turn.slot else { return Err(Failure::Busy) };
        let line = Arc::clone(&slot.kept);
        turn.guard = match Arc::clone(&line).try_lock_owned() {
            Ok(guard) => Some(guard),
            Err(_) => {
                let _waiting = Waits::begin(slot, self.keeping.waiting_max).ok_or(Failure::Busy)?;
                let wait = tokio::time::timeout(Duration::from_millis(self.keeping.turn_ms), line.lock_owned());
                Some(wait.await.map_err(|_| Failure::Busy)?)
            }
        };
        Ok(turn)
    }

    /// Forgets a session: its instance, and what it saved.
    pub(super) fn end(&self, key: &Key) {
        let slot = lock(&self.slots).remove(key);
        lock(&self.saved).take(key);
        if let Some(slot) = slot {
            slot.ended.store(true, Ordering::SeqCst);
            self.clear(&slot);
        }
    }

    /// Drops the instance of a slot that has ended, if nobody uses it. Whoever does, does this afterwards.
    fn clear(&self, slot: &Slot) {
        if let Ok(mut kept) = slot.kept.try_lock() {
            self.lobby.leave(slot.number.load(Ordering::SeqCst));
            drop(kept.take());
        }
    }

    /// Keeps what an instance saved; false if it is too much.
    pub(super) fn put(&self, key: Key, saved: Saved) -> bool {
        lock(&self.saved).put(key, saved)
    }

    /// What was saved for whoever this is, for an instance that takes it over.
    pub(super) fn take(&self, key: &Key) -> Option<Saved> {
        lock(&self.saved).take(key)
    }

    /// Whose instances there are, and whose memory is saved.
    pub(super) fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = lock(&self.slots).keys().cloned().collect();
        keys.extend(lock(&self.saved).keys().filter(|key| !keys.contains(key)).cloned().collect::<Vec<_>>());
        keys
    }

    /// Begins or ends the trial.
    pub(super) fn set_trial(&self, trial: bool) {
        self.trial.store(trial, Ordering::SeqCst);
    }

    /// The version before, while there is something to be taken over of it.
    pub(super) fn before(&self) -> Option<Arc<Inner>> {
        lock(&self.before).clone()
    }

    pub(super) fn set_before(&self, before: Option<Arc<Inner>>) {
        *lock(&self.before) = before;
    }

    /// The version after this one.
    pub(super) fn after(&self) -> Option<Arc<Inner>> {
        self.after.get().and_then(Weak::upgrade)
    }

    /// Says once which version comes after this one.
    pub(super) fn set_after(&self, after: &Arc<Inner>) {
        self.after.get_or_init(|| Arc::downgrade(after));
    }

    /// How many instances are kept, in use or idle.
    pub(super) fn count(&self) -> usize {
        self.keeping.instances_max.min(Semaphore::MAX_PERMITS).saturating_sub(self.permits.available_permits())
    }

    /// Looks after the instances that are idle for too long, until there are none.
    fn watch(&self, version: &Arc<Inner>) {
        let mut watch = lock(&self.watch);
        if watch.is_none() {
            let version = Arc::downgrade(version);
            let (guest, idle, lobby) = (self.guest, Duration::from_millis(self.keeping.idle_ms), Arc::clone(&self.lobby));
            let watching = async move {
                loop {
                    let oldest = {
                        let Some(version) = version.upgrade() else { return };
                        let mut watch = lock(&version.instances.watch);
                        let oldest = lobby.oldest(guest);
                        if oldest.is_none() {
                            *watch = None;
                        }
                        oldest
                    };
                    let Some(end) = oldest.and_then(|oldest| oldest.checked_add(idle)) else { return };
                    // An instance may be about to be used, and stay for now.
                    tokio::time::sleep_until(end.max(tokio::time::Instant::now() + WATCH_TIME_MIN)).await;
                    while let Some(long_ago) = tokio::time::Instant::now().checked_sub(idle)
                        && lobby.evict(Whose::Since(guest, long_ago)).await
                    {}
                }
            };
            *watch = Some(tokio::spawn(watching).abort_handle());
        }
    }
}

impl Drop for Instances {
    fn drop(&mut self) {
        self.lobby.forget(self.guest);
        if let Some(watch) = lock(&self.watch).take() {
            watch.abort();
        }
    }
}

/// One more call in the line of a slot.
struct Waits<'a>(&'a Slot);

impl Waits<'_> {
    fn begin(slot: &Slot, most: usize) -> Option<Waits<'_>> {
        let added = slot.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| (waiting < most).then_some(waiting + 1));
        added.ok().map(|_| Waits(slot))
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The turn on an instance. When it is dropped, the next one has it.
pub(super) struct Turn {
    guard: Option<OwnedMutexGuard<Option<Kept>>>,
    /// Present until drop.
    slot: Option<Arc<Slot>>,
    instances: Arc<Instances>,
}

impl Turn {
    /// The turn on an idle instance, and the instance.
    pub(super) fn of_idle(instances: &Arc<Instances>, slot: Arc<Slot>) -> Option<(Turn, Kept)> {
        let mut guard = Arc::clone(&slot.kept).try_lock_owned().ok()?;
        let kept = guard.take()?;
        Some((Turn { guard: Some(guard), slot: Some(slot), instances: Arc::clone(instances) }, kept))
    }

    pub(super) fn key(&self) -> Key {
        self.slot.as_ref().and_then(|slot| slot.key.clone())
    }

    /// Whether whoever it was kept for is gone.
    pub(super) fn has_ended(&self) -> bool {
        self.slot.as_ref().is_none_or(|slot| slot.ended.load(Ordering::SeqCst))
    }

    /// The instance, if there is one; it is gone unless it comes back by `keep`.
    pub(super) fn take(&mut self) -> Option<Kept> {
        let kept = self.guard.as_mut()?.take()?;
        if let Some(slot) = &self.slot {
            self.instances.lobby.leave(slot.number.load(Ordering::SeqCst));
        }
        Some(kept)
    }

    /// Ends the turn, and keeps the instance for the next one.
    pub(super) fn keep(mut self, version: &Arc<Inner>, kept: Kept) {
        let (Some(slot), Some(mut guard)) = (self.slot.clone(), self.guard.take()) else { return };
        *guard = Some(kept);
        // While it has the turn, so that nobody takes the instance before it can be found.
        slot.number.store(self.instances.lobby.arrive(version, &slot), Ordering::SeqCst);
        drop(guard);
        // In this order: `Instances::end` says so first, and then looks whether the instance is in use.
        if slot.ended.load(Ordering::SeqCst) {
            self.instances.clear(&slot);
        }
        self.instances.watch(version);
        self.instances.lobby.tell();
    }
}

impl Drop for Turn {
    /// Forgets the slot, if nothing is kept in it and nobody waits for it.
    fn drop(&mut self) {
        drop(self.guard.take());
        let Some(slot) = self.slot.take() else { return };
        // A call that never took the instance was in the way of `Instances::end`.
        if slot.ended.load(Ordering::SeqCst) {
            self.instances.clear(&slot);
        }
        let mut slots = lock(&self.instances.slots);
        // The table has one, and this one is the other; more are made under the lock only.
        if Arc::strong_count(&slot) == 2
            && slot.kept.try_lock().is_ok_and(|kept| kept.is_none())
            && slots.get(&slot.key).is_some_and(|found| Arc::ptr_eq(found, &slot))
        {
            slots.remove(&slot.key);
        }
    }
}

/// No code panics while it holds one of these locks; were it ever to, the value would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_session_during_a_turn_leaves_nothing_behind() {
        let lobby = Lobby::new(1);
        let instances = Instances::new(Keeping::default(), &lobby);
        let key: Key = Some("a".into());
        let turn = instances.turn(key.clone()).await.unwrap();
        let slot = turn.slot.clone().unwrap();
        slot.number.store(lobby.arrive_alone(instances.guest(), &slot), Ordering::SeqCst);
        drop(slot);
        instances.end(&key);
        // The call is about to take the instance, and still finds its place.
        assert!(lobby.oldest(instances.guest()).is_some());
        drop(turn);
        assert!(lobby.oldest(instances.guest()).is_none() && instances.keys().is_empty());
    }
}
