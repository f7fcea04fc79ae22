//! The resource URIs that a guest is known to have listed, so that the merged endpoint finds the owner of one.
//!
//! A guest may list what it likes, so what is remembered is bounded; of what is too much, the oldest goes. A URI that is
//! forgotten can still be found by a template.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// Longest URI that is remembered.
const URI_BYTES_MAX: usize = 4 << 10;
/// What is remembered of one guest.
const BYTES_MAX: usize = 8 << 20;
/// What an entry takes beside its text, roughly.
const ENTRY_BYTES: usize = 64;

#[derive(Default)]
pub(super) struct KnownUris {
    known: HashSet<Arc<str>>,
    order: VecDeque<Arc<str>>,
    bytes: usize,
}

impl KnownUris {
    pub(super) fn remember<'a>(&mut self, uris: impl Iterator<Item = &'a str>) {
        for uri in uris.filter(|uri| uri.len() <= URI_BYTES_MAX) {
            if self.known.contains(uri) {
                continue;
            }
            let uri: Arc<str> = uri.into();
            self.bytes = self.bytes.saturating_add(uri.len() + ENTRY_BYTES);
            self.order.push_back(uri.clone());
            self.known.insert(uri);
            while self.bytes > BYTES_MAX {
                let Some(oldest) = self.order.pop_front() else { break };
                self.bytes = self.bytes.saturating_sub(oldest.len() + ENTRY_BYTES);
                self.known.remove(&oldest);
            }
        }
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        self.known.contains(uri)
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guest_lists_takes_bounded_memory_and_the_newest_is_known() {
        let mut uris = KnownUris::default();
        let uri = |n: usize| format!("x://{n}/{}", "y".repeat(4_000));
        for n in 0..3_000 {
            uris.remember([uri(n).as_str()].into_iter());
        }
        assert!(uris.bytes <= BYTES_MAX && uris.order.len() == uris.len());
        assert!(uris.contains(&uri(2_999)) && !uris.contains(&uri(0)));
        let len = uris.len();
        uris.remember([uri(2_999).as_str(), "z".repeat(URI_BYTES_MAX + 1).as_str()].into_iter());
        assert_eq!(uris.len(), len, "known ones and giants change nothing");
    }
}
