//! The transports: each drives a protocol peer and hands its calls to the one dispatcher.
//!
//! [`stdio`] and [`memory`] have one peer per connection, which [`driver`] drives. [`http`] has one per request in the
//! modern era and one per session before.

mod driver;
pub mod http;
pub mod memory;
pub mod stdio;
#[cfg(test)]
mod testing;

use crate::changes::Hub;
use crate::config::Config;
use crate::dispatch::Line;
use crate::host::Shared;
use crate::identity::{self, Presence};
use crate::principals::Requests;
use crate::registry::Endpoint;
use crate::telemetry::Telemetry;
use ::http::HeaderMap;
use futures_util::FutureExt;
use guesthouse_protocol::http::HttpRefusal;
use guesthouse_protocol::{Call, Failure, Identity, InternalKind, Outcome, PeerConfig, RpcError, TransportKind};
use serde_json::value::RawValue;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// What a transport needs of the host behind it. There is one implementation, and one for the transports' own tests.
trait Service: Send + Sync + 'static {
    /// As it was when the host started.
    fn config(&self) -> &Config;

    /// Who sends a request with these headers; refused, if it says so and is not, or must say so and does not.
    ///
    /// Where nobody has to say it, the caller is whoever sits at this machine if the request comes from there (`local`), and
    /// nobody in particular otherwise.
    fn identify(&self, headers: &HeaderMap, local: bool) -> Result<Identity, HttpRefusal>;

    /// Held by whatever carries a session, for as long as there is one.
    fn presence(&self, caller: &Identity) -> Presence;

    /// What is counted.
    fn telemetry(&self) -> &Telemetry;

    /// The requests in flight.
    fn requests(&self) -> &Requests;

    /// What the peers of an endpoint have in common; `None` if nothing is served there.
    fn peer_config(&self, endpoint: &Endpoint, kind: TransportKind) -> Option<Arc<PeerConfig>>;

    /// Checks the headers of a tool call that repeat its arguments.
    fn check_param_headers(
        &self,
        endpoint: &Endpoint,
        tool: &str,
        headers: &HeaderMap,
        arguments: Option<&RawValue>,
    ) -> Result<(), RpcError>;

    /// Where changes meet whoever listens.
    fn hub(&self) -> &Arc<Hub>;

    /// Runs a call to its end. Dropping the future stops it.
    fn run(&self, endpoint: &Endpoint, call: Call, line: Line) -> impl Future<Output = Outcome> + Send;
}

impl Service for Shared {
    fn config(&self) -> &Config {
        &self.config
    }

    fn identify(&self, headers: &HeaderMap, local: bool) -> Result<Identity, HttpRefusal> {
        match &self.auth {
            Some(auth) => auth.identify(headers).map_err(HttpRefusal::from),
            None => Ok(identity::unproven(local)),
        }
    }

    fn presence(&self, caller: &Identity) -> Presence {
        self.departures.presence(caller)
    }

    fn telemetry(&self) -> &Telemetry {
        &self.loader.telemetry
    }

    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn peer_config(&self, endpoint: &Endpoint, kind: TransportKind) -> Option<Arc<PeerConfig>> {
        self.dispatcher.view(endpoint).map(|view| view.peer_config(kind).clone())
    }

    fn check_param_headers(
        &self,
        endpoint: &Endpoint,
        tool: &str,
        headers: &HeaderMap,
        arguments: Option<&RawValue>,
    ) -> Result<(), RpcError> {
        let view = self.dispatcher.view(endpoint);
        match view.as_ref().and_then(|view| view.tool(tool)?.tool()) {
            Some(tool) => tool.headers.check(headers, arguments),
            None => Ok(()),
        }
    }

    fn hub(&self) -> &Arc<Hub> {
        self.dispatcher.hub()
    }

    fn run(&self, endpoint: &Endpoint, call: Call, line: Line) -> impl Future<Output = Outcome> + Send {
        self.dispatcher.run(endpoint, call, line)
    }
}

/// Runs a call so that a fault of the host itself fails that call alone.
async fn run_guarded<S: Service>(service: &S, endpoint: &Endpoint, call: Call, line: Line) -> Outcome {
    let method = call.request.method();
    AssertUnwindSafe(service.run(endpoint, call, line)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("the host failed while it answered {}", method.as_str());
        Err(Failure::Internal { kind: InternalKind::HandlerError, text: "The server failed while it answered".into() })
    })
}
