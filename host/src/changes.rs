//! The hub of changes: guests publish, sessions and subscriptions listen.
//!
//! A change belongs to the guest that announced it, and reaches the listeners of the endpoints that the guest is part
//! of. Each listener has a bounded [`queue`], in which the same change never waits twice. The hub also knows who watches
//! which resource, so that a guest can be told of the first and of the last watcher.

mod queue;

use crate::config::streams::StreamLimits;
use crate::identity::Presence;
use crate::registry::Endpoint;
use futures_util::future::poll_fn;
use guesthouse_protocol::model::Task;
use guesthouse_protocol::{Event, TaskState};
use queue::{Full, Queue};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;

/// What the hub may keep for its listeners.
#[derive(Clone, Debug)]
pub struct HubLimits {
    /// Subscriptions at a time; sessions are counted elsewhere.
    pub subscriptions_max: usize,
    /// Resources that one listener watches.
    pub uris_max: usize,
    /// Bytes that their URIs may have in all.
    pub uri_bytes_max: usize,
    /// Changes that wait for one listener.
    pub queue_len_max: usize,
    /// Bytes that these changes may have in all.
    pub queue_bytes_max: usize,
}

impl HubLimits {
    /// As they are configured.
    pub fn of(limits: &StreamLimits) -> Self {
        let bytes = |size: crate::config::units::Size| usize::try_from(size.0).unwrap_or(usize::MAX);
        Self {
            subscriptions_max: limits.listeners,
            uris_max: limits.uris,
            uri_bytes_max: bytes(limits.uri_bytes),
            queue_len_max: limits.queue,
            queue_bytes_max: bytes(limits.queue_bytes),
        }
    }
}

/// The lists whose changes a listener wants to hear of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Tools.
    pub tools: bool,
    /// Prompts.
    pub prompts: bool,
    /// Resources.
    pub resources: bool,
}

/// A resource that is watched, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watched {
    /// The guest.
    pub guest: Arc<str>,
    /// The resource.
    pub uri: Arc<str>,
}

/// The listener watches as many resources as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// Whether a guest knows that a resource is watched. Held while it is being told, so that it hears of one thing after
/// the other.
pub type Told = Arc<tokio::sync::Mutex<bool>>;

/// Where changes meet listeners.
pub struct Hub {
    limits: HubLimits,
    state: Mutex<State>,
    /// Some watched resource has lost its last watcher.
    lost: Notify,
}

#[derive(Default)]
struct State {
    last_id: u64,
    listeners: HashMap<u64, Entry>,
    subscriptions: usize,
    watches: HashMap<Watched, Watch>,
    /// Who follows a task.
    followed: HashMap<Arc<str>, HashSet<u64>>,
    /// Resources that have lost their last watcher, of which their guest has not been told yet.
    unsettled: HashSet<Watched>,
}

struct Entry {
    endpoint: Endpoint,
    lists: Lists,
    queue: Arc<Queue>,
    is_subscription: bool,
    watching: HashMap<Arc<str>, Watched>,
    uri_bytes: usize,
    following: HashSet<Arc<str>>,
}

#[derive(Default)]
struct Watch {
    listeners: HashSet<u64>,
    told: Told,
}

/// Somebody who listens. Dropping it ends that.
pub struct Listener {
    hub: Arc<Hub>,
    id: u64,
    /// The session lasts for as long as its listener, which its calls hold as well.
    presence: Presence,
    queue: Arc<Queue>,
}

