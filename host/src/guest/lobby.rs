//! The instances of all guests that are kept between calls: how many there may be, and which has to go when room is needed.
//!
//! An idle instance has a place in the pool of its engine. It gives it up, the one that was idle for longest first, when a
//! call finds none: to calls of its own guest at any time, and to another guest that has no place at all.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::engine::SizeClass;
use super::handoff;
use super::instances::{Kept, Slot, Turn};
use super::shares::{Place, Share};
use super::version::Inner;

/// The host's kept instances.
#[derive(Debug)]
pub(crate) struct Lobby {
    /// One for each instance that may be kept, of whichever guest.
    permits: Arc<Semaphore>,
    idle: Mutex<Waiting>,
    /// An instance has become idle, or is gone.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    /// The one that was idle for longest first.
    instances: BTreeMap<u64, Idle>,
}

/// An instance that nobody uses.
#[derive(Debug)]
struct Idle {
    guest: u64,
    class: SizeClass,
    since: Instant,
    version: Weak<Inner>,
    slot: Weak<Slot>,
}

/// Which idle instances may have to go.
#[derive(Debug, Clone, Copy)]
pub(super) enum Whose {
    /// Any.
    Anybody,
    /// Those of the guest with that number.
    Guest(u64),
    /// Those that have a place in the pool of a class.
    Class(SizeClass),
    /// Those of a guest that are idle since then.
    Since(u64, Instant),
}

impl Whose {
    fn includes(self, idle: &Idle) -> bool {
        match self {
            Whose::Anybody => true,
            Whose::Guest(guest) => idle.guest == guest,
            Whose::Class(class) => idle.class == class,
            Whose::Since(guest, since) => idle.guest == guest && idle.since <= since,
        }
    }
}

/// What an instance that is kept holds; given back when it is gone.
#[derive(Debug)]
pub(super) struct Held {
    _of_guest: OwnedSemaphorePermit,
    _of_host: OwnedSemaphorePermit,
    _place: Place,
    // Last, when there is room again.
    _farewell: Farewell,
}

#[derive(Debug)]
struct Farewell(Arc<Lobby>);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.changed.notify_waiters();
    }
}

impl Lobby {
    pub(crate) fn new(instances_max: usize) -> Arc<Lobby> {
        let permits = Arc::new(Semaphore::new(instances_max.min(Semaphore::MAX_PERMITS)));
        Arc::new(Lobby { permits, idle: Mutex::default(), changed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gets what it takes to keep one more instance of a guest. Others go for it, if they are idle. The caller bounds the wait.
    pub(super) async fn reserve(self: &Arc<Lobby>, version: &Arc<Inner>) -> Held {
        let guest = version.instances.guest();
        let of_guest = self.get(&version.instances.permits, Whose::Guest(guest)).await;
        let of_host = self.get(&self.permits, Whose::Anybody).await;
        let place = self.place(version).await;
        Held { _of_guest: of_guest, _of_host: of_host, _place: place, _farewell: Farewell(Arc::clone(self)) }
    }

    async fn get(&self, permits: &Arc<Semaphore>, whose: Whose) -> OwnedSemaphorePermit {
        loop {
            // Listens before it looks, so that nothing is missed in between.
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
                return permit;
            }
            if !self.evict(whose).await {
                changed.await;
            }
        }
    }

    /// A place in the pool for a call of a guest. Idle instances go for it.
    pub(super) async fn place(&self, version: &Inner) -> Place {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(place) = version.share.try_take() {
                return place;
            }
            if self.evict(Whose::Guest(version.instances.guest())).await {
                continue;
            }
            // A guest that has places can wait for its own; what others keep is not for it.
            if version.share.has_none() && self.evict(Whose::Class(version.class)).await {
                continue;
            }
            tokio::select! {
                place = share_place(&version.share) => return place,
                () = changed => {}
            }
        }
    }

    /// An instance is idle from now on. Gives the number under which it is found, for as long as it is.
    pub(super) fn arrive(&self, version: &Arc<Inner>, slot: &Arc<Slot>) -> u64 {
        let idle = Idle {
            guest: version.instances.guest(),
            class: version.class,
            since: Instant::now(),
            version: Arc::downgrade(version),
            slot: Arc::downgrade(slot),
        };
        self.note(idle)
    }

    /// As `arrive`, for an instance of which there is nothing else.
    #[cfg(test)]
    pub(super) fn arrive_alone(&self, guest: u64, slot: &Arc<Slot>) -> u64 {
        let slot = Arc::downgrade(slot);
        self.note(Idle { guest, class: SizeClass::Small, since: Instant::now(), version: Weak::new(), slot })
    }

    fn note(&self, idle: Idle) -> u64 {
        let mut waiting = self.lock();
        waiting.last += 1;
        let number = waiting.last;
        waiting.instances.insert(number, idle);
        number
    }

    /// Tells those who need room that an instance is idle.
    pub(super) fn tell(&self) {
        self.changed.notify_waiters();
    }

    /// The instance is in use, or gone.
    pub(super) fn leave(&self, number: u64) {
        self.lock().instances.remove(&number);
    }

    /// A version is gone, and its instances with it.
    pub(super) fn forget(&self, guest: u64) {
        self.lock().instances.retain(|_, idle| idle.guest != guest);
    }

    /// Since when the instance of a guest is idle that is so for longest.
    pub(super) fn oldest(&self, guest: u64) -> Option<Instant> {
        self.lock().instances.values().find(|idle| idle.guest == guest).map(|idle| idle.since)
    }

    /// Makes the instance go that was idle for longest; false if none can. It saves its memory first, if it knows how to.
    pub(super) async fn evict(&self, whose: Whose) -> bool {
        let Some((version, turn, kept)) = self.choose(whose) else { return false };
        if version.indices.handoff.is_none() {
            drop(kept);
            return true;
        }
        // In a task of its own, since whoever needs the room may give up, and the memory is to be saved all the same.
        let saving = tokio::spawn(async move { handoff::save_and_end(&version, turn, kept).await });
        // A panic in it is a fault of the host, and the instance is gone with it.
        let _ = saving.await;
        true
    }

    fn choose(&self, whose: Whose) -> Option<(Arc<Inner>, Turn, Kept)> {
        let mut waiting = self.lock();
        let (mut gone, mut looked_at) = (Vec::new(), Vec::new());
        let mut chosen = None;
        for (number, idle) in waiting.instances.iter().filter(|(_, idle)| whose.includes(idle)) {
            let found = (idle.version.upgrade(), idle.slot.upgrade());
            match &found {
                // A call may be about to use it.
                (Some(version), Some(slot)) => {
                    if let Some((turn, kept)) = Turn::of_idle(&version.instances, Arc::clone(slot)) {
                        gone.push(*number);
                        chosen = Some((Arc::clone(version), turn, kept));
                        break;
                    }
                }
                (None, _) | (_, None) => gone.push(*number),
            }
            // Either may be the last of its kind, and what goes with it comes back to this lock.
            looked_at.push(found);
        }
        for number in gone {
            waiting.instances.remove(&number);
        }
        // If these were the last of a version, or of a slot, it goes now, and says so here.
        drop(waiting);
        drop(looked_at);
        chosen
    }
}

/// As `Share::take`; apart, so that the future is made anew in each round of waiting.
async fn share_place(share: &Share) -> Place {
    share.take().await
}
