//! `wasi:http` 0.2, outgoing: what a guest may send and where, with the headers that the host adds on the way.
//!
//! The types of the interface are linked for every guest. Without a grant each request fails as denied.

mod secret;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wasmtime::component::Linker;
use wasmtime_wasi_http::{DEFAULT_FORBIDDEN_HEADERS, Error, RequestOptions, WasiBody, WasiHttpHooks};

use crate::audit::{Audit, Event, What};
use crate::guest::{CallLimits, State};
use crate::network::{ADDRESSES_MAX, Bounds, Exchange, Failure, Network};
use crate::policy::http::{Allowed, Ask, Patterns};
use crate::policy::origin::Origin;

pub use secret::SecretHeader;

/// Longest path with query of a request.
const PATH_BYTES_MAX: usize = 16 << 10;
/// How much of a request's body a guest may hand over at once.
const BODY_CHUNK_BYTES_MAX: usize = 64 << 10;
/// Longest text about a request in the audit trail.
const AUDIT_BYTES_MAX: usize = 1_000;

/// What one guest was granted: where its requests may go, and what is added to them.
#[derive(Debug)]
pub struct Http {
    network: Network,
    patterns: Patterns,
    /// What the component declares; absent where it declares nothing. A request has to be allowed by both.
    declared: Option<Patterns>,
    secrets: Arc<[SecretHeader]>,
    /// One for each request under way, of all calls together.
    permits: Arc<Semaphore>,
}

impl Http {
    /// Grants what the patterns allow.
    pub fn new(network: &Network, patterns: Patterns, secrets: Vec<SecretHeader>, limits: &CallLimits) -> Self {
        let permits = Arc::new(Semaphore::new(limits.requests_at_once.min(Semaphore::MAX_PERMITS)));
        Self { network: network.apart(), patterns, declared: None, secrets: secrets.into(), permits }
    }

    /// The same for a component that declares this.
    pub(crate) fn within(&self, declared: Option<Patterns>) -> Self {
        let Self { network, patterns, secrets, permits, .. } = self;
        Self { network: network.clone(), patterns: patterns.clone(), declared, secrets: secrets.clone(), permits: permits.clone() }
    }

    /// How a request is allowed; an error says why it is not.
    fn allows(&self, ask: &Ask) -> Result<Allowed, &'static str> {
        let allowed = self.patterns.allows(ask).ok_or("no grant allows it")?;
        let declared = self.declared.as_ref().is_none_or(|declared| declared.allows(ask).is_some());
        if declared { Ok(allowed) } else { Err("the component does not declare it") }
    }

    fn secrets_for<'a>(&'a self, origin: &'a Origin) -> impl Iterator<Item = &'a SecretHeader> {
        self.secrets.iter().filter(move |secret| secret.origin() == origin)
    }
}

/// Whether a header is the host's business, in requests and in responses.
pub fn is_forbidden(name: &http::HeaderName) -> bool {
    DEFAULT_FORBIDDEN_HEADERS.contains(name)
}

/// The requests of one store.
pub(crate) struct Outgoing {
    http: Option<Arc<Http>>,
    limits: CallLimits,
    notes: Notes,
    /// Requests that the running call may still try to send. Those that are refused count, since each leaves a note.
    left: u32,
    /// Whether it was noted that there are none left.
    noted_end: bool,
    went_out: bool,
    /// Cancelled at the end of the running call.
    ended: CancellationToken,
}

impl Outgoing {
    pub(crate) fn new(guest: &str, http: Option<&Arc<Http>>, audit: &Audit, limits: &CallLimits) -> Outgoing {
        let notes = Notes { guest: guest.into(), principal: None, audit: audit.clone() };
        let (http, limits, left) = (http.cloned(), limits.clone(), limits.requests);
        Outgoing { http, limits, notes, left, noted_end: false, went_out: false, ended: CancellationToken::new() }
    }

    /// Says for whom the guest works now.
    pub(crate) fn set_principal(&mut self, principal: Option<Arc<str>>) {
        self.notes.principal = principal;
    }

    /// The call is over, and so are its requests, whatever the guest still holds of them; another one in the same store has
    /// requests of its own.
    pub(crate) fn end_call(&mut self) {
        std::mem::take(&mut self.ended).cancel();
        self.left = self.limits.requests;
        self.noted_end = false;
        self.went_out = false;
    }

