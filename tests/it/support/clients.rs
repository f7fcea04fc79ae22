//! A client that speaks both eras over every transport, with nothing of the host's own code between it and the wire.

use super::schema::Schemas;
use super::{PROGRAM, component};
use bytes::Bytes;
use guesthouse::config::{Config, GuestConfig};
use guesthouse::host::{GuestSource, Host};
use guesthouse::transport::memory;
use guesthouse_protocol::Revision;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::http::request::Builder;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Http,
    Stdio,
    Memory,
}

/// What the client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Modern,
    Handshake,
}

/// One client of one guest.
pub struct Client {
    pub era: Era,
    revision: Revision,
    link: Link,
    last_id: i64,
    /// Every frame that arrives is held against the specification's schema of the client's revision.
    schemas: Schemas,
}

enum Link {
    Http { address: SocketAddr, path: String, session: Option<String>, _host: Option<Host> },
    Stdio { input: ChildStdin, output: Box<Lines<BufReader<ChildStdout>>>, _child: Box<Child>, _state: tempfile::TempDir },
    Memory { client: memory::Client, _host: Host },
}

/// A host with one guest, and the address that it serves HTTP at.
pub async fn serve(guests: Vec<GuestSource>, config: Config) -> (Host, SocketAddr) {
    let host = Host::start(config, guests).await.unwrap_or_else(|error| panic!("{error:#}"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = host.clone();
    tokio::spawn(async move { serving.serve_http(listener, std::future::pending()).await });
    (host, address)
}

/// The guest of this folder under its folder's name.
pub fn source(folder: &str) -> GuestSource {
    let name = folder.rsplit('/').next().unwrap().to_owned();
    GuestSource { name, file: component(folder), config: GuestConfig::default() }
}

impl Client {
    /// Connects to a host that serves the guest of this folder alone, in the newest revision of an era.
    pub async fn connect(transport: Transport, era: Era, folder: &str) -> Self {
        let revision = match era {
            Era::Modern => Revision::LATEST_MODERN,
            Era::Handshake => Revision::LATEST_HANDSHAKE,
        };
        Self::connect_as(transport, revision, folder).await
    }

    /// Connects over HTTP to a host that serves already.
    pub async fn connect_to(address: SocketAddr, era: Era, path: &str) -> Self {
        let revision = match era {
            Era::Modern => Revision::LATEST_MODERN,
            Era::Handshake => Revision::LATEST_HANDSHAKE,
        };
        let link = Link::Http { address, path: path.into(), session: None, _host: None };
        Self::over(link, era, revision).await
    }

    /// The same in any revision.
    pub async fn connect_as(transport: Transport, revision: Revision, folder: &str) -> Self {
        Self::connect_guest(transport, revision, source(folder)).await
    }

    /// The same to a host that serves this guest alone. Over stdio, what it is configured with is read beside its file.
    pub async fn connect_guest(transport: Transport, revision: Revision, guest: GuestSource) -> Self {
        let era = if revision.era() == guesthouse_protocol::Era::Modern { Era::Modern } else { Era::Handshake };
        let link = match transport {
            Transport::Http => {
                let path = format!("/mcp/{}", guest.name);
                let (host, address) = serve(vec![guest], crate::support::config()).await;
                Link::Http { address, path, session: None, _host: Some(host) }
            }
            Transport::Stdio => {
                let state = tempfile::tempdir().unwrap();
                let mut child = Command::new(PROGRAM)
                    .env("XDG_STATE_HOME", state.path())
                    .args(["--log", "off", "run"])
                    .arg(guest.file)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .kill_on_drop(true)
                    .spawn()
                    .unwrap();
                let output = Box::new(BufReader::new(child.stdout.take().unwrap()).lines());
                Link::Stdio { input: child.stdin.take().unwrap(), output, _child: Box::new(child), _state: state }
            }
            Transport::Memory => {
                let host = Host::start(crate::support::config(), vec![guest]).await.unwrap();
                Link::Memory { client: host.connect(None).unwrap(), _host: host }
            }
        };
        Self::over(link, era, revision).await
    }

    async fn over(link: Link, era: Era, revision: Revision) -> Self {
        let mut client = Self { era, revision, link, last_id: 0, schemas: Schemas::new() };
        if era == Era::Handshake {
            client.handshake(revision.as_str()).await;
        }
        client
    }

    async fn handshake(&mut self, version: &str) {
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let answer = self.send("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        match &mut self.link {
            Link::Http { address, path, session, .. } => {
                let (status, _, _) = post(*address, path, &headers(self.revision, session.as_deref(), &initialized), &initialized).await;
                assert_eq!(status, 202);
            }
            Link::Stdio { input, .. } => write_line(input, &initialized).await,
            Link::Memory { client, .. } => client.notify("notifications/initialized", json!({})).await.unwrap(),
        }
    }

    /// Sends a request in the client's era and waits for its response, whole; notifications before it are passed over.
    pub async fn request(&mut self, method: &str, mut params: Value) -> Value {
        if self.era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        self.send(method, params).await
    }

    /// Calls a tool.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Calls a tool without arguments, with more in `_meta`.
    pub async fn call_with_meta(&mut self, tool: &str, meta: Value) -> Value {
        let mut params = json!({ "name": tool, "_meta": meta });
        if self.era == Era::Modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        self.send("tools/call", params).await
    }

    async fn send(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        let session = (self.era == Era::Handshake).then_some(self.revision);
        self.schemas.sent(&message.to_string(), session);
        let (notifications, answer) = self.exchange(method, &message).await;
        let revision = session.unwrap_or(Revision::LATEST_MODERN);
        for message in &notifications {
            let asks = message.get("id").is_some();
            let problem = if asks { self.schemas.asked_problem(message) } else { self.schemas.notification_problem(message, revision) };
            assert_eq!(problem, None, "{message}");
        }
        assert_eq!(self.schemas.answer_problem(&answer), None, "{answer}");
        answer
    }

    /// Sends a message and takes what arrives up to its answer: notifications, and the answer itself.
    async fn exchange(&mut self, method: &str, message: &Value) -> (Vec<Value>, Value) {
        match &mut self.link {
            Link::Http { address, path, session, .. } => {
                let (_, answer_headers, body) = post(*address, path, &headers(self.revision, session.as_deref(), message), message).await;
                if let Some(id) = answer_headers.get("mcp-session-id") {
                    *session = Some(id.to_str().unwrap().to_owned());
                }
                let mut messages = messages(&body);
                let answer = messages.pop().expect("an answer");
                (messages, answer)
            }
            Link::Stdio { input, output, .. } => {
                write_line(input, message).await;
                let mut notifications = Vec::new();
                loop {
                    let line = output.next_line().await.unwrap().expect("the program ended");
                    let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
                    if answer["id"] == message["id"] {
                        return (notifications, answer);
                    }
                    notifications.push(answer);
                }
            }
            Link::Memory { client, .. } => {
                let Value::Object(params) = message["params"].clone() else { panic!("parameters are an object") };
                let mut answer = client.request_as_is(method, params).await.unwrap();
                answer["id"] = message["id"].clone();
                (Vec::new(), answer)
            }
        }
    }
}

async fn write_line(input: &mut ChildStdin, message: &Value) {
    input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    input.flush().await.unwrap();
}

/// The headers that a well-behaved client sends.
pub fn headers(revision: Revision, session: Option<&str>, message: &Value) -> Vec<(String, String)> {
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("accept".to_owned(), "application/json, text/event-stream".to_owned()),
    ];
    let modern = revision == Revision::LATEST_MODERN;
    // The header exists since 2025-06-18, and means something once a session has a version.
    if modern || (session.is_some() && revision >= Revision::V2025_06_18) {
        headers.push(("mcp-protocol-version".into(), revision.as_str().into()));
    }
    if let Some(session) = session {
        headers.push(("mcp-session-id".into(), session.into()));
    }
    if modern {
        headers.push(("mcp-method".into(), message["method"].as_str().unwrap_or_default().into()));
        let params = &message["params"];
        if let Some(name) = ["name", "uri", "taskId"].iter().find_map(|key| params[*key].as_str()) {
            headers.push(("mcp-name".into(), name.into()));
        }
    }
    headers
}

/// One POST on a connection of its own.
pub async fn post(address: SocketAddr, path: &str, headers: &[(String, String)], message: &Value) -> (u16, HeaderMap, Bytes) {
    exchange(address, Request::post(path), headers, Bytes::from(message.to_string())).await
}

/// One DELETE on a connection of its own.
pub async fn delete(address: SocketAddr, path: &str, headers: &[(String, String)]) -> u16 {
    exchange(address, Request::delete(path), headers, Bytes::new()).await.0
}

async fn exchange(address: SocketAddr, request: Builder, headers: &[(String, String)], body: Bytes) -> (u16, HeaderMap, Bytes) {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = request.header("host", address.to_string());
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let response = sender.send_request(request.body(Full::new(body)).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    (parts.status.as_u16(), parts.headers, body.collect().await.unwrap().to_bytes())
}

/// The messages of an answer: one, or those of a stream.
pub fn messages(body: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(body).unwrap();
    let parse = |json: &str| serde_json::from_str(json).unwrap_or_else(|error| panic!("{text}: {error}"));
    let events: Vec<Value> =
        text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty()).map(parse).collect();
    if events.is_empty() { vec![parse(text)] } else { events }
}

/// The only message of a JSON answer, or the last one of a stream.
pub fn last_message(body: &[u8]) -> Value {
    messages(body).pop().expect("a message")
}
