//! The world around a guest that sends requests: servers on this machine, names that lead to them, an audit trail.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use guesthouse::audit::{Audit, Event, Sink};
use guesthouse::capability::http::{Http, SecretHeader};
use guesthouse::config::grants::Grants;
use guesthouse::guest::{CallLimits, Engines, Failure as CallFailure, Keeping, LoadError, Room, Settings, Version, load_bytes};
use guesthouse::network::{Failure, Network, Proxies, Resolve, Trust};
use guesthouse::policy::http::Patterns;
use guesthouse::policy::origin::Origin;
use guesthouse::telemetry::GuestFigures;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use wasm_encoder::{CustomSection, Encode as _, Section as _};

use crate::support::{cache, engines, outgoing, text};

/// Names and their addresses, and how often they were asked for. A name that is not there has none.
#[derive(Clone)]
pub struct Names {
    addresses: Arc<Mutex<HashMap<String, Vec<IpAddr>>>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// What becomes of names that are not there; `None`: nobody answers.
    otherwise: Arc<Mutex<Option<Failure>>>,
}

impl Default for Names {
    fn default() -> Self {
        Self { addresses: Arc::default(), asked: Arc::default(), otherwise: Arc::new(Mutex::new(Some(Failure::Unresolved))) }
    }
}

impl Names {
    /// How other names fail; `None`: nobody answers.
    pub fn otherwise(&self, failure: Option<Failure>) {
        *self.otherwise.lock().unwrap() = failure;
    }

    pub fn lead(&self, name: &str, to: &[&str]) {
        self.addresses.lock().unwrap().insert(name.into(), to.iter().map(|address| address.parse().unwrap()).collect());
    }

    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, Failure>> {
        self.asked.lock().unwrap().push(name.into());
        match (self.addresses.lock().unwrap().get(name).cloned(), *self.otherwise.lock().unwrap()) {
            (Some(found), _) => std::future::ready(Ok(found)).boxed(),
            (None, Some(failure)) => std::future::ready(Err(failure)).boxed(),
            (None, None) => std::future::pending().boxed(),
        }
    }
}

/// What the audit trail says.
#[derive(Default)]
pub struct Trail(Mutex<Vec<String>>);

impl Sink for Trail {
    fn record(&self, event: &Event<'_>) {
        let Event { what, guest, subject, value, .. } = event;
        self.0.lock().unwrap().push(format!("{what:?} {guest} {subject} {value}"));
    }
}

/// A guest and what it was granted.
pub struct Outside {
    pub engines: Engines,
    pub room: Option<Arc<Http>>,
    /// What is granted.
    pub patterns: Vec<String>,
    /// What the component declares, if it declares anything.
    pub declared: Option<Vec<&'static str>>,
    pub limits: CallLimits,
    pub keeping: Keeping,
    pub names: Names,
    pub trail: Arc<Trail>,
}

impl Outside {
    pub fn new(patterns: &[&str]) -> Self {
        Self::with(patterns, &[], CallLimits::default())
    }

    pub fn with(patterns: &[&str], secrets: &[(&str, &str, &str)], limits: CallLimits) -> Self {
        Self::through(patterns, secrets, limits, &[], trust())
    }

