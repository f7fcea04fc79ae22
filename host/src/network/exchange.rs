//! One exchange: resolve, check, connect, send, and hand the response over.

use super::body::{Body, BoxError, Counted, Limits, classify};
use super::proxy::Proxy;
use super::{Bounds, Check, Exchange, Failure, Network, Running};
use crate::policy::origin::{Host, Origin, Scheme};
use bytes::Bytes;
use http::header::{CONNECTION, HOST, PROXY_AUTHORIZATION};
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// The smallest buffer that hyper works with.
const BUFFER_BYTES_MIN: usize = 8 << 10;
/// Longest header section of a proxy's answer to `CONNECT`.
const TUNNEL_HEADER_BYTES_MAX: usize = 16 << 10;

/// A connection, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Where to connect to.
enum Route<'a> {
    /// To one of these addresses, which have been checked.
    Direct(Vec<IpAddr>),
    /// To a proxy, which resolves the name by itself.
    Through(&'a Proxy),
}

pub(super) async fn run<B>(network: Network, exchange: Exchange<B>) -> Result<Response<Body>, Failure>
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let Bounds { total, .. } = exchange.bounds;
    let over = Instant::now().checked_add(total).ok_or(Failure::Timeout)?;
    let ended = exchange.ended.clone();
    tokio::select! {
        biased;
        () = ended.cancelled() => Err(Failure::Stopped),
        outcome = timeout_at(over, within(network, exchange, over)) => outcome.unwrap_or(Err(Failure::Timeout)),
    }
}

async fn within<B>(network: Network, exchange: Exchange<B>, over: Instant) -> Result<Response<Body>, Failure>
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let Exchange { mut request, origin, check, unresolved, bounds, permits, ended } = exchange;
    let permit = permits.acquire_owned().await.map_err(|_| Failure::Stopped)?;
    let addresses = timeout(bounds.resolve, addresses(&network, &origin.host)).await.unwrap_or(Err(Failure::ResolveTimeout));
    let route = route(&network, &origin, addresses, &*check, unresolved)?;
    let connected = timeout(bounds.connect, connect(&network, &origin, &route, bounds.connect)).await;
    let stream = connected.unwrap_or(Err(Failure::ConnectTimeout))?;

    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::try_from(origin.authority()).map_err(|_| Failure::Protocol)?);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    if let (Route::Through(proxy), Scheme::Http) = (&route, origin.scheme) {
        *request.uri_mut() = absolute(&origin, request.uri())?;
        request.headers_mut().extend(proxy.authorization.clone().map(|value| (PROXY_AUTHORIZATION, value)));
    }

    let exceeded = Arc::new(AtomicBool::new(false));
    let request = request.map(|body| Counted::new(body, bounds.request_bytes, Arc::clone(&exceeded)));
    let outcome = timeout(bounds.first_byte, exchange_on(stream, request, bounds.header_bytes, Life { over, ended, permit })).await;
    let (response, connection) = match outcome {
        _ if exceeded.load(Ordering::Relaxed) => return Err(Failure::RequestTooLarge(bounds.request_bytes)),
        Ok(outcome) => outcome?,
        Err(_) => return Err(Failure::ReadTimeout),
    };
    if hyper::body::Body::size_hint(response.body()).lower() > bounds.response_bytes {
        return Err(Failure::ResponseTooLarge(bounds.response_bytes));
    }
    let limits = Limits { bytes: bounds.response_bytes, over, between: bounds.between_bytes };
    Ok(response.map(|incoming| Body::new(incoming, limits, connection)))
}

/// The addresses of a host: its own, or what its name is resolved to, once.
async fn addresses(network: &Network, host: &Host) -> Result<Vec<IpAddr>, Failure> {
    match host {
        Host::Address(address) => Ok(vec![*address]),
        Host::Name(name) => network.resolver.resolve(name).await,
    }
}

/// Decides how to get there. Every address has to be good, also where a proxy is to resolve the name again: a name that
/// leads to a private network from here is not to be tried from there.
fn route<'a>(
    network: &'a Network,
    origin: &Origin,
    addresses: Result<Vec<IpAddr>, Failure>,
    check: &Check,
    unresolved: bool,
) -> Result<Route<'a>, Failure> {
    let proxy = network.proxies.for_origin(origin);
    let addresses = match (addresses, proxy) {
        // That nobody here knows where it leads is not enough: then it may lead where it must not.
        (Err(Failure::Unresolved), Some(proxy)) if unresolved => return Ok(Route::Through(proxy)),
        (addresses, _) => addresses?,
    };
    check(&addresses)?;
    Ok(proxy.map_or(Route::Direct(addresses), Route::Through))
}

