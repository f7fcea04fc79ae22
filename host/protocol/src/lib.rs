//! The Model Context Protocol as a value-in, value-out machine: every revision, no IO.
//!
//! A transport feeds texts into a [`Peer`] and carries out the [`Effect`]s that come back: it hands a [`Call`] to the
//! dispatcher, gives the outcome back with [`Peer::finish`], and sends what is to be sent. Between the two, one
//! request goes this way:
//!
//! ```text
//! bytes ─ message::parse ─▶ Incoming ─ Peer ─▶ Effect::Run(Call) ─ dispatcher ─▶ Outcome
//!                                        │                                          │
//!                  framing ◀─ Effect::Send(Outgoing) ◀───── Peer::finish ◀──────────┘
//! ```
//!
//! - [`message`]: the JSON-RPC envelope, bounded. [`model`]: what is asked and answered, for every method.
//! - [`method`]: which method exists in which revision, and what it needs. [`failure`]: what a client reads when a
//!   call did not succeed.
//! - `modern` and `handshake`: what is particular to the two eras. The era is chosen for each request.
//! - [`http`]: the rules of Streamable HTTP. [`framing`]: lines and server-sent events.
//!
//! A call that asks the client first ends with questions ([`model::questions`]). In the modern era they are its result; in
//! the handshake era the peer sends them as requests of its own, and makes another [`Effect::Run`] of the same call when they
//! are answered.
//!
//! A handshake session goes: new → (`initialize`) opening → (its answer) open; a failed `initialize` leads back to
//! new. The modern era has no states at all.

pub mod effect;
pub mod error;
pub mod failure;
pub mod framing;
mod handshake;
pub mod http;
mod json;
pub mod message;
pub mod method;
pub mod model;
mod modern;
pub mod peer;
pub mod reporter;
pub mod revision;
pub mod saved;
pub mod subscription;

pub use effect::{Call, CallContext, CallId, Effect, Identity, Outgoing, PeerConfig, PeerLimits, TransportKind};
pub use error::RpcError;
pub use failure::{Failure, InternalKind, NotFound, Outcome, RETRY_AFTER_S, StateProblem};
pub use json::Json;
pub use message::{Incoming, Message, ParseLimits, Refusal, RequestId};
pub use method::Method;
pub use model::{Reply, Request};
pub use peer::Peer;
pub use reporter::{ProgressError, Reporter};
pub use revision::{Era, Mode, Revision};
pub use subscription::{Event, Filter, Subscription, TaskState};