    /// Whether the running call has begun a request, which it must not do twice.
    pub(crate) fn went_out(&self) -> bool {
        self.went_out
    }

    /// Checks a request and begins it.
    fn begin(&mut self, request: http::Request<WasiBody>, options: Option<RequestOptions>) -> Result<Begun, Error> {
        let seen = Seen::of(&request);
        let refuse = |notes: &Notes, why: &str, error: Error| {
            notes.record(What::Refused, &seen.because(why));
            Err(error)
        };
        let Some(left) = self.left.checked_sub(1) else {
            let why = format!("more than {} requests in one call", self.limits.requests);
            let noted = std::mem::replace(&mut self.noted_end, true);
            return if noted { Err(Error::ConnectionLimitReached) } else { refuse(&self.notes, &why, Error::ConnectionLimitReached) };
        };
        self.left = left;
        let Some(http) = self.http.clone().filter(|http| !http.patterns.is_empty()) else {
            return refuse(&self.notes, "nothing is granted", Error::HttpRequestDenied);
        };
        let ask = match seen.ask() {
            Ok(ask) => ask,
            Err(why) => return refuse(&self.notes, &why, Error::HttpRequestDenied),
        };
        let allowed = match http.allows(&ask) {
            Ok(allowed) => allowed,
            Err(why) => return refuse(&self.notes, why, Error::HttpRequestDenied),
        };
        if http.secrets_for(&ask.origin).any(|secret| request.headers().contains_key(secret.name())) {
            return refuse(&self.notes, "it sets a header that the host adds", Error::HttpRequestDenied);
        }
        if seen.path.len() > PATH_BYTES_MAX {
            return Err(Error::HttpRequestUriTooLong);
        }
        let length = request.headers().get(http::header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > self.limits.request_bytes as u64) {
            return Err(Error::HttpRequestBodySize(length));
        }
        let Ok(request) = dress(request, &http, &ask.origin) else { return Err(Error::HttpRequestUriInvalid) };
        self.went_out = true;
        self.notes.record(What::Granted, &format!("{} {}", request.method(), ask.origin));
        Ok(self.send(http, ask, allowed, request, seen, options))
    }

    fn send(
        &self,
        http: Arc<Http>,
        ask: Ask,
        allowed: Allowed,
        request: http::Request<WasiBody>,
        seen: Seen,
        options: Option<RequestOptions>,
    ) -> Begun {
        let bounds = bounds(&self.limits, options);
        let (origin, notes, granted) = (ask.origin.clone(), self.notes.clone(), Arc::clone(&http));
        let check = Arc::new(move |addresses: &[IpAddr]| {
            let refuse = |why: &str, failure| {
                notes.record(What::Refused, &seen.because(why));
                Err(failure)
            };
            if addresses.len() > ADDRESSES_MAX {
                return refuse(&format!("it leads to more than {ADDRESSES_MAX} addresses"), Failure::TooManyAddresses);
            }
            let refused =
                addresses.iter().find_map(|address| granted.patterns.allows_address(&ask, *address).err().map(|what| (address, what)));
            refused.map_or(Ok(()), |(address, what)| refuse(&format!("{address} is {what}, and not granted"), Failure::Prohibited))
        });
        let (unresolved, permits) = (allowed == Allowed::Exactly, Arc::clone(&http.permits));
        http.network.send(Exchange { request, origin, check, unresolved, bounds, permits, ended: self.ended.clone() })
    }
}

/// A request on its way.
type Begun = crate::network::Running<http::Response<crate::network::Body>>;

/// The request as the server is to see it: with a path instead of a URL, and with the secrets of its origin.
fn dress(mut request: http::Request<WasiBody>, http: &Http, origin: &Origin) -> Result<http::Request<WasiBody>, http::Error> {
    let uri = request.uri();
    let path = match uri.query() {
        Some(query) => format!("{}?{query}", uri.path()),
        None => uri.path().to_owned(),
    };
    *request.uri_mut() = http::Uri::builder().path_and_query(path).build()?;
    for secret in http.secrets_for(origin) {
        request.headers_mut().insert(secret.name(), secret.value());
    }
    Ok(request)
}

