//! A service without guests, for the transports' own tests: tools that answer, wait, report and fail on demand.

use super::Service;
use crate::auth::{Authenticator, authenticator};
use crate::changes::{Hub, HubLimits, Listener, Lists, Watched};
use crate::config::{Config, Mode};
use crate::dispatch::{FrameSender, Line, pass_on};
use crate::identity::{self, Presence};
use crate::principals::Requests;
use crate::registry::Endpoint;
use crate::telemetry::Telemetry;
use ::http::HeaderMap;
use guesthouse_protocol::Identity;
use guesthouse_protocol::http::{HttpRefusal, ParamHeaders};
use guesthouse_protocol::model::InputRequired;
use guesthouse_protocol::model::questions::Asked;
use guesthouse_protocol::model::{
    CallToolResult, Capabilities, Content, Implementation, LogLevel, Profile, Question, Reply, Request, Rounds, ToolPage,
};
use guesthouse_protocol::{
    Call, Failure, NotFound, Outcome, ParseLimits, PeerConfig, PeerLimits, Reporter, RpcError, Subscription, TransportKind,
};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// Arguments of the tool `region` are repeated in a header.
const REGION_SCHEMA: &str = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;

/// Nothing here takes long; a test that hangs should say where.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// The service. `/mcp` and `/mcp/one` are served.
pub(super) struct Fake {
    telemetry: Telemetry,
    config: Config,
    requests: Requests,
    auth: Option<Box<dyn Authenticator>>,
    hub: Arc<Hub>,
    /// Each permit lets the tool `wait` end, or `report` go on after a report.
    pub(super) release: Semaphore,
    /// Calls that have begun, and calls that were dropped before their end.
    pub(super) begun: watch::Sender<usize>,
    pub(super) stopped: watch::Sender<usize>,
    /// Reports whose sending has returned.
    pub(super) reported: watch::Sender<usize>,
}

impl Fake {
    pub(super) fn new(config: Config) -> Arc<Self> {
        Arc::new(Self {
            telemetry: Telemetry::default(),
            requests: Requests::of(&config),
            auth: authenticator(&config.auth),
            hub: Hub::new(HubLimits::of(&config.streams)),
            config,
            release: Semaphore::new(0),
            begun: watch::Sender::new(0),
            stopped: watch::Sender::new(0),
            reported: watch::Sender::new(0),
        })
    }

    async fn tool(&self, name: &str, arguments: &str, mut reporter: Reporter, frames: Option<FrameSender>) -> Outcome {
        match name {
            "echo" | "region" => Ok(text(arguments)),
            "wait" => {
                self.released().await;
                Ok(text("waited"))
            }
            "report" => {
                for step in 1..=2_u8 {
                    if let (Ok(message), Some(frames)) = (reporter.progress(step.into(), None, None), &frames) {
                        let _ = frames.deliver(message).await;
                        self.reported.send_modify(|count| *count += 1);
                    }
                    self.released().await;
                }
                Ok(text("reported"))
            }
            "log" => {
                let message = reporter.log(LogLevel::Warning, None, RawValue::TRUE);
                if let (Some(message), Some(frames)) = (message, &frames) {
                    let _ = frames.deliver(message).await;
                }
                Ok(text("logged"))
            }
            "large" => Ok(text(&"x".repeat(8 << 20))),
            "panic" => panic!("the tool `panic` was called"),
            _ => Err(Failure::NotFound { kind: NotFound::Tool, name: name.into() }),
        }
    }

    async fn released(&self) {
        self.release.acquire().await.unwrap().forget();
    }
}

impl Service for Fake {
    fn config(&self) -> &Config {
        &self.config
    }

    fn identify(&self, headers: &HeaderMap, local: bool) -> Result<Identity, HttpRefusal> {
        self.auth.as_ref().map_or_else(|| Ok(identity::unproven(local)), |auth| auth.identify(headers).map_err(HttpRefusal::from))
    }

    fn presence(&self, _caller: &Identity) -> Presence {
        Presence::default()
    }

    fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn peer_config(&self, endpoint: &Endpoint, kind: TransportKind) -> Option<Arc<PeerConfig>> {
        if *endpoint != Endpoint::Merged && *endpoint != Endpoint::Guest("one".into()) {
            return None;
        }
        let mode = match self.config.server.mode {
            Mode::Modern => guesthouse_protocol::Mode::Modern,
            Mode::Handshake => guesthouse_protocol::Mode::Handshake,
            Mode::Both => guesthouse_protocol::Mode::Both,
        };
        let limits = &self.config.limits;
        let parse = ParseLimits {
            message_bytes_max: limits.message.0.try_into().unwrap(),
            depth_max: limits.depth,
            batch_len_max: limits.batch,
            ..ParseLimits::default()
        };
        let limits = PeerLimits {
            parse,
            request_ids_max: limits.request_ids,
            in_flight_max: limits.requests_per_peer,
            question_time_ms: limits.question_time.0,
            ..PeerLimits::default()
        };
        Some(Arc::new(PeerConfig { limits, ..PeerConfig::new(mode, kind, None) }))
    }

