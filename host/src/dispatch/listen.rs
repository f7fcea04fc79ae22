//! `subscriptions/listen`: an acknowledgement, then what happens, until somebody ends it.

use super::tasks::check_extension;
use super::{FrameSender, Line, Scope};
use crate::changes::{Listener, Lists};
use crate::tasks::Owner;
use guesthouse_protocol::{CallContext, Failure, Filter, Outcome, RETRY_AFTER_S, Reply, Subscription};
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

impl Scope<'_> {
    /// Opens a subscription.
    pub(super) async fn open_subscription(&self, context: &CallContext, wanted: Filter, line: &Line) -> Result<Opened, Failure> {
        if line.frames.is_none() {
            return Err(Failure::InvalidParams("a subscription needs a stream for its notifications".into()));
        }
        if wanted.names_tasks {
            check_extension(context)?;
        }
        let capabilities = &self.view.profile.capabilities;
        let lists = Lists {
            tools: wanted.tools && capabilities.tools,
            prompts: wanted.prompts && capabilities.prompts,
            resources: wanted.resources && capabilities.resources,
        };
        let hub = &self.dispatcher.news.hub;
        let Some(listener) = hub.subscription(self.endpoint.clone(), lists) else {
            return Err(Failure::Busy { retry_after_s: RETRY_AFTER_S });
        };
        let honoured = self.honour(&listener, lists, wanted, &self.owner(context)).await;
        Ok(Opened { listener, honoured, subscription: Subscription::of(context) })
    }

    /// What of the filter can happen here. A resource that nobody has, or whose guest does not want it to be watched, is
    /// left out.
    async fn honour(&self, listener: &Listener, lists: Lists, wanted: Filter, owner: &Owner) -> Filter {
        let mut honoured = Filter {
            tools: lists.tools,
            prompts: lists.prompts,
            resources: lists.resources,
            uris: Vec::new(),
            names_uris: wanted.names_uris && self.view.profile.capabilities.subscribe,
            tasks: Vec::new(),
            names_tasks: wanted.names_tasks && self.view.profile.capabilities.tasks,
        };
        for id in wanted.tasks {
            let task = || self.dispatcher.desk.tasks.task(&id, owner);
            // One that is not there looks like one that is another's.
            if task().is_none() || listener.follow(&id).is_err() {
                continue;
            }
            // Whatever happened before it was followed is in what it is now.
            task().into_iter().for_each(|now| listener.hear(now));
            honoured.tasks.push(id);
        }
        for uri in wanted.uris {
            match self.watch(listener, &uri).await {
                Ok(()) => honoured.uris.push(uri),
                Err(failure) => tracing::debug!("a resource cannot be watched: {failure:?}"),
            }
        }
        honoured
    }
}

/// A subscription that is open.
pub(super) struct Opened {
    listener: Listener,
    honoured: Filter,
    subscription: Subscription,
}

impl Opened {
    /// Runs it to its end. If the client ends it, this is dropped.
    pub(super) async fn run(self, line: &Line, listen_time: Duration) -> Outcome {
        let Some(frames) = &line.frames else { return Err(Failure::Cancelled) };
        pass_on(&self.listener, &self.honoured, &self.subscription, frames, &line.stopping, listen_time).await
    }
}

/// Acknowledges a subscription and passes on what happens, until the server or its limits end it.
pub(crate) async fn pass_on(
    listener: &Listener,
    honoured: &Filter,
    subscription: &Subscription,
    frames: &FrameSender,
    stopping: &CancellationToken,
    listen_time: Duration,
) -> Outcome {
    let gone = |()| Failure::Cancelled;
    frames.deliver(subscription.acknowledged(honoured)).await.map_err(gone)?;
    let events = async {
        while let Some(event) = listener.next().await {
            // The next one waits until this one is on the wire; meanwhile, the same change waits only once.
            frames.deliver(subscription.event(&event)).await?;
        }
        Ok(())
    };
    let reason = tokio::select! {
        biased;
        () = stopping.cancelled() => "The server ends the connection",
        () = sleep(listen_time) => "The subscription has lasted as long as it may",
        passed = events => {
            passed.map_err(gone)?;
            "More has happened than the client took"
        }
    };
    if let Some(message) = subscription.cancelled(reason) {
        frames.deliver(message).await.map_err(gone)?;
    }
    Ok(Reply::Empty)
}

#[cfg(test)]
mod tests;
