//! The way out: one HTTP exchange of a guest, from the name of a host to the end of the response's body.
//!
//! A name is resolved once, every address that it has is checked, and the connection is made to one of those addresses: what
//! a name server says a moment later changes nothing. Each exchange has a connection of its own, which ends with it, so
//! nothing of one guest's traffic can be met by another's. Redirects are answers like others. All of it runs on the runtime
//! that the network was made on, whichever thread the guest itself is on.

mod body;
mod exchange;
mod proxy;
mod resolve;
mod tls;

use crate::policy::origin::Origin;
use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use body::{Body, BoxError};
pub use proxy::{Proxies, Proxy};
pub use resolve::{ADDRESSES_MAX, Resolve, SystemResolver};
pub use tls::{Trust, TrustError};

/// What all guests go out through. Cloning is cheap.
#[derive(Clone)]
pub struct Network {
    resolver: Arc<dyn Resolve>,
    trust: Trust,
    proxies: Arc<Proxies>,
    runtime: Handle,
}

impl Network {
    /// A network whose exchanges run on this runtime.
    pub fn new(resolver: Arc<dyn Resolve>, trust: Trust, proxies: Proxies, runtime: Handle) -> Self {
        Self { resolver, trust, proxies: Arc::new(proxies), runtime }
    }

    /// The same for one guest, which shares nothing with others that a server could recognise.
    pub fn apart(&self) -> Self {
        Self { trust: self.trust.apart(), ..self.clone() }
    }

    /// Begins an exchange. Dropping what is returned ends it, and so does dropping the response's body.
    pub fn send<B>(&self, exchange: Exchange<B>) -> Running<http::Response<Body>>
    where
        B: hyper::body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Running(self.runtime.spawn(exchange::run(self.clone(), exchange)))
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").field("proxies", &self.proxies).finish_non_exhaustive()
    }
}

/// One exchange that is allowed, as far as the name of its host tells.
pub struct Exchange<B> {
    /// With everything that the server is to see but `Host` and `Connection`; its URI is a path with a query.
    pub request: http::Request<B>,
    /// Where it goes.
    pub origin: Origin,
    /// Says of all addresses that the host has whether they may be connected to.
    pub check: Arc<Check>,
    /// Whether a proxy may be asked for a name that does not exist here, and so cannot be checked either.
    pub unresolved: bool,
    /// How much it may take.
    pub bounds: Bounds,
    /// One permit for each exchange at a time.
    pub permits: Arc<Semaphore>,
    /// Cancelled when whoever it is for is done; it ends then, whatever is left of it, and whoever still holds its response.
    pub ended: CancellationToken,
}

/// Whether the addresses of a host may be connected to, all of them; else why not.
pub type Check = dyn Fn(&[IpAddr]) -> Result<(), Failure> + Send + Sync;

/// What one exchange may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// For the name. Never of the guest's choice: a name that is not resolved is not checked.
    pub resolve: Duration,
    /// From a resolved address to a connection, TLS included.
    pub connect: Duration,
    /// From the request to the header of the response.
    pub first_byte: Duration,
    /// Between two pieces of the response's body.
    pub between_bytes: Duration,
    /// From the beginning to the end of the response's body.
    pub total: Duration,
    /// The header section of the response.
    pub header_bytes: usize,
    /// The body of the request.
    pub request_bytes: u64,
    /// The body of the response.
    pub response_bytes: u64,
}

/// Why an exchange failed. Nothing in it was sent by the guest or added by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The name could not be resolved in time.
    ResolveTimeout,
    /// There is no such name, or it has no address.
    Unresolved,
    /// It could not be found out whether the name has an address.
    ResolveFailed,
    /// The name has more addresses than are looked at.
    TooManyAddresses,
    /// One of its addresses is of a kind that was not granted.
    Prohibited,
    /// No address accepted a connection.
    Refused,
    /// No connection was made in time.
    ConnectTimeout,
    /// The server's certificate is not good for this name.
    Certificate,
    /// TLS failed otherwise.
    Tls,
    /// The proxy did not do what was asked of it.
    Proxy,
    /// The response did not begin, or go on, in time.
    ReadTimeout,
    /// The exchange took too long in all.
    Timeout,
    /// The request's body is longer than allowed.
    RequestTooLarge(u64),
    /// The response's header section is longer than allowed.
    HeadersTooLarge(usize),
    /// The response's body is longer than allowed.
    ResponseTooLarge(u64),
    /// The connection ended before the response did.
    Incomplete,
    /// Either side did not keep to HTTP.
    Protocol,
    /// The host is stopping, or the call is over that it was for.
    Stopped,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ResolveTimeout => "its name was not resolved in time",
            Self::Unresolved => "its name has no address",
            Self::ResolveFailed => "its name cannot be resolved at the moment",
            Self::TooManyAddresses => "its name leads to too many addresses",
            Self::Prohibited => "its name leads to an address that is not granted",
            Self::Refused => "no connection was accepted",
            Self::ConnectTimeout => "no connection was made in time",
            Self::Certificate => "the server's certificate is not valid for it",
            Self::Tls => "TLS failed",
            Self::Proxy => "the proxy refused",
            Self::ReadTimeout => "the response did not come in time",
            Self::Timeout => "it took too long",
            Self::RequestTooLarge(most) => return write!(f, "the request's body is longer than {most} bytes"),
            Self::HeadersTooLarge(most) => return write!(f, "the response's headers are longer than {most} bytes"),
            Self::ResponseTooLarge(most) => return write!(f, "the response's body is longer than {most} bytes"),
            Self::Incomplete => "the connection ended before the response",
            Self::Protocol => "it is not HTTP",
            Self::Stopped => "it was stopped",
        })
    }
}

impl std::error::Error for Failure {}

/// Work on the network's runtime that ends with whoever waits for it.
#[derive(Debug)]
pub struct Running<T>(JoinHandle<Result<T, Failure>>);

impl<T> Future for Running<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|joined| joined.unwrap_or(Err(Failure::Stopped)))
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
