//! Batches: the responses to one are collected, and go out as one array.

use bytes::Bytes;

/// A batch that waits for its calls.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) key: u64,
    /// The responses, in the order of the requests.
    parts: Vec<Option<Bytes>>,
    /// Calls that run, and one more while the batch is still being read.
    open: usize,
}

/// Where in a batch a request stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) batch: u64,
    pub(super) slot: usize,
}

impl Batch {
    pub(super) fn new(key: u64, len: usize) -> Batch {
        Batch { key, parts: vec![None; len], open: 1 }
    }

    pub(super) fn put(&mut self, slot: usize, part: Bytes) {
        if let Some(place) = self.parts.get_mut(slot) {
            *place = Some(part);
        }
    }

    /// One more call runs.
    pub(super) fn open(&mut self) {
        self.open = self.open.saturating_add(1);
    }

    /// One call less, or the batch has been read; true if nothing is awaited any more.
    pub(super) fn close(&mut self) -> bool {
        self.open = self.open.saturating_sub(1);
        self.open == 0
    }

    /// The array of responses; none if there are none.
    pub(super) fn into_message(self) -> Option<Bytes> {
        let parts: Vec<Bytes> = self.parts.into_iter().flatten().collect();
        if parts.is_empty() {
            return None;
        }
        let mut out = Vec::with_capacity(parts.iter().map(|part| part.len().saturating_add(1)).sum::<usize>() + 1);
        crate::json::array(&mut out, &parts, |out, part| out.extend_from_slice(part));
        Some(Bytes::from(out))
    }
}
