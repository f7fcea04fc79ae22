//! Streamable HTTP on hyper: connections, their limits, and how they end.
//!
//! A request goes through [`router`], which applies the protocol's rules, to [`modern`] or to [`handshake`]. Both end in
//! an [`exchange`]: one JSON text, or a stream of events if something precedes the result.

mod answer;
mod event;
mod exchange;
mod handshake;
mod intake;
mod legacy;
mod modern;
mod reading;
mod router;
mod session;
mod sessions;
mod streams;
#[cfg(test)]
mod tests;
mod wire;

use super::Service;
use crate::host::Shared;
use anyhow::{Context, Result};
use guesthouse_protocol::http::AccessRules;
use http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use sessions::Sessions;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use wire::{Wire, WireStream};

/// How long to wait after a connection could not be accepted, as when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Smallest buffer for a header section that hyper allows.
const HEADER_BYTES_MIN: u64 = 8 << 10;

/// How often idle sessions are looked for, at least.
const SWEEP_MAX: Duration = Duration::from_secs(60);

/// Names of this machine that are always served: nobody else's page can have them.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// What the other headers of proxies begin with.
const FORWARDED_PREFIX: &str = "x-forwarded-";

/// Headers that proxies add to what they pass on.
const PROXY_HEADERS: [&str; 10] = [
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "x-envoy-external-address",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
];

/// What all connections of a listener share.
struct Server<S> {
    service: Arc<S>,
    access: AccessRules,
    /// The names of this machine, where nobody else reaches the server.
    local: Option<AccessRules>,
    sessions: Sessions,
    /// Of the HTTP+SSE transport of 2024-11-05.
    connections: legacy::Connections,
    /// Ends subscriptions when the server is about to end.
    stopping: CancellationToken,
}

impl<S: Service> Server<S> {
    fn new(service: Arc<S>, local: SocketAddr) -> Self {
        let config = service.config();
        let mut hosts = LOOPBACK.map(str::to_owned).to_vec();
        if !local.ip().is_unspecified() {
            hosts.push(local.ip().to_string());
        }
        let here = local.ip().is_loopback().then(|| AccessRules::new(&hosts, &[]));
        hosts.extend(config.server.hosts.iter().cloned());
        let access = AccessRules::new(&hosts, &config.server.origins);
        let sessions = Sessions::new(config);
        Self { service, access, local: here, sessions, connections: legacy::Connections::default(), stopping: CancellationToken::new() }
    }

    /// Whether a request comes from this machine itself, and is not passed on for somebody else. A proxy says that it passes
    /// requests on, or at least calls the server by the name that others know.
    fn is_local(&self, parts: &Parts) -> bool {
        let names_here = self.local.as_ref().is_some_and(|here| here.names_host(parts));
        names_here && !parts.headers.keys().any(|name| is_of_proxies(name.as_str()))
    }
}

/// Whether a header is one by which proxies say for whom they ask.
fn is_of_proxies(name: &str) -> bool {
    PROXY_HEADERS.contains(&name) || name.starts_with(FORWARDED_PREFIX)
}

/// Serves until `stop` resolves. Then nothing new is taken in, and calls in flight get their time to finish.
pub async fn serve(shared: Arc<Shared>, listener: std::net::TcpListener, stop: impl Future<Output = ()> + Send) -> Result<()> {
    serve_on(shared, listener, stop).await
}

async fn serve_on<S: Service>(service: Arc<S>, listener: std::net::TcpListener, stop: impl Future<Output = ()> + Send) -> Result<()> {
    listener.set_nonblocking(true).context("cannot use the listening socket")?;
    let listener = TcpListener::from_std(listener).context("cannot use the listening socket")?;
    let server = Arc::new(Server::new(service, listener.local_addr().context("cannot use the listening socket")?));
    let watched = Arc::downgrade(&server);
    let sessions = move || watched.upgrade().map(|server| server.sessions.len());
    server.service.telemetry().observe("sessions", "Sessions of the handshake era that are open over HTTP", sessions);
    let limits = &server.service.config().limits;
    let room = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut sweep = interval((limits.session_idle.duration() / 4).clamp(Duration::from_millis(1), SWEEP_MAX));
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &room) => {
                if let Some((stream, permit)) = accepted {
                    let connection = connection(server.clone(), stream, &graceful);
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
            }
            Some(_) = connections.join_next() => {}
            now = sweep.tick() => server.sessions.sweep(now),
        }
    }
    drop(listener);
    server.stopping.cancel();
    server.sessions.stop_waiting();
    if timeout(limits.stop_time.duration(), graceful.shutdown()).await.is_err() {
        tracing::warn!("some calls did not finish in time and were stopped");
    }
    server.sessions.close_all();
    connections.shutdown().await;
    Ok(())
}

/// The next connection, once there is room for one. Until then clients wait in the system's queue.
async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let permit = room.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, permit)),
        Err(error) => {
            // Most of these concern one connection that is gone; the others pass only with time.
            if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
                tracing::warn!("cannot accept a connection: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
            None
        }
    }
}

/// Serves one connection to its end.
fn connection<S: Service>(
    server: Arc<Server<S>>,
    stream: TcpStream,
    graceful: &GracefulShutdown,
) -> impl Future<Output = ()> + Send + use<S> {
    // Without this an answer in two segments waits for the client's delayed acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("cannot set TCP_NODELAY: {error}");
    }
    let limits = &server.service.config().limits;
    let wire = Arc::new(Wire::default());
    let io = TokioIo::new(WireStream::new(stream, wire.clone(), limits.write_time.duration()));
    let header_bytes = usize::try_from(limits.headers.0.max(HEADER_BYTES_MIN)).unwrap_or(usize::MAX);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.header_time.duration()).max_buf_size(header_bytes);
    let service = service_fn(move |request| {
        let (server, wire) = (server.clone(), wire.clone());
        async move { Ok::<_, Infallible>(router::handle(&server, &wire, request).await) }
    });
    let connection = graceful.watch(builder.serve_connection(io, service));
    async move {
        // A client that goes away, or breaks the rules of HTTP, is no event.
        if let Err(error) = connection.await {
            tracing::debug!("a connection ended early: {error}");
        }
    }
}
