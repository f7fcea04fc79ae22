//! What instances have saved of their memory before they went: bounded, and the oldest goes first.

use std::sync::Arc;

use indexmap::IndexMap;

use super::instances::Key;

/// The memory of an instance, as it wrote it down itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The version that wrote it, as its `describe` says.
    pub by: Arc<str>,
    /// What it wrote.
    pub bytes: Vec<u8>,
}

/// The saved memories of one guest, by whose instance it was.
#[derive(Debug)]
pub(super) struct Savings {
    one_bytes_max: usize,
    total_bytes_max: usize,
    total_bytes: usize,
    /// The oldest first.
    entries: IndexMap<Key, Saved>,
}

impl Savings {
    pub(super) fn new(one_bytes_max: usize, total_bytes_max: usize) -> Savings {
        Savings { one_bytes_max, total_bytes_max, total_bytes: 0, entries: IndexMap::new() }
    }

    /// Keeps a memory, in place of the one before. False if it is too large; older ones may go for it.
    pub(super) fn put(&mut self, key: Key, saved: Saved) -> bool {
        self.take(&key);
        let bytes = cost(&saved);
        if saved.bytes.len() > self.one_bytes_max || bytes > self.total_bytes_max {
            return false;
        }
        while self.total_bytes.saturating_add(bytes) > self.total_bytes_max {
            let Some((_, oldest)) = self.entries.shift_remove_index(0) else { break };
            self.total_bytes = self.total_bytes.saturating_sub(cost(&oldest));
        }
        self.total_bytes = self.total_bytes.saturating_add(bytes);
        self.entries.insert(key, saved);
        true
    }

    /// Gives a memory back, and keeps it no longer.
    pub(super) fn take(&mut self, key: &Key) -> Option<Saved> {
        let saved = self.entries.shift_remove(key)?;
        self.total_bytes = self.total_bytes.saturating_sub(cost(&saved));
        Some(saved)
    }

    /// Whose there are, the oldest first.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.entries.keys()
    }

    #[cfg(test)]
    fn names(&self) -> Vec<&str> {
        self.entries.keys().map(|key| key.as_deref().unwrap_or_default()).collect()
    }
}

/// What an entry takes beside its bytes: its place and the name of its session.
const ENTRY_BYTES: usize = 256;

fn cost(saved: &Saved) -> usize {
    saved.bytes.len().saturating_add(ENTRY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(bytes: usize) -> Saved {
        Saved { by: "1".into(), bytes: vec![0; bytes] }
    }

    fn key(name: &str) -> Key {
        Some(name.into())
    }

    #[test]
    fn what_is_too_large_is_not_kept_and_the_oldest_goes_for_what_is_new() {
        let mut savings = Savings::new(100, 3 * ENTRY_BYTES);
        assert!(!savings.put(key("large"), saved(101)));
        for name in ["a", "b", "c"] {
            assert!(savings.put(key(name), saved(0)));
        }
        assert_eq!(savings.names(), ["a", "b", "c"]);
        assert!(savings.put(key("a"), saved(0)), "saved again, it is the newest");
        assert_eq!(savings.names(), ["b", "c", "a"]);
        assert!(savings.put(key("d"), saved(1)));
        assert_eq!(savings.names(), ["a", "d"]);
        assert_eq!(savings.take(&key("d")), Some(saved(1)));
        assert_eq!(savings.take(&key("d")), None);
        assert_eq!(savings.total_bytes, ENTRY_BYTES);
        assert_eq!(savings.take(&key("a")), Some(saved(0)));
        assert_eq!(savings.total_bytes, 0);
    }
}
