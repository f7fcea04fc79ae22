//! What waits for one listener: bounded, and each change at most once.

use futures_util::task::AtomicWaker;
use guesthouse_protocol::{Event, TaskState};
use std::collections::VecDeque;
use std::mem::discriminant;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// What a change counts in bytes beside its text.
pub(super) const EVENT_BYTES: usize = 64;

/// What happens when a listener is so slow that its queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// It is no longer told anything, and learns that.
    End,
    /// It misses the oldest.
    ForgetOldest,
}

/// The changes that wait for one listener, oldest first.
pub(super) struct Queue {
    len_max: usize,
    bytes_max: usize,
    when_full: Full,
    state: Mutex<State>,
    waiting: AtomicWaker,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    bytes: usize,
    over: bool,
}

fn bytes_of(event: &Event) -> usize {
    let text = match event {
        Event::ToolsChanged | Event::PromptsChanged | Event::ResourcesChanged => 0,
        Event::ResourceUpdated { uri } => uri.len(),
        // What it refers to is kept, and counted, elsewhere.
        Event::TaskChanged(TaskState(task)) => task.id.len(),
    };
    text.saturating_add(EVENT_BYTES)
}

/// Whether the one makes the other superfluous.
fn is_same(one: &Event, other: &Event) -> bool {
    match (one, other) {
        (Event::ResourceUpdated { uri: one }, Event::ResourceUpdated { uri: other }) => one == other,
        (Event::TaskChanged(TaskState(one)), Event::TaskChanged(TaskState(other))) => one.id == other.id,
        _ => discriminant(one) == discriminant(other),
    }
}

impl Queue {
    pub(super) fn new(len_max: usize, bytes_max: usize, when_full: Full) -> Self {
        Self { len_max, bytes_max, when_full, state: Mutex::default(), waiting: AtomicWaker::new() }
    }

    /// Adds a change. One of the same thing that waits already is replaced, and keeps its place.
    pub(super) fn push(&self, event: Event) {
        let mut state = self.lock();
        if state.over {
            return;
        }
        if let Some(waiting) = state.events.iter_mut().find(|waiting| is_same(waiting, &event)) {
            *waiting = event;
            return;
        }
        let bytes = bytes_of(&event);
        while state.events.len() >= self.len_max || state.bytes.saturating_add(bytes) > self.bytes_max {
            match (self.when_full, state.events.pop_front()) {
                (Full::ForgetOldest, Some(oldest)) => state.bytes = state.bytes.saturating_sub(bytes_of(&oldest)),
                (Full::ForgetOldest, None) => return,
                (Full::End, _) => {
                    *state = State { over: true, ..State::default() };
                    drop(state);
                    return self.waiting.wake();
                }
            }
        }
        state.bytes = state.bytes.saturating_add(bytes);
        state.events.push_back(event);
        drop(state);
        self.waiting.wake();
    }

    /// Takes the oldest; `None` once it is over.
    pub(super) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.waiting.register(context.waker());
        let mut state = self.lock();
        match state.events.pop_front() {
            Some(event) => {
                state.bytes = state.bytes.saturating_sub(bytes_of(&event));
                Poll::Ready(Some(event))
            }
            None if state.over => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// No code panics while it holds the lock; were it ever to, the state would still be whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