impl Hub {
    /// A hub without listeners.
    pub fn new(limits: HubLimits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default(), lost: Notify::new() })
    }

    /// A subscription, which is over as soon as too much waits for it; `None` if there are too many.
    pub fn subscription(self: &Arc<Self>, endpoint: Endpoint, lists: Lists) -> Option<Listener> {
        let mut state = self.lock();
        if state.subscriptions >= self.limits.subscriptions_max {
            return None;
        }
        state.subscriptions = state.subscriptions.saturating_add(1);
        Some(self.listen(state, endpoint, lists, true))
    }

    /// A session, which hears of all lists. If too much waits for it, it misses the oldest.
    pub fn session(self: &Arc<Self>, endpoint: Endpoint) -> Listener {
        self.listen(self.lock(), endpoint, Lists { tools: true, prompts: true, resources: true }, false)
    }

    fn listen(self: &Arc<Self>, mut state: MutexGuard<'_, State>, endpoint: Endpoint, lists: Lists, is_subscription: bool) -> Listener {
        let when_full = if is_subscription { Full::End } else { Full::ForgetOldest };
        let queue = Arc::new(Queue::new(self.limits.queue_len_max, self.limits.queue_bytes_max, when_full));
        state.last_id = state.last_id.wrapping_add(1);
        let id = state.last_id;
        let entry = Entry {
            endpoint,
            lists,
            queue: queue.clone(),
            is_subscription,
            watching: HashMap::new(),
            uri_bytes: 0,
            following: HashSet::new(),
        };
        state.listeners.insert(id, entry);
        Listener { hub: self.clone(), id, presence: Presence::default(), queue }
    }

    /// Tells everybody who wants to hear it what a guest announced.
    pub fn publish(&self, guest: &Arc<str>, event: &Event) {
        let state = self.lock();
        let wants: fn(&Lists) -> bool = match event {
            Event::ToolsChanged => |lists| lists.tools,
            Event::PromptsChanged => |lists| lists.prompts,
            Event::ResourcesChanged => |lists| lists.resources,
            Event::ResourceUpdated { uri } => {
                let watched = Watched { guest: guest.clone(), uri: uri.clone() };
                let watchers = state.watches.get(&watched).into_iter().flat_map(|watch| &watch.listeners);
                watchers.filter_map(|id| state.listeners.get(id)).for_each(|entry| entry.queue.push(event.clone()));
                return;
            }
            Event::TaskChanged(TaskState(task)) => {
                drop(state);
                return self.publish_task(task);
            }
        };
        for entry in state.listeners.values().filter(|entry| wants(&entry.lists) && entry.endpoint.contains(guest)) {
            entry.queue.push(event.clone());
        }
    }

    /// Tells everybody who follows a task how it is now. Called in the order in which it changed. Nothing follows on its end.
    pub fn publish_task(&self, task: &Task) {
        let mut state = self.lock();
        let Some(followers) = state.followed.get(task.id.as_str()) else { return };
        let now = Arc::new(task.clone());
        for entry in followers.iter().filter_map(|id| state.listeners.get(id)) {
            entry.queue.push(Event::TaskChanged(TaskState(now.clone())));
        }
        if task.live().is_none() {
            state.forget_task(&task.id);
        }
    }

    /// Nobody need follow a task any more, since it is gone.
    pub fn forget_task(&self, task: &str) {
        self.lock().forget_task(task);
    }

    /// Whether anybody watches the resource.
    pub fn is_watched(&self, watched: &Watched) -> bool {
        self.lock().watches.get(watched).is_some_and(|watch| !watch.listeners.is_empty())
    }

    /// What the guest knows of a resource's watchers; `None` if there is nothing that it should know.
    pub fn told(&self, watched: &Watched) -> Option<Told> {
        self.lock().watches.get(watched).map(|watch| watch.told.clone())
    }

    /// Forgets a resource that nobody watches and of which the guest has been told. Whoever holds the last [`Told`] calls
    /// this after having dropped it.
    pub fn forget(&self, watched: &Watched) {
        let mut state = self.lock();
        let over = |watch: &Watch| watch.listeners.is_empty() && Arc::strong_count(&watch.told) == 1;
        if state.watches.get(watched).is_some_and(over) {
            state.watches.remove(watched);
        }
    }

    /// Waits until resources have lost their last watcher, and takes them.
    pub async fn lost(&self) -> Vec<Watched> {
        loop {
            let lost: Vec<Watched> = self.lock().unsettled.drain().collect();
            if !lost.is_empty() {
                return lost;
            }
            self.lost.notified().await;
        }
    }

    /// The resources of a guest that somebody watches.
    pub fn watched_of(&self, guest: &str) -> Vec<Arc<str>> {
        self.lock().watches.keys().filter(|watched| *watched.guest == *guest).map(|watched| watched.uri.clone()).collect()
    }

    /// Listeners and watched resources at the moment.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.listeners.len(), state.watches.len())
    }

    /// No code panics while it holds the lock; were it ever to, the state would still be whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn unfollow(&mut self, id: u64, task: &str) {
        if let Some(followers) = self.followed.get_mut(task) {
            followers.remove(&id);
            if followers.is_empty() {
                self.followed.remove(task);
            }
        }
    }

    fn forget_task(&mut self, task: &str) {
        for id in self.followed.remove(task).unwrap_or_default() {
            if let Some(entry) = self.listeners.get_mut(&id) {
                entry.following.remove(task);
            }
        }
    }

    fn unwatch(&mut self, id: u64, watched: Watched) -> bool {
        let Some(watch) = self.watches.get_mut(&watched) else { return false };
        let last = watch.listeners.remove(&id) && watch.listeners.is_empty();
        if last {
            self.unsettled.insert(watched);
        }
        last
    }
}

