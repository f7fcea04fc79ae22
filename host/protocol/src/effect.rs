//! What goes into a peer beside messages, and what comes out of it: configuration, calls, effects.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::json::{Json, to_raw_written};
use crate::message::{ParseLimits, RequestId};
use crate::model::{Implementation, Request, Retry, Rounds, TaskAsked};
use crate::reporter::Reporter;
use crate::revision::{Mode, Revision};

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransportKind {
    /// One client on standard input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// In process.
    Memory,
}

/// What one client may make a peer keep.
#[derive(Clone, Debug)]
pub struct PeerLimits {
    /// What one message may be.
    pub parse: ParseLimits,
    /// Ids of a handshake session that are remembered, the oldest forgotten first.
    pub request_ids_max: usize,
    /// Calls that run at a time; beyond, the answer is `busy`.
    pub in_flight_max: usize,
    /// Subscriptions that are open at a time, which count as calls, too.
    pub subscriptions_max: usize,
    /// Resources that one subscription may name.
    pub subscription_uris_max: usize,
    /// Bytes that their URIs may have in all.
    pub subscription_uri_bytes_max: usize,
    /// Calls that wait for answers of the client at a time, in the handshake era. They do not count as running.
    pub waiting_max: usize,
    /// How long the client has for the questions of one round, in milliseconds.
    pub question_time_ms: u64,
    /// What the answers to one call may take, all rounds together; one beyond that reaches the guest as an error.
    pub answers_bytes_max: usize,
}

impl Default for PeerLimits {
    fn default() -> PeerLimits {
        PeerLimits {
            parse: ParseLimits::default(),
            request_ids_max: 10_000,
            in_flight_max: 256,
            subscriptions_max: 32,
            subscription_uris_max: 256,
            subscription_uri_bytes_max: 64 << 10,
            waiting_max: 64,
            question_time_ms: 600_000,
            answers_bytes_max: 4 << 20,
        }
    }
}

/// What the peers of one endpoint have in common.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// The eras that are served.
    pub mode: Mode,
    /// How messages travel.
    pub transport: TransportKind,
    /// What a client may make a peer keep.
    pub limits: PeerLimits,
    /// The identity in the `_meta` of every modern result, written out. None withholds it; the answer to
    /// `initialize` has the profile's all the same, since there it is required.
    pub server_info: Option<Json>,
}

impl PeerConfig {
    /// A configuration with the default limits.
    pub fn new(mode: Mode, transport: TransportKind, server_info: Option<&Implementation>) -> PeerConfig {
        let server_info = server_info.map(|info| to_raw_written(|out| info.write(out, Revision::LATEST_MODERN)));
        PeerConfig { mode, transport, limits: PeerLimits::default(), server_info }
    }
}

/// Names a call; unique within its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// What the peer asks of whoever drives it. Effects are to be carried out in order, before the next message goes in.
///
/// A message that makes no effect wants no answer (HTTP: 202 without a body). Any other HTTP exchange lasts until
/// one of its sends is the `last`, or until its call ends without a response. A notification of a call (made by its
/// [`Reporter`]) may precede that, and so may what the call asks the client: a send that is not the `last`. The answers
/// come in as messages of their own, which then make a [`Effect::Run`] of the call that asked.
#[derive(Debug)]
pub enum Effect {
    /// Run this call, and give its outcome to [`Peer::finish`]. A call that asked the client runs again under the id that
    /// it had, with `context.rounds.round` above 0, and belongs to the exchange that it had.
    Run(Box<Call>),
    /// Stop this call; whatever it answers is dropped.
    Cancel(CallId),
    /// Send this message.
    Send(Outgoing),
    /// The exchange of this call ends without a response. HTTP: 202 without a body if nothing was sent yet, else the
    /// stream just ends.
    End(CallId),
}

/// A message on its way to the client: a response, or what a call asks before it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    /// One JSON text on one line, without framing.
    pub message: Bytes,
    /// The call that it answers; none if it was answered without one. For a batch, the call that was the last to end.
    pub call: Option<CallId>,
    /// HTTP status, unless a stream began already.
    pub status: u16,
    /// HTTP `Retry-After`, in seconds.
    pub retry_after_s: Option<u32>,
    /// Nothing follows in this exchange.
    pub last: bool,
}

/// A request for the dispatcher.
#[derive(Debug)]
pub struct Call {
    /// To be given back with the outcome.
    pub id: CallId,
    /// What is asked.
    pub request: Request,
    /// By whom, and how.
    pub context: CallContext,
    /// For what the call sends while it runs.
    pub reporter: Reporter,
}

/// The caller of a request, as the host verified or knows it. Nothing in it comes from the client's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Who it is; none for a caller that nobody vouches for.
    #[serde(with = "crate::saved::option")]
    pub principal: Option<Arc<str>>,
    /// On whose behalf, where the operator says so.
    #[serde(with = "crate::saved::option")]
    pub tenant: Option<Arc<str>>,
    /// The session of the handshake era that the request belongs to, by a name that does not open it; unique for ever. None
    /// in the modern era.
    #[serde(with = "crate::saved::option")]
    pub session: Option<Arc<str>>,
}

/// What the protocol knows about a call beside what is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallContext {
    /// The client's own id of the request, for logs.
    pub request_id: RequestId,
    /// The revision that the client speaks.
    pub revision: Revision,
    /// How the request came.
    pub transport: TransportKind,
    /// An `Implementation` object, if the client said who it is.
    #[serde(with = "crate::saved::option")]
    pub client_info: Option<Arc<RawValue>>,
    /// A `ClientCapabilities` object.
    #[serde(with = "crate::saved")]
    pub client_capabilities: Arc<RawValue>,
    /// The request's `_meta` without the keys that the protocol consumes; an object.
    pub meta: Option<Json>,
    /// W3C trace context, if well-formed.
    pub traceparent: Option<Box<str>>,
    /// Who asks. The peer does not know: it is for the transport to fill in, before the call runs.
    pub identity: Identity,
    /// Set if a modern client says that this is a later round of a call that asked it something.
    pub retry: Option<Retry>,
    /// Set if a client of 2025-11-25 wants the call to run as a task.
    pub task: Option<TaskAsked>,
    /// What earlier rounds brought. In the modern era it is for the dispatcher to fill in, out of `retry`.
    pub rounds: Rounds,
}
