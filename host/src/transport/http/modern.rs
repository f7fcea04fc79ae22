//! A POST of the modern era: a peer for this exchange alone, and the call within the connection's own task, so that a
//! client that goes away cancels it.

use super::answer::{self, AnswerBody};
use super::exchange::Exchange;
use super::router::Posted;
use crate::dispatch::Line;
use crate::transport::{Service, run_guarded};
use guesthouse_protocol::http::{HttpRefusal, PROTOCOL_VERSION, check_events, version_header};
use guesthouse_protocol::{Call, CallId, Effect, Incoming, Outcome, Outgoing, Peer, Refusal, Request};
use hyper::Response;
use tokio::sync::mpsc;

/// Answers a message whose headers are in order.
pub(super) async fn answer<S: Service>(posted: Posted<'_, S>, incoming: Incoming<'_>) -> Result<Response<AnswerBody>, HttpRefusal> {
    let mut peer = Peer::new(posted.config.clone());
    let mut call = match peer.receive_parsed(incoming).into_iter().next() {
        Some(Effect::Run(call)) => call,
        Some(Effect::Send(outgoing)) => return Ok(answer::response(outgoing, posted.accepts)),
        Some(Effect::Cancel(_) | Effect::End(_)) | None => return Ok(answer::accepted()),
    };
    check_param_headers(&posted, &call)?;
    if matches!(call.request, Request::Listen(_)) {
        check_events(posted.headers)?;
    }
    call.context.identity = posted.identity.clone();
    let version = version_header(call.context.revision);
    let mut response = run(posted, peer, *call).await;
    response.headers_mut().insert(PROTOCOL_VERSION, version);
    Ok(response)
}

fn check_param_headers<S: Service>(posted: &Posted<'_, S>, call: &Call) -> Result<(), Refusal> {
    let Request::CallTool { name, arguments } = &call.request else { return Ok(()) };
    posted.server.service.check_param_headers(&posted.endpoint, name, posted.headers, arguments.as_deref()).map_err(|error| Refusal {
        id: Some(call.context.request_id.clone()),
        error,
        status: 400,
    })
}

async fn run<S: Service>(posted: Posted<'_, S>, mut peer: Peer, call: Call) -> Response<AnswerBody> {
    let Posted { server, endpoint, identity, accepts, wire, .. } = posted;
    let id = call.id;
    let respond = |outgoing: Option<Outgoing>| outgoing.map_or_else(answer::accepted, |outgoing| answer::response(outgoing, accepts));
    let listens = matches!(call.request, Request::Listen(_));
    // Subscriptions do next to nothing for a long time, and are counted elsewhere.
    let permit = match server.service.requests().try_begin(&identity) {
        _ if listens => None,
        Ok(permit) => Some(permit),
        Err(failure) => return respond(conclude(&mut peer, id, Err(failure))),
    };
    if !(accepts.events && (listens || call.reporter.wants_progress() || call.reporter.wants_logs())) {
        let outcome = run_guarded(&*server.service, &endpoint, call, Line::default()).await;
        return respond(conclude(&mut peer, id, outcome));
    }
    let (sender, frames) = mpsc::channel(server.service.config().limits.queue.max(1));
    let service = server.service.clone();
    let line = Line { frames: Some(sender.into()), session: None, stopping: server.stopping.clone() };
    let end = async move {
        let outcome = run_guarded(&*service, &endpoint, call, line).await;
        drop(permit);
        conclude(&mut peer, id, outcome)
    };
    Exchange::new(Box::pin(end), frames).begin(wire, accepts, server.service.config().streams.keep_alive.duration()).await
}

/// The response to a call that ended; `None` if it gets none.
pub(super) fn conclude(peer: &mut Peer, call: CallId, outcome: Outcome) -> Option<Outgoing> {
    peer.finish(call, outcome).into_iter().find_map(|effect| match effect {
        Effect::Send(outgoing) => Some(outgoing),
        Effect::Run(_) | Effect::Cancel(_) | Effect::End(_) => None,
    })
}
