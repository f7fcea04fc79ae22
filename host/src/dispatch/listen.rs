//! `subscriptions/listen`: an acknowledgement, then what happens, until somebody ends it.

use super::seat::deliver;
use super::{Line, RETRY_AFTER_S, Scope};
use crate::changes::{Listener, Lists};
use guesthouse_protocol::{CallContext, Failure, Filter, Outcome, Reply, Subscription};
use tokio::time::sleep;

impl Scope<'_> {
    /// Runs a subscription to its end. If the client ends it, this is dropped.
    pub(super) async fn listen(&self, context: &CallContext, wanted: Filter, line: Line) -> Outcome {
        let Some(frames) = &line.frames else {
            return Err(Failure::InvalidParams("a subscription needs a stream for its notifications".into()));
        };
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
        let honoured = self.honour(&listener, lists, wanted).await;
        let subscription = Subscription::of(context);
        let gone = |()| Failure::Cancelled;
        deliver(frames, subscription.acknowledged(&honoured)).await.map_err(gone)?;
        let pass_on = async {
            while let Some(event) = listener.next().await {
                // The next one waits until this one is on the wire; meanwhile, the same change waits only once.
                deliver(frames, subscription.event(&event)).await?;
            }
            Ok(())
        };
        let reason = tokio::select! {
            biased;
            () = line.stopping.cancelled() => "The server ends the connection",
            () = sleep(self.dispatcher.listen_time) => "The subscription has lasted as long as it may",
            passed = pass_on => {
                passed.map_err(gone)?;
                "Too much has happened that the client did not take"
            }
        };
        if let Some(message) = subscription.cancelled(reason) {
            deliver(frames, message).await.map_err(gone)?;
        }
        Ok(Reply::Empty)
    }

    /// What of the filter can happen here. A resource that nobody has, or whose guest does not want it to be watched, is
    /// left out.
    async fn honour(&self, listener: &Listener, lists: Lists, wanted: Filter) -> Filter {
        let mut honoured = Filter {
            tools: lists.tools,
            prompts: lists.prompts,
            resources: lists.resources,
            uris: Vec::new(),
            names_uris: wanted.names_uris && self.view.profile.capabilities.subscribe,
        };
        for uri in wanted.uris {
            match self.watch(listener, &uri).await {
                Ok(()) => honoured.uris.push(uri),
                Err(failure) => tracing::debug!("a resource cannot be watched: {failure:?}"),
            }
        }
        honoured
    }
}
