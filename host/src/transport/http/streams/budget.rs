//! How much may be kept for clients that come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What one session may keep.
#[derive(Clone, Debug)]
pub(in crate::transport::http) struct ReplayLimits {
    pub(in crate::transport::http) events_max: usize,
    pub(in crate::transport::http) bytes_max: usize,
    /// How long a stream is kept after its end.
    pub(in crate::transport::http) time: Duration,
}

/// What all sessions may keep together.
pub(in crate::transport::http) struct Budget {
    bytes_max: usize,
    used: AtomicUsize,
}

impl Budget {
    pub(in crate::transport::http) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, used: AtomicUsize::new(0) })
    }

    pub(super) fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(in crate::transport::http) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}
