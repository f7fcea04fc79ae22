//! The admin socket: how a running host is watched and managed. It speaks HTTP, to this user alone or to whoever has the token, and is
//! no part of what clients of the protocol can reach.

mod listen;

pub use listen::{Listeners, socket_for};

use crate::guest::clean;
use crate::host::Host;
use crate::swap::{self, Component};
use crate::telemetry::TEXT_TYPE;
use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncRead, AsyncWrite};

/// How long a client may take to send a header section.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// Largest header section.
const HEADER_BYTES_MAX: usize = 16 << 10;
/// How long a connection may last: a swap may have to compile, and whoever watches asks again.
const CONNECTION_TIME: Duration = Duration::from_secs(600);
/// Largest order.
const ORDER_BYTES_MAX: usize = 64 << 10;
/// Longest reason why an order was not carried out; it may quote the guest.
const REASON_BYTES_MAX: usize = 4 << 10;
const PLAIN: &str = "text/plain; charset=utf-8";

/// Answers on the listeners for as long as it is polled.
pub async fn serve(host: Host, listeners: Listeners) {
    let Listeners { unix, tcp } = listeners;
    let on_unix = {
        let host = host.clone();
        async move {
            match unix {
                Some(listener) => listen::accept_unix(&listener, |stream| connection(host.clone(), stream, None)).await,
                None => std::future::pending().await,
            }
        }
    };
    let on_tcp = async move {
        match tcp {
            Some((listener, token)) => listen::accept_tcp(&listener, |stream| connection(host.clone(), stream, Some(token))).await,
            None => std::future::pending().await,
        }
    };
    tokio::join!(on_unix, on_tcp);
}

/// Serves one connection to its end.
fn connection<S>(host: Host, stream: S, token: Option<[u8; 32]>) -> impl Future<Output = ()> + Send
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let host = host.clone();
        async move { Ok::<_, Infallible>(answer(&host, request, token.as_ref()).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).max_buf_size(HEADER_BYTES_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    async move {
        // A client that goes away, breaks the rules of HTTP or stays for too long is no event.
        let _ = tokio::time::timeout(CONNECTION_TIME, connection).await;
    }
}

async fn answer(host: &Host, request: Request<Incoming>, token: Option<&[u8; 32]>) -> Response<Full<Bytes>> {
    if token.is_some_and(|token| !has_token(&request, token)) {
        let mut response = text(StatusCode::UNAUTHORIZED, PLAIN, "the token of the admin socket is needed\n".into());
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => text(StatusCode::OK, TEXT_TYPE, host.telemetry().text()),
        (&Method::GET, "/status") => text(StatusCode::OK, "application/json", host.status().to_string()),
        (&Method::POST, path @ ("/swap" | "/rollback")) => {
            let path = path.to_owned();
            match manage(host, &path, request.into_body()).await {
                Ok(done) => text(StatusCode::OK, "application/json", done.to_string()),
                Err(error) => text(StatusCode::CONFLICT, PLAIN, format!("{}\n", clean(&format!("{error:#}"), REASON_BYTES_MAX))),
            }
        }
        (_, "/metrics" | "/status" | "/swap" | "/rollback") => text(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "not this method\n".into()),
        _ => text(StatusCode::NOT_FOUND, PLAIN, "there are /metrics, /status, /swap and /rollback\n".into()),
    }
}

/// What is to be done to a guest.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    guest: String,
    /// The component of the new version; none to go back.
    file: Option<PathBuf>,
    /// Whether to go back over a migration.
    #[serde(default)]
    restore_state: bool,
    /// The share of the calls of tools that the new version gets; without it, and with no file, the version that has one gets all.
    percent: Option<u8>,
}

async fn manage(host: &Host, path: &str, body: Incoming) -> Result<Value> {
    let body = Limited::new(body, ORDER_BYTES_MAX).collect().await.map_err(|error| anyhow!("the order cannot be read: {error}"))?;
    let order: Order = serde_json::from_slice(&body.to_bytes()).context("the order is not understood")?;
    let component = match (path, order.file) {
        ("/swap", _) if order.restore_state => bail!("only a rollback takes `restore_state`"),
        ("/swap", Some(file)) => Component::File(file),
        ("/swap", None) if order.percent.is_some() => bail!("the order names no `file`"),
        ("/swap", None) => Component::Tried,
        (_, Some(_)) => bail!("a rollback takes no `file`"),
        (_, None) => Component::Previous { restore_state: order.restore_state },
    };
    // What was begun is done, whether or not anybody waits for it.
    let host = host.clone();
    let done = tokio::spawn(async move {
        let outcome = match (order.percent, component) {
            (Some(percent), Component::File(file)) => host.try_out(&order.guest, file, percent).await,
            (_, component) => host.swap(&order.guest, component).await,
        };
        swap::log(&order.guest, &outcome);
        outcome
    });
    Ok(done.await.context("the swap stopped unexpectedly")??.to_json())
}

/// Whether the request carries the token. Only hashes are compared, and in constant time.
fn has_token(request: &Request<Incoming>, hash: &[u8; 32]) -> bool {
    let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = given.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    token.is_some_and(|(_, token)| Sha256::digest(token.trim().as_bytes()).as_slice().ct_eq(hash).into())
}

fn text(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
