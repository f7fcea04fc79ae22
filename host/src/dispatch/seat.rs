//! What a guest learns of its request and may send while it runs: the dispatcher's side of `context` and `changes`.

use super::FrameSender;
use super::news::Voice;
use super::trace::{self, CallNumber, Subject};
use crate::convert;
use crate::guest::bindings::context::{LogLevel, ProgressError, RequestInfo};
use crate::guest::bindings::types::RpcError;
use crate::guest::{self, Change};
use crate::tasks::Handover;
use futures_util::future::BoxFuture;
use guesthouse_protocol::{CallContext, Identity, Reporter};
use std::sync::Arc;
use tracing::Span;

/// One call's seat at the table: who asks, and where its notifications go.
pub(super) struct Seat {
    number: CallNumber,
    context: CallContext,
    reporter: Option<Reporter>,
    frames: Option<FrameSender>,
    /// For what the guest announces; none before it is known which guest is called.
    voice: Option<Voice>,
    /// Set if the call is a task, or may become one.
    handover: Option<Arc<Handover>>,
    /// What was reported last, to whomever.
    reported: Option<f64>,
}

impl Seat {
    pub(super) fn new(context: CallContext, reporter: Reporter, frames: Option<FrameSender>) -> Self {
        Self { number: CallNumber::next(), context, reporter: Some(reporter), frames, voice: None, handover: None, reported: None }
    }

    /// What the protocol knows about the call, before the guest does.
    pub(super) fn context_mut(&mut self) -> &mut CallContext {
        &mut self.context
    }

    /// A seat that can be asked and sends nothing.
    pub(super) fn silent(context: CallContext) -> Self {
        Self { number: CallNumber::next(), context, reporter: None, frames: None, voice: None, handover: None, reported: None }
    }

    /// The seat of a call that is a task, or may become one.
    pub(super) fn handed(mut self, handover: Arc<Handover>) -> Self {
        self.handover = Some(handover);
        self
    }

    /// The span of the call, in which all of it is to happen, this seat's use included.
    pub(super) fn span(&self, subject: Subject<'_>) -> Span {
        trace::span(self.number, subject)
    }

    /// The seat as the guest runtime takes it, for a call of the guest with that voice.
    pub(super) fn of(mut self, voice: Voice) -> guest::Caller {
        trace::is_of(&Span::current(), voice.guest());
        self.voice = Some(voice);
        Some(Box::new(self))
    }
}

impl Seat {
    /// Sends a notification ahead of the response; not once the call has become a task, since then the response is out.
    async fn send(&self, message: bytes::Bytes) -> Result<(), ()> {
        let Some(frames) = &self.frames else { return Err(()) };
        let Some(handover) = &self.handover else { return frames.deliver(message).await };
        let sending = async {
            let place = frames.place(&message).await?;
            let mut on_the_wire = None;
            if !handover.while_call(|| on_the_wire = Some(place.send(message))) {
                return Err(());
            }
            let Some(on_the_wire) = on_the_wire else { return Err(()) };
            on_the_wire.await.map_err(|_| ())
        };
        tokio::select! {
            biased;
            () = handover.turned() => Err(()),
            sent = sending => sent,
        }
    }

    /// Tells the task, if there is one, how far the call is. True if nobody else need be told.
    fn note(&mut self, progress: f64, total: Option<f64>, message: Option<&str>) -> Result<bool, ProgressError> {
        let Some(handover) = &self.handover else { return Ok(false) };
        if self.reported.is_some_and(|last| progress <= last) {
            return Err(ProgressError::NotIncreasing);
        }
        self.reported = Some(progress);
        let text = match (message, total) {
            (Some(message), _) => message.to_owned(),
            (None, Some(total)) => format!("{progress} of {total}"),
            (None, None) => progress.to_string(),
        };
        Ok(handover.note(text))
    }

    async fn report(&mut self, progress: f64, total: Option<f64>, message: Option<&str>) -> Result<(), ProgressError> {
        if self.frames.is_none() {
            return Err(ProgressError::NotRequested);
        }
        let Some(reporter) = &mut self.reporter else { return Err(ProgressError::NotRequested) };
        match reporter.progress(progress, total, message) {
            Ok(message) => self.send(message).await.map_err(|()| ProgressError::Closed),
            // An earlier run of the same call reported it.
            Err(guesthouse_protocol::ProgressError::Repeated) => Ok(()),
            Err(guesthouse_protocol::ProgressError::NotRequested) => Err(ProgressError::NotRequested),
            Err(guesthouse_protocol::ProgressError::NotIncreasing) => Err(ProgressError::NotIncreasing),
            Err(guesthouse_protocol::ProgressError::Closed) => Err(ProgressError::Closed),
        }
    }
}

impl guest::CallContext for Seat {
    fn request_info(&mut self) -> Option<RequestInfo> {
        let context = &self.context;
        Some(RequestInfo {
            id: self.number.to_string(),
            protocol_version: context.revision.as_str().into(),
            client_info: context.client_info.as_ref().map(|info| info.get().to_owned()),
            client_capabilities: context.client_capabilities.get().to_owned(),
            meta: context.meta.as_ref().map(|meta| meta.get().to_owned()),
            traceparent: context.traceparent.as_deref().map(str::to_owned),
            principal: context.identity.principal.as_deref().map(str::to_owned),
            tenant: context.identity.tenant.as_deref().map(str::to_owned),
            session: context.identity.session.as_deref().map(str::to_owned),
            wants_progress: self.handover.is_some()
                || self.reporter.as_ref().is_some_and(Reporter::wants_progress) && self.frames.is_some(),
            retry: context.rounds.round > 0,
            more: None,
        })
    }

    fn identity(&self) -> Identity {
        self.context.identity.clone()
    }

    fn answer(&mut self, key: &str) -> Option<Result<String, RpcError>> {
        self.context.rounds.answer(key).map(convert::answer)
    }

    fn state(&mut self) -> Option<Vec<u8>> {
        self.context.rounds.state.clone()
    }

    fn progress(&mut self, progress: f64, total: Option<f64>, message: Option<String>) -> BoxFuture<'_, Result<(), ProgressError>> {
        Box::pin(async move {
            if self.note(progress, total, message.as_deref())? {
                return Ok(());
            }
            match self.report(progress, total, message.as_deref()).await {
                // It is there for the task that the call may become.
                Err(ProgressError::NotRequested | ProgressError::Closed) if self.handover.is_some() => Ok(()),
                reported => reported,
            }
        })
    }

    fn log(&mut self, level: LogLevel, logger: Option<String>, data: String) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (Some(reporter), Some(_)) = (&self.reporter, &self.frames) else { return };
            if !reporter.wants_logs() {
                return;
            }
            // A guest that logs plain text means a JSON string; and what clients could not read as JSON, they can as a string.
            let data = convert::json(data.clone(), "data").or_else(|_| serde_json::value::to_raw_value(&data));
            let Ok(data) = data else { return };
            if let Some(message) = reporter.log(convert::log_level(level), logger.as_deref(), &data) {
                // A client that is gone misses its log messages; the call ends by itself.
                let _ = self.send(message).await;
            }
        })
    }

    fn change(&mut self, change: Change) {
        if let Some(voice) = &self.voice {
            voice.announce(change);
        }
    }
}
