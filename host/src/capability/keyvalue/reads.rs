//! How many reads of one guest are in the storage at a time, whose threads all guests share.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Reads of one guest that may wait or be under way in the storage: another guest's read waits for few of them.
pub(super) const READS_AT_ONCE_MAX: usize = 2;

/// The turns of one guest's reads; its calls wait for theirs before they go to the storage. Cloning is cheap.
#[derive(Clone)]
pub struct Reads(Arc<Semaphore>);

impl Default for Reads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(READS_AT_ONCE_MAX)))
    }
}

impl Reads {
    /// Waits for a turn, in order of asking. It lasts until what is returned is dropped; nobody closes the semaphore.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.0.acquire().await.ok()
    }
}
