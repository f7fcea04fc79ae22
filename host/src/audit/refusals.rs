//! Refusals in the host's log: an author who wonders why something does not work looks there.

use super::{Event, Sink, What};
use crate::guest::clean;
use crate::guest::log::Bucket;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Refusals of one guest that are said within a second; of the others it is said how many there were.
const LINES_PER_S: u32 = 10;
/// Longest subject or value that is said; the rest is cut.
const VALUE_BYTES_MAX: usize = 1 << 10;

/// Says refusals in the log, of each guest so many at a time.
#[derive(Default)]
pub struct Refusals(Mutex<HashMap<String, Said>>);

/// What was said of one guest.
struct Said {
    bucket: Bucket,
    unsaid: u64,
}

impl Refusals {
    /// How many refusals of that guest were not said before this one; None if this one is not to be said either.
    fn take(&self, guest: &str, now: Instant) -> Option<u64> {
        // No code panics while it holds the lock; were it ever to, the state would still be whole.
        let mut guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let said = guests.entry(guest.to_owned()).or_insert_with(|| Said { bucket: Bucket::full(LINES_PER_S), unsaid: 0 });
        if said.bucket.take(LINES_PER_S, now) {
            return Some(std::mem::take(&mut said.unsaid));
        }
        said.unsaid = said.unsaid.saturating_add(1);
        None
    }
}

impl Sink for Refusals {
    fn record(&self, event: &Event<'_>) {
        if event.what != What::Refused {
            return;
        }
        let Some(unsaid) = self.take(event.guest, Instant::now()) else { return };
        let (subject, value) = (clean(event.subject, VALUE_BYTES_MAX), clean(event.value, VALUE_BYTES_MAX));
        match unsaid {
            0 => tracing::warn!(guest = event.guest, "refused: {subject} {value}"),
            unsaid => tracing::warn!(guest = event.guest, unsaid, "refused: {subject} {value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_guest_is_heard_and_none_floods_the_log() {
        let refusals = Refusals::default();
        let now = Instant::now();
        let said = (0..1_000).filter(|_| refusals.take("loud", now).is_some()).count();
        assert_eq!(said, LINES_PER_S as usize);
        assert_eq!(refusals.take("quiet", now), Some(0));
        let later = now + Duration::from_secs(1);
        assert_eq!(refusals.take("loud", later), Some(1_000 - u64::from(LINES_PER_S)));
        assert_eq!(refusals.take("loud", later), Some(0));
    }
}
