//! The event streams of one session: what was sent on each of them, kept for a client that comes back for the rest.
//!
//! A stream belongs to the message that opened it, or to the session itself ([`STANDALONE`]). At most one connection
//! reads a stream; another one that wants to takes its place. What nobody reads is kept, within bounds.

mod budget;

pub(super) use budget::{Budget, ReplayLimits};
use bytes::Bytes;
use guesthouse_protocol::Outgoing;
use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The stream that belongs to no message of the client.
pub(super) const STANDALONE: u64 = 0;

/// What an event counts in bytes beside its message.
const EVENT_BYTES: usize = 64;

/// The streams of a session.
pub(super) struct Streams {
    limits: ReplayLimits,
    budget: Arc<Budget>,
    table: Mutex<Table>,
}

struct Table {
    last_id: u64,
    streams: HashMap<u64, Stream>,
    /// Stream and number of every event that is kept, oldest first.
    order: VecDeque<(u64, u64)>,
    bytes: usize,
    readers: usize,
    closed: bool,
}

#[derive(Default)]
struct Stream {
    /// The number of the last event; before the first, the number of the one that announces the stream.
    last: u64,
    kept: VecDeque<Kept>,
    /// The client knows, or will know, an event of it. Until then the answer may still be something else.
    begun: bool,
    end: Option<End>,
    /// Counts the connections that have read it, of which only the last one counts.
    reader: u64,
    is_read: bool,
    waker: Option<Waker>,
}

enum End {
    /// The stream never began, so that this is the whole answer.
    Unsent(Option<Outgoing>),
    /// All there is, is among the events.
    Sent(Instant),
}

struct Kept {
    number: u64,
    message: Bytes,
    /// Who waits for it to be on the wire.
    written: Option<oneshot::Sender<()>>,
    /// What it takes of the budgets; none if there was no room, so that it is gone once it was read.
    bytes: Option<usize>,
}

/// A connection's place in a stream. Dropping it leaves the stream to whoever comes next.
pub(super) struct Reader {
    streams: Arc<Streams>,
    stream: u64,
    reader: u64,
    /// The last event that was read.
    pub(super) last: u64,
}

/// What comes next in a stream.
pub(super) enum Step {
    /// An event; its number is [`Reader::last`].
    Event(Bytes, Option<oneshot::Sender<()>>),
    /// Nothing was sent before, and this is the whole answer; `None` if there is none.
    Answer(Option<Outgoing>),
    /// Nothing follows for this reader.
    Over,
}

impl Streams {
    pub(super) fn new(limits: ReplayLimits, budget: Arc<Budget>) -> Arc<Self> {
        let standalone = Stream { begun: true, ..Stream::default() };
        let table = Table {
            last_id: STANDALONE,
            streams: HashMap::from([(STANDALONE, standalone)]),
            order: VecDeque::new(),
            bytes: 0,
            readers: 0,
            closed: false,
        };
        Arc::new(Self { limits, budget, table: Mutex::new(table) })
    }

    /// A stream for the answer to a message, with its first reader.
    pub(super) fn open(self: &Arc<Self>) -> Reader {
        let mut table = self.lock();
        table.last_id = table.last_id.saturating_add(1);
        let id = table.last_id;
        let end = table.closed.then_some(End::Unsent(None));
        table.streams.insert(id, Stream { is_read: true, end, ..Stream::default() });
        table.readers = table.readers.saturating_add(1);
        Reader { streams: self.clone(), stream: id, reader: 0, last: 0 }
    }

    /// Takes the place of whoever reads the stream, and goes on after that event, or after the last one there is. `None` if
    /// there is no such stream, or no such event.
    pub(super) fn read(self: &Arc<Self>, stream: u64, after: Option<u64>) -> Option<Reader> {
        let mut table = self.lock();
        if table.closed {
            return None;
        }
        let is_known = |found: &&mut Stream| found.begun && after.is_none_or(|after| after <= found.last);
        let found = table.streams.get_mut(&stream).filter(is_known)?;
        found.reader = found.reader.saturating_add(1);
        let reader = Reader { streams: self.clone(), stream, reader: found.reader, last: after.unwrap_or(found.last) };
        let (was_read, waker) = (mem::replace(&mut found.is_read, true), found.waker.take());
        if !was_read {
            table.readers = table.readers.saturating_add(1);
        }
        drop(table);
        if let Some(waker) = waker {
            waker.wake();
        }
        Some(reader)
    }