impl Listener {
    /// The same as the listener of a session, which is over when this is dropped.
    pub fn of_session(mut self, presence: Presence) -> Self {
        self.presence = presence;
        self
    }

    /// The next change; `None` once the subscription is over, since too much waited for it.
    pub async fn next(&self) -> Option<Event> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// The same as a poll. One task waits at a time.
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.queue.poll_next(context)
    }

    /// Watches a resource. To watch it twice is to watch it once.
    pub fn watch(&self, watched: Watched) -> Result<(), TooMany> {
        let mut state = self.hub.lock();
        let Some(entry) = state.listeners.get_mut(&self.id) else { return Ok(()) };
        if entry.watching.contains_key(&watched.uri) {
            return Ok(());
        }
        let bytes = entry.uri_bytes.saturating_add(watched.uri.len());
        if entry.watching.len() >= self.hub.limits.uris_max || bytes > self.hub.limits.uri_bytes_max {
            return Err(TooMany);
        }
        entry.uri_bytes = bytes;
        entry.watching.insert(watched.uri.clone(), watched.clone());
        state.watches.entry(watched).or_default().listeners.insert(self.id);
        Ok(())
    }

    /// Follows a task: hears whenever it changes. To follow it twice is to follow it once.
    pub fn follow(&self, task: &str) -> Result<(), TooMany> {
        let mut state = self.hub.lock();
        let Some(entry) = state.listeners.get_mut(&self.id) else { return Ok(()) };
        if entry.following.contains(task) {
            return Ok(());
        }
        if entry.following.len() >= self.hub.limits.uris_max {
            return Err(TooMany);
        }
        let task: Arc<str> = task.into();
        entry.following.insert(task.clone());
        state.followed.entry(task).or_default().insert(self.id);
        Ok(())
    }

    /// Hears how a task is, as if it had just become so.
    pub fn hear(&self, task: Task) {
        self.queue.push(Event::TaskChanged(TaskState(Arc::new(task))));
    }

    /// Watches a resource no longer.
    pub fn unwatch(&self, uri: &str) {
        let mut state = self.hub.lock();
        let Some(entry) = state.listeners.get_mut(&self.id) else { return };
        let Some(watched) = entry.watching.remove(uri) else { return };
        entry.uri_bytes = entry.uri_bytes.saturating_sub(uri.len());
        let last = state.unwatch(self.id, watched);
        drop(state);
        if last {
            self.hub.lost.notify_one();
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = self.hub.lock();
        let Some(entry) = state.listeners.remove(&self.id) else { return };
        if entry.is_subscription {
            state.subscriptions = state.subscriptions.saturating_sub(1);
        }
        for task in &entry.following {
            state.unfollow(self.id, task);
        }
        let mut last = false;
        for watched in entry.watching.into_values() {
            last |= state.unwatch(self.id, watched);
        }
        drop(state);
        if last {
            self.hub.lost.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
