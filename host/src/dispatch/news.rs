//! What guests announce: lists are asked again, the snapshot is replaced, and then whoever listens is told.

use super::shares::Shares;
use crate::changes::{Hub, HubLimits, Lists};
use crate::config::Config;
use crate::guest::bindings::context::{LogLevel, ProgressError, RequestInfo};
use crate::guest::bindings::types::RpcError;
use crate::guest::{self, Change};
use crate::registry::{Loaded, Registry, load};
use anyhow::{Context, Result};
use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use guesthouse_protocol::{Event, Identity};
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;

/// Longest reason that is shown in the log; it may quote the guest.
const ERROR_SHOWN_BYTES_MAX: usize = 4 << 10;

/// What is served now, and who is told when it changes.
pub(super) struct News {
    pub(super) registry: ArcSwap<Registry>,
    pub(super) hub: Arc<Hub>,
    pub(super) shares: Shares,
    config: Config,
    /// Held while a snapshot is made out of the one in force.
    replacing: Mutex<()>,
    /// Guests whose lists are being asked again, and what they have announced since.
    renewing: Mutex<HashMap<Arc<str>, Lists>>,
    /// Guests may announce from a thread on which nothing of the host runs.
    runtime: Handle,
}

/// One guest's voice, for what a callback of it announces.
#[derive(Clone)]
pub(super) struct Voice {
    news: Arc<News>,
    guest: Arc<Loaded>,
}

impl News {
    /// Must be called within a runtime.
    pub(super) fn new(registry: Registry, config: &Config) -> Arc<Self> {
        Arc::new(Self {
            registry: ArcSwap::from_pointee(registry),
            hub: Hub::new(HubLimits::of(&config.streams)),
            shares: Shares::default(),
            config: config.clone(),
            replacing: Mutex::default(),
            renewing: Mutex::default(),
            runtime: Handle::current(),
        })
    }

    pub(super) fn voice(self: &Arc<Self>, guest: &Arc<Loaded>) -> Voice {
        Voice { news: self.clone(), guest: guest.clone() }
    }

    /// Asks lists of a guest again, and tells whoever listens once the answer is in force. While that goes on, more of the
    /// same waits for the next turn.
    fn renew_soon(self: &Arc<Self>, guest: &Arc<str>, changed: Lists) {
        let mut renewing = lock(&self.renewing);
        if let Some(waiting) = renewing.get_mut(guest) {
            waiting.tools |= changed.tools;
            waiting.prompts |= changed.prompts;
            waiting.resources |= changed.resources;
            return;
        }
        renewing.insert(guest.clone(), changed);
        drop(renewing);
        let (news, guest) = (self.clone(), guest.clone());
        self.runtime.spawn(async move {
            while let Some(changed) = news.next_turn(&guest) {
                // A guest's own announcement is passed on in any case: what clients know may be older than the last list.
                if let Err(error) = news.renew(&guest, changed).await {
                    let error = guest::clean(&format!("{error:#}"), ERROR_SHOWN_BYTES_MAX);
                    tracing::error!(guest = %guest, "its lists have changed and cannot be asked again; the old ones stay: {error}");
                }
                news.tell(&guest, changed);
            }
        });
    }

    /// What was announced since the last turn; the turns end when that is nothing.
    fn next_turn(&self, guest: &Arc<str>) -> Option<Lists> {
        let mut renewing = lock(&self.renewing);
        let changed = mem::take(renewing.get_mut(guest)?);
        if changed == Lists::default() {
            renewing.remove(guest);
            return None;
        }
        Some(changed)
    }

    async fn renew(&self, name: &Arc<str>, changed: Lists) -> Result<()> {
        let registry = self.registry.load_full();
        let Some(guest) = registry.guests().iter().find(|guest| guest.name == *name) else { return Ok(()) };
        let mut renewed = Loaded::clone(guest);
        load::renew(&mut renewed, changed, &self.config.limits).await?;
        let _alone = lock(&self.replacing);
        let registry = self.registry.load().with(&self.config, &Arc::new(renewed)).context("the new lists do not fit the others")?;
        self.registry.store(Arc::new(registry));
        Ok(())
    }