    /// Sends a message on a stream. Whether it is on its way, or kept for a client that comes back.
    pub(super) fn send(&self, stream: u64, message: Bytes, written: Option<oneshot::Sender<()>>) -> bool {
        let mut table = self.lock();
        let sent = !table.closed && table.send(self, stream, message, written);
        let waker = table.streams.get_mut(&stream).and_then(|stream| stream.waker.take());
        drop(table);
        if let Some(waker) = waker {
            waker.wake();
        }
        sent
    }

    /// Ends a stream, with a response or without.
    pub(super) fn end(&self, stream: u64, outgoing: Option<Outgoing>) {
        let mut table = self.lock();
        let Some(found) = table.streams.get_mut(&stream) else { return };
        if found.begun {
            if let Some(outgoing) = outgoing {
                table.send(self, stream, outgoing.message, None);
            }
            if let Some(found) = table.streams.get_mut(&stream) {
                found.end = Some(End::Sent(Instant::now()));
            }
        } else {
            found.end = Some(End::Unsent(outgoing));
        }
        let waker = table.streams.get_mut(&stream).and_then(|stream| stream.waker.take());
        drop(table);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// How many connections read.
    pub(super) fn readers(&self) -> usize {
        self.lock().readers
    }

    /// Forgets streams that ended long ago.
    pub(super) fn expire(&self, now: Instant) {
        let mut table = self.lock();
        let is_old = |stream: &Stream| match &stream.end {
            Some(End::Sent(at)) => !stream.is_read && now.saturating_duration_since(*at) >= self.limits.time,
            Some(End::Unsent(_)) | None => false,
        };
        let old: Vec<u64> = table.streams.iter().filter(|(_, stream)| is_old(stream)).map(|(id, _)| *id).collect();
        old.into_iter().for_each(|id| table.remove(self, id));
    }

    /// Lets go of whoever reads the stream that belongs to no message.
    pub(super) fn leave(&self) {
        let mut table = self.lock();
        let Some(stream) = table.streams.get_mut(&STANDALONE) else { return };
        stream.reader = stream.reader.saturating_add(1);
        let waker = stream.waker.take();
        if mem::take(&mut stream.is_read) {
            table.readers = table.readers.saturating_sub(1);
        }
        drop(table);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends everything. Who reads still gets what was sent before.
    pub(super) fn close(&self) {
        let mut table = self.lock();
        table.closed = true;
        let unread: Vec<u64> = table.streams.iter().filter(|(_, stream)| !stream.is_read).map(|(id, _)| *id).collect();
        unread.into_iter().for_each(|id| table.remove(self, id));
        let mut wakers = Vec::new();
        for stream in table.streams.values_mut() {
            stream.end.get_or_insert_with(|| if stream.begun { End::Sent(Instant::now()) } else { End::Unsent(None) });
            wakers.extend(stream.waker.take());
        }
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// No code panics while it holds the lock; were it ever to, the table would still be whole.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.close();
    }
}

impl Table {
    fn send(&mut self, streams: &Streams, id: u64, message: Bytes, written: Option<oneshot::Sender<()>>) -> bool {
        if self.streams.get(&id).is_none_or(|stream| stream.end.is_some()) {
            return false;
        }
        let bytes = self.make_room(streams, message.len().saturating_add(EVENT_BYTES));
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.is_read || bytes.is_some()) else { return false };
        stream.begun = true;
        stream.last = stream.last.saturating_add(1);
        let mut kept = Kept { number: stream.last, message, written, bytes };
        if !stream.is_read {
            kept.tell();
        }
        if bytes.is_some() {
            self.order.push_back((id, stream.last));
        }
        stream.kept.push_back(kept);
        true
    }

    /// Makes room for an event by forgetting the oldest ones; `None` if that does not help.
    fn make_room(&mut self, streams: &Streams, bytes: usize) -> Option<usize> {
        if bytes > streams.limits.bytes_max || streams.limits.events_max == 0 {
            return None;
        }
        while self.order.len() >= streams.limits.events_max || self.bytes.saturating_add(bytes) > streams.limits.bytes_max {
            self.forget_oldest(streams).then_some(())?;
        }
        while !streams.budget.take(bytes) {
            self.forget_oldest(streams).then_some(())?;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        Some(bytes)
    }

    fn forget_oldest(&mut self, streams: &Streams) -> bool {
        let Some((id, number)) = self.order.pop_front() else { return false };
        let Some(stream) = self.streams.get_mut(&id) else { return true };
        let Ok(at) = stream.kept.binary_search_by_key(&number, |kept| kept.number) else { return true };
        if let Some(mut kept) = stream.kept.remove(at) {
            kept.tell();
            self.release(streams, kept.bytes.unwrap_or_default());
        }
        true
    }

    fn release(&mut self, streams: &Streams, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        streams.budget.give_back(bytes);
    }

    fn remove(&mut self, streams: &Streams, id: u64) {
        let Some(mut stream) = self.streams.remove(&id) else { return };
        self.order.retain(|(of, _)| *of != id);
        let bytes: usize = stream.kept.iter().filter_map(|kept| kept.bytes).sum();
        stream.kept.iter_mut().for_each(Kept::tell);
        self.release(streams, bytes);
    }
}

impl Kept {
    /// It will be delivered, sooner or later; nobody need wait for that any more.
    fn tell(&mut self) {
        if let Some(written) = self.written.take() {
            // Nobody waits any more if the call ended meanwhile.
            let _ = written.send(());
        }
    }
}

impl Reader {
    /// The stream.
    pub(super) fn stream(&self) -> u64 {
        self.stream
    }

    /// Makes the answer a stream, even if nothing precedes the response.
    pub(super) fn begin(&self) {
        if let Some(stream) = self.streams.lock().streams.get_mut(&self.stream) {
            stream.begun |= stream.end.is_none();
        }
    }

    /// What comes next.
    pub(super) fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        let mut table = self.streams.lock();
        let Some(stream) = table.streams.get_mut(&self.stream).filter(|stream| stream.reader == self.reader) else {
            return Poll::Ready(Step::Over);
        };
        let at = stream.kept.partition_point(|kept| kept.number <= self.last);
        if let Some(kept) = stream.kept.get_mut(at) {
            self.last = kept.number;
            let step = Step::Event(kept.message.clone(), kept.written.take());
            if kept.bytes.is_none() {
                stream.kept.remove(at);
            }
            return Poll::Ready(step);
        }
        match &mut stream.end {
            None => {
                stream.waker = Some(context.waker().clone());
                Poll::Pending
            }
            Some(End::Sent(_)) => Poll::Ready(Step::Over),
            Some(End::Unsent(outgoing)) => {
                let answer = outgoing.take();
                table.remove(&self.streams, self.stream);
                table.readers = table.readers.saturating_sub(1);
                Poll::Ready(Step::Answer(answer))
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut table = self.streams.lock();
        let Some(stream) = table.streams.get_mut(&self.stream).filter(|stream| stream.reader == self.reader) else { return };
        stream.is_read = false;
        stream.waker = None;
        stream.kept.iter_mut().for_each(Kept::tell);
        // What was never kept is lost with the connection.
        stream.kept.retain(|kept| kept.bytes.is_some());
        let begun = stream.begun;
        // Nobody can come back to a stream of which the client has seen nothing, or in a session that has ended.
        if !begun || table.closed {
            table.remove(&self.streams, self.stream);
        }
        table.readers = table.readers.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests;
