//! Who watches which resource: `resources/subscribe` and `resources/unsubscribe`, and what a guest hears of it.

use super::news::News;
use super::{NAME_SHOWN_BYTES_MAX, Scope, failed};
use crate::changes::{Hub, Listener, TooMany, Watched};
use crate::guest;
use crate::guest::bindings::types;
use guesthouse_protocol::{Failure, NotFound, Outcome, Reply};
use std::sync::{Arc, Weak};
use tokio::task::{AbortHandle, JoinSet};

/// Guests that are told of a lost watcher at the same time.
const TELLING_MAX: usize = 16;

impl Scope<'_> {
    /// Watches a resource for a session.
    pub(super) async fn subscribe(&self, session: Option<&Listener>, uri: &str) -> Outcome {
        let Some(session) = session else {
            return Err(Failure::InvalidParams("a resource can be subscribed to in a session only".into()));
        };
        self.watch(session, uri).await.map(|()| Reply::Empty)
    }

    /// Watches a resource no longer. It does not matter whether it was watched.
    pub(super) fn unsubscribe(&self, session: Option<&Listener>, uri: &str) -> Outcome {
        if let Some(session) = session {
            session.unwatch(uri);
        }
        Ok(Reply::Empty)
    }

    /// Lets a listener watch a resource, of which its guest hears if it is the first.
    pub(super) async fn watch(&self, listener: &Listener, uri: &str) -> Result<(), Failure> {
        let not_found = || Failure::NotFound { kind: NotFound::Resource, name: uri.into() };
        let guest = self.view.resource_owner(uri).ok_or_else(not_found)?;
        let watched = Watched { guest: guest.name.clone(), uri: uri.into() };
        listener.watch(watched.clone()).map_err(|TooMany| Failure::InvalidParams("as many resources are watched as may be".into()))?;
        let mut watching = Watching { listener, uri, done: false };
        match settle(&self.dispatcher.news, &watched).await {
            Ok(()) => {
                watching.done = true;
                Ok(())
            }
            Err(guest::Failure::Guest(types::Error::NotFound(_))) => Err(not_found()),
            Err(failure) => Err(failed(guest, "resource", uri, failure)),
        }
    }
}

/// Undoes what was begun, unless it was done.
struct Watching<'a> {
    listener: &'a Listener,
    uri: &'a str,
    done: bool,
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.listener.unwatch(self.uri);
        }
    }
}

/// Brings what the guest knows in line with whether the resource is watched.
async fn settle(news: &Arc<News>, watched: &Watched) -> Result<(), guest::Failure> {
    let Some(told) = news.hub.told(watched) else { return Ok(()) };
    let outcome = {
        let mut told = told.lock().await;
        let wanted = news.hub.is_watched(watched);
        if wanted == *told {
            Ok(())
        } else {
            let outcome = tell(news, watched, wanted).await;
            // A guest that failed to let go is not asked again: it would only fail again.
            *told = wanted && outcome.is_ok();
            outcome
        }
    };
    drop(told);
    news.hub.forget(watched);
    outcome
}

/// Tells a version that has just come of the resources that are watched already: of what the version before was told, it knows
/// only what that one saved.
pub(super) fn tell_again(news: &Arc<News>, guest: &Arc<str>) {
    let uris = news.hub.watched_of(guest);
    if uris.is_empty() {
        return;
    }
    let (news, guest) = (news.clone(), guest.clone());
    tokio::spawn(async move {
        for uri in uris {
            let watched = Watched { guest: guest.clone(), uri };
            let Some(told) = news.hub.told(&watched) else { continue };
            let outcome = {
                let mut told = told.lock().await;
                // One that nobody watches any more is about to be told so.
                if news.hub.is_watched(&watched) {
                    let outcome = tell(&news, &watched, true).await;
                    *told = outcome.is_ok();
                    outcome
                } else {
                    Ok(())
                }
            };
            drop(told);
            news.hub.forget(&watched);
            if let Err(failure) = outcome {
                let uri = guest::clean(&watched.uri, NAME_SHOWN_BYTES_MAX);
                let failure = guest::clean(&failure.to_string(), NAME_SHOWN_BYTES_MAX);
                tracing::warn!(guest = %watched.guest, "its new version could not be told that `{uri}` is watched: {failure}");
            }
        }
    });
}

async fn tell(news: &Arc<News>, watched: &Watched, wanted: bool) -> Result<(), guest::Failure> {
    let registry = news.registry.load_full();
    let Some(guest) = registry.guests().iter().find(|guest| guest.name == watched.guest) else { return Ok(()) };
    if !guest.version.exports().subscriptions {
        return Ok(());
    }
    let (caller, uri): (guest::Caller, String) = (Some(Box::new(news.voice(guest))), (*watched.uri).into());
    if wanted { guest.version.subscribe(caller, uri).await } else { guest.version.unsubscribe(caller, uri).await }
}

/// Tells guests, for as long as it lives, of resources that have lost their last watcher.
pub(super) struct Teller(AbortHandle);

impl Teller {
    /// Must be called within a runtime.
    pub(super) fn start(news: &Arc<News>) -> Self {
        Self(tokio::spawn(tell_of_losses(news.hub.clone(), Arc::downgrade(news))).abort_handle())
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn tell_of_losses(hub: Arc<Hub>, news: Weak<News>) {
    let mut telling = JoinSet::new();
    loop {
        for watched in hub.lost().await {
            let Some(news) = news.upgrade() else { return };
            if telling.len() >= TELLING_MAX {
                telling.join_next().await;
            }
            telling.spawn(async move {
                if let Err(failure) = settle(&news, &watched).await {
                    // Both the client's words and the guest's.
                    let uri = guest::clean(&watched.uri, NAME_SHOWN_BYTES_MAX);
                    let failure = guest::clean(&failure.to_string(), NAME_SHOWN_BYTES_MAX);
                    tracing::warn!(guest = %watched.guest, "could not be told that nobody watches `{uri}` any more: {failure}");
                }
            });
        }
        while telling.try_join_next().is_some() {}
    }
}