/// What may be used, the guest's own wishes included, which can only be for less.
fn bounds(limits: &CallLimits, options: Option<RequestOptions>) -> Bounds {
    let options = options.unwrap_or_default();
    let total = Duration::from_millis(limits.request_wall_ms);
    let less = |wish: Option<Duration>, most: Duration| wish.map_or(most, |wish| wish.min(most));
    Bounds {
        resolve: Duration::from_millis(limits.request_connect_ms),
        connect: less(options.connect_timeout, Duration::from_millis(limits.request_connect_ms)),
        first_byte: less(options.first_byte_timeout, total),
        between_bytes: less(options.between_bytes_timeout, total),
        total,
        header_bytes: limits.response_header_bytes,
        request_bytes: limits.request_bytes as u64,
        response_bytes: limits.response_bytes as u64,
    }
}

/// What a request says of where it goes. Never its query, its headers or its body, which are nobody's business.
struct Seen {
    method: String,
    scheme: String,
    authority: String,
    path: String,
}

impl Seen {
    fn of(request: &http::Request<WasiBody>) -> Seen {
        let uri = request.uri();
        Seen {
            method: request.method().to_string(),
            scheme: uri.scheme_str().unwrap_or_default().to_owned(),
            authority: uri.authority().map(ToString::to_string).unwrap_or_default(),
            path: uri.path().to_owned(),
        }
    }

    fn ask(&self) -> Result<Ask, String> {
        Ask::new(&self.method, &self.scheme, &self.authority, &self.path)
    }

    /// A line of the audit trail. A user in front of the host is left out: it may come with a password.
    fn because(&self, why: &str) -> String {
        let host = self.authority.rsplit('@').next().unwrap_or_default();
        let Seen { method, scheme, path, .. } = self;
        crate::guest::clean(&format!("{method} {scheme}://{host}{path} ({why})"), AUDIT_BYTES_MAX)
    }
}

/// The audit trail of one guest's requests.
#[derive(Clone)]
struct Notes {
    guest: Arc<str>,
    principal: Option<Arc<str>>,
    audit: Audit,
}

impl Notes {
    fn record(&self, what: What, value: &str) {
        self.audit.record(&Event { what, guest: &self.guest, subject: "http", value, principal: self.principal.as_deref() });
    }
}

impl WasiHttpHooks for Outgoing {
    fn is_supported_scheme(&mut self, _scheme: &http::uri::Scheme) -> bool {
        // Others are refused like everything that is not granted.
        true
    }

    fn set_host_header(&mut self) -> bool {
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_CHUNK_BYTES_MAX
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _processed: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<(http::Response<WasiBody>, Worker), Error>> + Send> {
        let begun = self.begin(request, options);
        Box::new(async move {
            let response = begun?.await.map_err(error)?;
            // The connection is kept by the body, so there is no work left to be waited for.
            Ok((response.map(|body| body.map_err(error).boxed_unsync()), Box::new(std::future::ready(Ok(()))) as Worker))
        })
    }
}

/// What goes on behind a response.
type Worker = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// What a guest is told.
fn error(failure: Failure) -> Error {
    match failure {
        Failure::ResolveTimeout => Error::DnsTimeout,
        Failure::Unresolved | Failure::ResolveFailed => Error::DnsError { rcode: None, info_code: None },
        Failure::TooManyAddresses | Failure::Prohibited => Error::DestinationIpProhibited,
        Failure::Refused => Error::ConnectionRefused,
        Failure::ConnectTimeout => Error::ConnectionTimeout,
        Failure::Certificate => Error::TlsCertificateError,
        Failure::Tls => Error::TlsProtocolError,
        Failure::Proxy => Error::DestinationUnavailable,
        Failure::ReadTimeout => Error::ConnectionReadTimeout,
        Failure::Timeout => Error::HttpResponseTimeout,
        Failure::RequestTooLarge(bytes) => Error::HttpRequestBodySize(Some(bytes)),
        Failure::HeadersTooLarge(bytes) => Error::HttpResponseHeaderSectionSize(u32::try_from(bytes).ok()),
        Failure::ResponseTooLarge(bytes) => Error::HttpResponseBodySize(Some(bytes)),
        Failure::Incomplete => Error::HttpResponseIncomplete,
        Failure::Protocol => Error::HttpProtocolError,
        Failure::Stopped => Error::ConnectionTerminated,
    }
}

/// Links the interface for every guest.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)
}