    fn check_param_headers(
        &self,
        _endpoint: &Endpoint,
        tool: &str,
        headers: &HeaderMap,
        arguments: Option<&RawValue>,
    ) -> Result<(), RpcError> {
        if tool != "region" {
            return Ok(());
        }
        let schema: &RawValue = serde_json::from_str(REGION_SCHEMA).unwrap();
        ParamHeaders::of_schema(schema).unwrap().check(headers, arguments)
    }

    fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    async fn run(&self, endpoint: &Endpoint, call: Call, line: Line) -> Outcome {
        self.begun.send_modify(|count| *count += 1);
        let mut guard = Running { fake: self, ended: false };
        let outcome = match call.request {
            Request::Initialize(_) | Request::Discover => Ok(Reply::Profile(Box::new(profile()))),
            Request::ListTools { .. } => Ok(Reply::Tools(ToolPage::default())),
            Request::CallTool { name, .. } if name == "who" => Ok(text(call.context.identity.principal.as_deref().unwrap_or("nobody"))),
            Request::CallTool { name, .. } if name == "ask" => Ok(ask(&call.context.rounds)),
            Request::CallTool { name, arguments } => {
                let arguments = arguments.as_deref().map_or("{}", RawValue::get);
                self.tool(&name, arguments, call.reporter, line.frames).await
            }
            Request::Subscribe { uri } => watch(line.session.as_deref().unwrap(), &uri),
            Request::Unsubscribe { uri } => {
                line.session.unwrap().unwatch(&uri);
                Ok(Reply::Empty)
            }
            Request::Listen(wanted) => {
                let lists = Lists { tools: wanted.tools, prompts: wanted.prompts, resources: wanted.resources };
                match self.hub.subscription(endpoint.clone(), lists) {
                    Some(listener) => {
                        wanted.uris.iter().for_each(|uri| drop(watch(&listener, uri)));
                        let (time, frames) = (self.config.streams.listen_time.duration(), line.frames.unwrap());
                        pass_on(&listener, &wanted, &Subscription::of(&call.context), &frames, &line.stopping, time).await
                    }
                    None => Err(Failure::Busy { retry_after_s: 1 }),
                }
            }
            _ => Err(Failure::MethodNotFound),
        };
        guard.ended = true;
        outcome
    }
}

/// Everything is a resource of the guest `one`.
fn watch(listener: &Listener, uri: &str) -> Outcome {
    listener.watch(Watched { guest: "one".into(), uri: uri.into() }).map_err(|_| Failure::InvalidParams("too many".into()))?;
    Ok(Reply::Empty)
}

/// Asks for a name, and says what came of it.
fn ask(rounds: &Rounds) -> Reply {
    match rounds.answer("name") {
        Some(Ok(answer)) => text(answer.get()),
        Some(Err(error)) => text(&error.message),
        None => {
            let params = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}"#;
            let question = Question::Elicit(RawValue::from_string(params.into()).unwrap());
            let questions = vec![Asked { key: "name".into(), question }];
            Reply::InputRequired(Box::new(InputRequired { questions, ..InputRequired::default() }))
        }
    }
}

/// Counts a call as stopped if it is dropped before its end.
struct Running<'a> {
    fake: &'a Fake,
    ended: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.fake.stopped.send_modify(|count| *count += 1);
        }
    }
}

/// Waits until a counter has that value.
pub(super) async fn reaches(counter: &watch::Sender<usize>, value: usize) {
    let mut counter = counter.subscribe();
    let reached = tokio::time::timeout(PATIENCE, counter.wait_for(|count| *count >= value)).await;
    assert!(reached.is_ok(), "the count stays below {value}");
}

fn text(text: &str) -> Reply {
    Reply::Tool(CallToolResult { content: vec![Content::text(text)], ..CallToolResult::default() })
}

fn profile() -> Profile {
    let capabilities = Capabilities {
        tools: true,
        prompts: true,
        resources: true,
        subscribe: true,
        list_changed: true,
        logging: true,
        ..Capabilities::default()
    };
    let server_info = Implementation { name: "fake".into(), version: "1".into(), ..Implementation::default() };
    Profile { server_info, capabilities, ..Profile::default() }
}

/// The `_meta` of a modern request, with more members in front of it.
pub(super) fn meta(more: &str) -> String {
    format!(
        r#""_meta":{{{more}"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"test","version":"1"}}}}"#
    )
}

/// A modern call of a tool.
pub(super) fn call(id: u32, tool: &str, more_meta: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}},{}}}}}"#, meta(more_meta))
}
