//! Probation: a new version whose first calls fail more often than those of the version before goes back by itself.

use super::{AbortOnDrop, go_back_from, lock, now_ms};
use crate::audit::What;
use crate::host::Shared;
use crate::registry::Loaded;
use std::sync::{Arc, Weak};
use tokio::time::timeout;

/// Calls of the version before that say something of how often it fails; with fewer, it counts as one that does not fail.
const CALLS_TELLING_MIN: usize = 10;

/// Watches a version that has just been put in force, until it has answered enough calls, or long enough, or until the watch is
/// dropped.
pub(super) fn begin(host: &Arc<Shared>, old: &Loaded, new: &Arc<Loaded>) -> Option<AbortOnDrop> {
    let limits = &host.config.swap;
    if limits.probation_calls == 0 {
        return None;
    }
    let (calls_max, time) = (limits.probation_calls, limits.probation_time.duration());
    let allowed = allowed(old.version.tally(), calls_max, limits.probation_failures);
    let (guest, version) = (new.name.to_string(), new.version.clone());
    // What it answered to the gate is no call of a client.
    let before = version.tally();
    // It is not kept by being watched.
    let host = Arc::downgrade(host);
    let watching = async move {
        loop {
            version.failed().await;
            let (calls, failures) = version.tally();
            let (calls, failures) = (calls.saturating_sub(before.0), failures.saturating_sub(before.1));
            if failures > allowed {
                let digest = version.digest().to_owned();
                // In a task of its own, since the watch ends with the step that this leads to.
                tokio::spawn(async move { go_back(&host, &guest, &digest, calls, failures).await });
                return;
            }
            if calls >= calls_max {
                return;
            }
        }
    };
    let task = tokio::spawn(async move {
        // One that has not failed by then has passed.
        let _ = timeout(time, watching).await;
    });
    Some(AbortOnDrop(task.abort_handle()))
}

async fn go_back(host: &Weak<Shared>, guest: &str, digest: &str, calls: usize, failures: usize) {
    let Some(host) = host.upgrade() else { return };
    let reason = format!("{failures} of its first {calls} calls failed, so that it went back by itself to the version before");
    match go_back_from(&host, guest, digest).await {
        None => {}
        Some(Ok(_)) => {
            host.loader.note(What::Unloaded, guest, &reason);
            tracing::error!(guest, "the new version is served no more: {reason}");
            if let Some(slot) = host.swaps.slot(guest) {
                *lock(&slot.refused) = Some((now_ms(), reason));
            }
        }
        Some(Err(error)) => {
            tracing::error!(guest, "{failures} of the first {calls} calls of the new version failed, and it cannot go back: {error:#}");
        }
    }
}

/// How many of the first calls may fail, given how the version before did.
fn allowed((calls, failures): (usize, usize), first: usize, percent: usize) -> usize {
    let usual = if calls < CALLS_TELLING_MIN { 0 } else { first.saturating_mul(failures).div_ceil(calls) };
    usual.saturating_add(first.saturating_mul(percent) / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_may_fail_a_little_more_often_than_the_one_before() {
        for (before, first, percent, expected) in [
            ((0, 0), 50, 20, 10),
            ((9, 9), 50, 20, 10),
            ((100, 0), 50, 20, 10),
            ((100, 10), 50, 20, 15),
            ((100, 100), 50, 20, 60),
            ((1_000, 1), 50, 20, 11),
            ((0, 0), 50, 0, 0),
        ] {
            assert_eq!(allowed(before, first, percent), expected, "{before:?}");
        }
    }
}