    /// Puts another version of a guest in force, or a guest more, in one step: whoever asks from now on reaches it. Answers with
    /// the version before. Nobody is told yet.
    pub(super) fn swap(&self, guest: Arc<Loaded>) -> Result<Option<Arc<Loaded>>> {
        let _alone = lock(&self.replacing);
        let registry = self.registry.load();
        let old = registry.guest(&guest.name).cloned();
        self.registry.store(Arc::new(registry.swapped(&self.config, guest)?));
        Ok(old)
    }

    /// Gives a version a share of the calls of its guest's tools.
    pub(super) fn share(&self, guest: &Arc<Loaded>, percent: u8) -> Result<()> {
        self.shares.give(&self.registry.load(), &self.config, guest, percent)
    }

    /// Takes a guest out, in one step.
    pub(super) fn remove(&self, name: &str) -> Result<Option<Arc<Loaded>>> {
        let _alone = lock(&self.replacing);
        let registry = self.registry.load();
        let old = registry.guest(name).cloned();
        self.registry.store(Arc::new(registry.without(&self.config, name)?));
        Ok(old)
    }

    /// Tells listeners that a guest is another one now: of lists that differ, and of the resources that somebody watches, which
    /// may read differently.
    pub(super) fn tell_swapped(&self, guest: &Arc<str>, differ: Lists) {
        self.tell(guest, differ);
        for uri in self.hub.watched_of(guest) {
            self.hub.publish(guest, &Event::ResourceUpdated { uri });
        }
    }

    fn tell(&self, guest: &Arc<str>, changed: Lists) {
        let events =
            [(changed.tools, Event::ToolsChanged), (changed.prompts, Event::PromptsChanged), (changed.resources, Event::ResourcesChanged)];
        for (_, event) in events.into_iter().filter(|(changed, _)| *changed) {
            self.hub.publish(guest, &event);
        }
    }
}

impl Voice {
    /// The guest's name.
    pub(super) fn guest(&self) -> &str {
        &self.guest.name
    }

    /// Passes on what a callback has announced. What the guest does not offer cannot change.
    pub(super) fn announce(&self, change: Change) {
        let Voice { news, guest } = self;
        let exports = guest.version.exports();
        match change {
            Change::Tools if exports.tools => news.renew_soon(&guest.name, Lists { tools: true, ..Lists::default() }),
            Change::Prompts if exports.prompts => news.renew_soon(&guest.name, Lists { prompts: true, ..Lists::default() }),
            Change::Resources if exports.resources => news.renew_soon(&guest.name, Lists { resources: true, ..Lists::default() }),
            Change::Resource(uri) if exports.resources => news.hub.publish(&guest.name, &Event::ResourceUpdated { uri: uri.into() }),
            Change::Tools | Change::Prompts | Change::Resources | Change::Resource(_) => {
                tracing::warn!(guest = %guest.name, "announced a change of what it does not export: {change:?}");
            }
        }
    }
}

/// A callback that no client asked for has nobody to talk to, and may still announce something.
impl guest::CallContext for Voice {
    fn request_info(&mut self) -> Option<RequestInfo> {
        None
    }

    fn identity(&self) -> Identity {
        Identity::default()
    }

    fn answer(&mut self, _key: &str) -> Option<Result<String, RpcError>> {
        None
    }

    fn state(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn progress(&mut self, _progress: f64, _total: Option<f64>, _message: Option<String>) -> BoxFuture<'_, Result<(), ProgressError>> {
        Box::pin(std::future::ready(Err(ProgressError::NotRequested)))
    }

    fn log(&mut self, _level: LogLevel, _logger: Option<String>, _data: String) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn change(&mut self, change: Change) {
        self.announce(change);
    }
}

/// No code panics while it holds one of these locks; were it ever to, the value would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
