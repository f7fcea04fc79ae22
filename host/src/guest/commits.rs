//! When the calls of a guest commit: beside each other, one alone, or none while its state is migrated. All versions share this.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedRwLockWriteGuard, RwLock, RwLockReadGuard};
use tokio::time::timeout;

use super::version::{Version, WeakVersion};

/// One for each guest, whatever its version.
pub type CommitLock = Arc<Commits>;

/// See the module.
#[derive(Debug, Default)]
pub struct Commits {
    lock: Arc<RwLock<()>>,
    /// Goes up when the whole state is replaced. What an older version has read since may be what it does not understand.
    generation: AtomicU64,
    /// The version that the state is for now, once it was replaced.
    successor: Mutex<Option<WeakVersion>>,
}

/// Keeps every other call of the guest from committing.
#[derive(Debug)]
pub(crate) struct Alone {
    _guard: OwnedRwLockWriteGuard<()>,
}

impl Commits {
    /// The generation of versions that are loaded now.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// For a commit beside others: many wait for the disk together.
    pub(super) async fn beside(&self) -> RwLockReadGuard<'_, ()> {
        self.lock.read().await
    }

    /// For one that must not lose to another. In order of asking.
    pub(super) async fn alone(&self) -> Alone {
        Alone { _guard: Arc::clone(&self.lock).write_owned().await }
    }

    /// The same within some time.
    pub(crate) async fn alone_within(&self, time: Duration) -> Option<Alone> {
        timeout(time, self.alone()).await.ok()
    }

    /// The state is another one, and for that version from now on. What runs on others cannot commit what it has read of it.
    pub(crate) fn replaced(&self, _alone: &Alone, version: &Version) {
        *lock(&self.successor) = Some(version.downgrade());
        let generation = self.generation().saturating_add(1);
        version.inner.generation.store(generation, Ordering::SeqCst);
        self.generation.store(generation, Ordering::SeqCst);
    }

    /// The version that calls of older ones go on with.
    pub(super) fn successor(&self) -> Option<Version> {
        lock(&self.successor).as_ref().and_then(WeakVersion::upgrade)
    }
}

/// No code panics while it holds the lock; were it ever to, the value would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
