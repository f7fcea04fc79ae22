//! The line between a running call and the task that it may become: what it reports goes to the client or to the task.

use super::Tasks;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// One run of a call that is, or may become, a task.
pub struct Handover {
    state: Mutex<State>,
    turned: Notify,
}

enum State {
    /// It still belongs to its request; this is what it reported last.
    Call(Option<String>),
    /// It is a task.
    Task { tasks: Weak<Tasks>, id: Arc<str> },
}

impl Handover {
    /// A call that may become a task.
    pub fn of_call() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::Call(None)), turned: Notify::new() })
    }

    /// A run of a task.
    pub fn of_task(tasks: &Arc<Tasks>, id: &Arc<str>) -> Arc<Self> {
        let state = State::Task { tasks: Arc::downgrade(tasks), id: id.clone() };
        Arc::new(Self { state: Mutex::new(state), turned: Notify::new() })
    }

    /// Takes in how far the run is. True if it is a task, so that nobody else need be told.
    pub fn note(&self, message: String) -> bool {
        match &mut *self.lock() {
            State::Call(last) => {
                *last = Some(message);
                false
            }
            State::Task { tasks, id } => {
                if let Some(tasks) = tasks.upgrade() {
                    tasks.note(id, message);
                }
                true
            }
        }
    }

    /// From now on the call is this task.
    pub fn turn(&self, tasks: &Arc<Tasks>, id: &Arc<str>) {
        let mut state = self.lock();
        if let State::Call(last) = &mut *state
            && let Some(message) = last.take()
        {
            tasks.note(id, message);
        }
        *state = State::Task { tasks: Arc::downgrade(tasks), id: id.clone() };
        drop(state);
        self.turned.notify_waiters();
    }

    /// Does something, unless the call is a task, and not while it becomes one. Says whether it was done.
    pub fn while_call(&self, act: impl FnOnce()) -> bool {
        let state = self.lock();
        let is_call = matches!(*state, State::Call(_));
        if is_call {
            act();
        }
        is_call
    }

    /// Resolves once the call is a task.
    pub async fn turned(&self) {
        let mut turned = pin!(self.turned.notified());
        // Before looking, so that nothing is missed between looking and waiting.
        turned.as_mut().enable();
        if !matches!(*self.lock(), State::Task { .. }) {
            turned.await;
        }
    }

    /// No code panics while it holds the lock; were it ever to, the state would still be whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