    /// The same with variables that name proxies, and with other authorities.
    pub fn through(
        patterns: &[&str],
        secrets: &[(&str, &str, &str)],
        limits: CallLimits,
        proxies: &[(&str, String)],
        trust: Trust,
    ) -> Self {
        let names = Names::default();
        let proxies = Proxies::read(|name| proxies.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone())).unwrap();
        let network = Network::new(Arc::new(names.clone()), trust, proxies, Handle::current());
        let secret = |(origin, header, value): &(&str, &str, &str)| {
            SecretHeader::new(Origin::parse(origin).unwrap(), SecretHeader::name_of(header).unwrap(), value).unwrap()
        };
        let secrets = secrets.iter().map(secret).collect();
        let limits = CallLimits { wall_ms: 20_000, ..limits };
        let room = Http::new(&network, Patterns::parse(patterns).unwrap(), secrets, &limits);
        let patterns = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Self {
            engines: engines().clone(),
            room: Some(Arc::new(room)),
            patterns,
            declared: None,
            limits,
            keeping: Keeping::default(),
            names,
            trail: Arc::default(),
        }
    }

    pub fn version(&self) -> Version {
        self.load().unwrap()
    }

    pub fn load(&self) -> Result<Version, LoadError> {
        let settings = Settings {
            name: "outgoing".into(),
            config_json: "{}".into(),
            limits: self.limits.clone(),
            keeping: self.keeping.clone(),
            commit_lock: Default::default(),
            grants: Grants { http: self.patterns.clone(), ..Grants::default() },
            room: Room { audit: Audit::to(self.trail.clone()), http: self.room.clone(), ..Room::default() },
            figures: GuestFigures::default(),
            cache: Some(cache()),
        };
        let mut bytes = outgoing().to_vec();
        if let Some(patterns) = &self.declared {
            let data = json!({ "format": 1, "name": "outgoing", "version": "1", "wants": { "http": patterns } }).to_string().into_bytes();
            let section = CustomSection { name: "guesthouse:manifest".into(), data: data.into() };
            bytes.push(section.id());
            section.encode(&mut bytes);
        }
        load_bytes(&self.engines, "outgoing.wasm", &bytes, settings)
    }

    /// What came of one request.
    pub async fn send(&self, ask: Value) -> Value {
        self.send_all(json!([ask])).await.remove(0)
    }

    /// What came of several requests of one call.
    pub async fn send_all(&self, asks: Value) -> Vec<Value> {
        self.call("send", json!({ "requests": asks })).await
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Vec<Value> {
        let outcome = self.version().call_tool(None, tool.into(), arguments.to_string()).await;
        serde_json::from_str(&text(outcome)).unwrap()
    }

    /// Why a call with this request failed as a whole.
    pub async fn failure(&self, ask: Value) -> CallFailure {
        let arguments = json!({ "requests": [ask] }).to_string();
        self.version().call_tool(None, "send".into(), arguments).await.unwrap_err()
    }

    /// What was noted of requests; what was noted when the guest was loaded is left out.
    pub fn audit(&self) -> Vec<String> {
        let noted = self.trail.0.lock().unwrap();
        noted.iter().filter(|line| !self.patterns.iter().any(|pattern| line.ends_with(&format!(" http {pattern}")))).cloned().collect()
    }
}

/// The authority that the tests' certificate is from, and those that everybody trusts.
pub fn trust() -> Trust {
    Trust::new(Vec::new(), &[include_bytes!("../tls/ca.pem").to_vec()]).unwrap()
}

/// A request as a server saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body_bytes: usize,
}

impl Seen {
    /// The value of a header; empty, if it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }
}

/// A server on this machine that does what the path says.
pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub async fn start() -> Self {
        Self::over(None).await
    }

    /// The same behind TLS.
    pub async fn over(tls: Option<tokio_rustls::TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let shared = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, tls) = (shared.clone(), tls.clone());
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer(request, seen.clone()));
                    let http = hyper::server::conn::http1::Builder::new();
                    match tls {
                        None => drop(http.serve_connection(TokioIo::new(stream), service).await),
                        Some(tls) => {
                            let Ok(stream) = tls.accept(stream).await else { return };
                            drop(http.serve_connection(TokioIo::new(stream), service).await);
                        }
                    }
                });
            }
        });
        Self { address, seen }
    }

    pub fn authority(&self) -> String {
        self.address.to_string()
    }

    /// A pattern for this server, with these methods.
    pub fn grant(&self, methods: &str) -> String {
        format!("{methods} http://{}", self.address).trim_start().to_owned()
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

async fn answer(request: Request<Incoming>, seen: Arc<Mutex<Vec<Seen>>>) -> Result<Answer, Infallible> {
    let (parts, body) = request.into_parts();
    let line = format!("{} {}", parts.method, parts.uri);
    let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect::<Vec<_>>();
    // Whoever sends too much ends the connection in the middle.
    let body_bytes = body.collect().await.map_or(usize::MAX, |body| body.to_bytes().len());
    let shown = format!("{line}\n{headers:?}");
    seen.lock().unwrap().push(Seen { line, headers, body_bytes });
    let query = parts.uri.query().unwrap_or_default();
    let response = Response::builder().header("x-server", "here");
    let full = |bytes: Vec<u8>| Full::new(Bytes::from(bytes)).boxed_unsync();
    Ok(match parts.uri.path() {
        "/redirect" => response.status(302).header("location", query).body(full(Vec::new())),
        "/big" => response.body(full(vec![b'x'; query.parse().unwrap()])),
        // Without a length that would give it away.
        "/endless" => response
            .body(StreamBody::new(futures_util::stream::repeat_with(|| Ok(Frame::data(Bytes::from_static(&[b'x'; 1024]))))).boxed_unsync()),
        "/headers" => response.header("x-long", "x".repeat(query.parse().unwrap())).body(full(Vec::new())),
        "/never" => std::future::pending().await,
        "/stalls" => {
            let begun = futures_util::stream::iter([Ok(Frame::data(Bytes::from_static(b"begun")))]);
            let rest = futures_util::stream::pending();
            response.body(StreamBody::new(futures_util::StreamExt::chain(begun, rest)).boxed_unsync())
        }
        _ => response.body(full(shown.into_bytes())),
    }
    .unwrap())
}