/// A connection over which the server itself can be spoken to, or for plain HTTP the proxy.
async fn connect(network: &Network, origin: &Origin, route: &Route<'_>, time: Duration) -> Result<Box<dyn Stream>, Failure> {
    let stream: Box<dyn Stream> = match route {
        Route::Direct(addresses) => Box::new(first(addresses, origin.port, time).await?),
        Route::Through(proxy) => {
            let there = addresses(network, &proxy.host).await.map_err(|_| Failure::Proxy)?;
            let stream = first(&there, proxy.port, time).await.map_err(|_| Failure::Proxy)?;
            match origin.scheme {
                Scheme::Http => Box::new(stream),
                Scheme::Https => Box::new(tunnel(stream, origin, proxy).await?),
            }
        }
    };
    match origin.scheme {
        Scheme::Http => Ok(stream),
        Scheme::Https => Ok(Box::new(network.trust.connect(&origin.host, stream).await?)),
    }
}

/// Connects to the first address that accepts. Each is given the same part of the time.
async fn first(addresses: &[IpAddr], port: u16, time: Duration) -> Result<TcpStream, Failure> {
    let part = time / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
    let mut failure = Failure::Refused;
    for address in addresses {
        match timeout(part, TcpStream::connect(SocketAddr::new(*address, port))).await {
            Ok(Ok(stream)) => {
                // Without it a small request may wait for an acknowledgement; where the connection works, it does not fail.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(_)) => {}
            Err(_) => failure = Failure::ConnectTimeout,
        }
    }
    Err(failure)
}

/// Has the proxy connect to the origin.
async fn tunnel(stream: TcpStream, origin: &Origin, proxy: &Proxy) -> Result<TokioIo<hyper::upgrade::Upgraded>, Failure> {
    let authority = format!("{}:{}", origin.host, origin.port);
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = authority.parse().map_err(|_| Failure::Protocol)?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::try_from(authority).map_err(|_| Failure::Protocol)?);
    headers.extend(proxy.authorization.clone().map(|value| (PROXY_AUTHORIZATION, value)));
    let handshake = http1::Builder::new().max_buf_size(TUNNEL_HEADER_BYTES_MAX).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|_| Failure::Proxy)?;
    let mut connection = std::pin::pin!(connection.with_upgrades());
    let answered = async {
        let response = sender.send_request(request).await.map_err(|_| Failure::Proxy)?;
        if !response.status().is_success() {
            tracing::debug!(%origin, status = %response.status(), "the proxy makes no tunnel");
            return Err(Failure::Proxy);
        }
        hyper::upgrade::on(response).await.map_err(|_| Failure::Proxy)
    };
    let mut answered = std::pin::pin!(answered);
    let upgraded = tokio::select! {
        upgraded = &mut answered => upgraded?,
        // The connection hands itself over when it is done.
        _ = &mut connection => answered.await?,
    };
    Ok(TokioIo::new(upgraded))
}

/// The request's URI as a proxy wants it.
fn absolute(origin: &Origin, path: &Uri) -> Result<Uri, Failure> {
    let builder = Uri::builder().scheme(origin.scheme.as_str()).authority(origin.authority());
    let path = path.path_and_query().map_or("/", |path| path.as_str());
    builder.path_and_query(path).build().map_err(|_| Failure::Protocol)
}

/// How long a connection goes on at most, and what it holds for as long. It is the connection that ends, and not the body of
/// the response, which nobody may be reading.
struct Life {
    over: Instant,
    ended: CancellationToken,
    permit: OwnedSemaphorePermit,
}

/// Sends the request and waits for the header of the response. The connection goes on as long as what is returned with it.
async fn exchange_on<B>(
    stream: Box<dyn Stream>,
    request: Request<B>,
    header_bytes: usize,
    Life { over, ended, permit }: Life,
) -> Result<(Response<Incoming>, Running<()>), Failure>
where
    B: hyper::body::Body<Data = Bytes, Error = BoxError> + Send + Unpin + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(header_bytes.max(BUFFER_BYTES_MIN));
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|error| classify(&error))?;
    let connection = Running(tokio::spawn(async move {
        let _permit = permit;
        tokio::select! {
            biased;
            () = ended.cancelled() => Err(Failure::Stopped),
            () = sleep_until(over) => Err(Failure::Timeout),
            outcome = connection => outcome.map_err(|error| classify(&error)),
        }
    }));
    match sender.send_request(request).await {
        Ok(response) => Ok((response, connection)),
        Err(error) if error.is_parse_too_large() => Err(Failure::HeadersTooLarge(header_bytes)),
        Err(error) => {
            tracing::debug!(%error, "no response");
            Err(classify(&error))
        }
    }
}
