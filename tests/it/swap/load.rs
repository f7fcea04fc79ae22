//! Swaps under load: over both transports and in both eras, with subscriptions, a task and questions in flight. No call fails, is
//! lost or is carried out twice.
//!
//! `SWAPS` and `SWAP_MS` say how many swaps there are and how far apart they begin; `just swaps` makes 200 in a minute, and prints how
//! long calls took meanwhile.

use super::{PATIENCE, STATE, config, hears, listener, other_build};
use crate::support::clients::{headers, last_message, post, serve};
use crate::support::component;
use guesthouse::config::{Config, GuestConfig};
use guesthouse::host::{GuestSource, Host};
use guesthouse::swap::Component;
use guesthouse::transport::memory::{Client, Messages};
use guesthouse_protocol::Revision;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;

const PATH: &str = "/mcp";
/// Calls that answer before the first swap and between two.
const CALLS_BETWEEN: usize = 16;

/// What the callers have in common.
struct Load {
    stop: AtomicBool,
    answered: AtomicUsize,
    /// Calls that were told that they counted.
    counted: AtomicU64,
    swapping: AtomicBool,
    /// How long calls took before the first swap, and since.
    took: [Mutex<Vec<Duration>>; 2],
}

impl Load {
    /// Calls again and again, and counts what succeeded.
    async fn run(self: Arc<Self>, caller: Caller) {
        while !self.stop.load(Ordering::Relaxed) {
            let (began, phase) = (Instant::now(), usize::from(self.swapping.load(Ordering::Relaxed)));
            let answer = timeout(PATIENCE, caller.count()).await.expect("a call is lost");
            assert!(answer["result"]["content"][0]["text"].is_string(), "{} failed: {answer}", caller.name());
            self.took[phase].lock().unwrap().push(began.elapsed());
            self.counted.fetch_add(1, Ordering::SeqCst);
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn more(&self) {
        let wanted = self.answered.load(Ordering::Relaxed) + CALLS_BETWEEN;
        let more = async {
            while self.answered.load(Ordering::Relaxed) < wanted {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, more).await.expect("calls stand still");
    }

    /// The time within which 99 of a hundred calls were answered.
    fn p99(&self, phase: usize) -> Duration {
        let mut took = self.took[phase].lock().unwrap();
        took.sort_unstable();
        took[took.len() * 99 / 100]
    }
}

/// One who counts, each in a way of its own.
enum Caller {
    Modern(Client),
    Session(Client),
    /// Is asked something in the middle of each call, and answers.
    ModernAsked(Client),
    SessionAsked(Client),
    Http(SocketAddr),
    HttpSession(SocketAddr, Vec<(String, String)>),
}

fn params(end: &str) -> Value {
    json!({ "name": "run", "arguments": { "steps": [{ "bucket": "guest", "do": "count", "key": "n" }], "end": end } })
}

fn meta() -> Value {
    json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "roots": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } } })
}

impl Caller {
    fn name(&self) -> &'static str {
        match self {
            Caller::Modern(_) => "a modern call",
            Caller::Session(_) => "a call of a session",
            Caller::ModernAsked(_) => "a modern call with a question",
            Caller::SessionAsked(_) => "a call of a session with a question",
            Caller::Http(_) => "a modern call over HTTP",
            Caller::HttpSession(..) => "a call of a session over HTTP",
        }
    }

    async fn count(&self) -> Value {
        match self {
            Caller::Modern(client) => client.request("tools/call", params("ok")).await.unwrap(),
            Caller::Session(client) => as_is(client, "tools/call", params("ok")).await,
            Caller::ModernAsked(client) => {
                let mut params = params("ask");
                params["_meta"] = meta();
                let asked = client.request("tools/call", params.clone()).await.unwrap();
                assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
                params["requestState"] = asked["result"]["requestState"].clone();
                params["inputResponses"] = json!({ "roots": { "roots": [] } });
                client.request("tools/call", params).await.unwrap()
            }
            Caller::SessionAsked(client) => as_is(client, "tools/call", params("ask")).await,
            Caller::Http(address) => {
                let mut params = params("ok");
                params["_meta"] = meta();
                let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
                last_message(&post(*address, PATH, &headers(Revision::LATEST_MODERN, None, &message), &message).await.2)
            }
            Caller::HttpSession(address, headers) => {
                // An id is used once in a session.
                static IDS: AtomicU64 = AtomicU64::new(1);
                let id = IDS.fetch_add(1, Ordering::Relaxed);
                let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params("ok") });
                last_message(&post(*address, PATH, headers, &message).await.2)
            }
        }
    }
}

async fn as_is(client: &Client, method: &str, params: Value) -> Value {
    let Value::Object(params) = params else { panic!("parameters are an object") };
    client.request_as_is(method, params).await.unwrap()
}

fn initialize() -> Value {
    json!({ "protocolVersion": "2025-11-25", "capabilities": { "roots": {} }, "clientInfo": { "name": "test", "version": "1" } })
}

async fn session(host: &Host) -> Client {
    let client = host.connect(None).unwrap();
    client.answer_with(|_, _| Ok(json!({ "roots": [] })));
    as_is(&client, "initialize", initialize()).await;
    client.notify("notifications/initialized", json!({})).await.unwrap();
    client
}

async fn http_session(address: SocketAddr) -> Caller {
    let revision = Revision::LATEST_HANDSHAKE;
    let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize() });
    let (_, answered, _) = post(address, PATH, &headers(revision, None, &message), &message).await;
    let id = answered["mcp-session-id"].to_str().unwrap().to_owned();
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let headers = headers(revision, Some(&id), &initialized);
    assert_eq!(post(address, PATH, &headers, &initialized).await.0, 202);
    Caller::HttpSession(address, headers)
}

async fn start(folder: &Path) -> (Host, SocketAddr) {
    let file = folder.join("state.wasm");
    std::fs::copy(component(STATE), &file).unwrap();
    // The task computes for as long as all of this takes.
    let guest: GuestConfig = toml::from_str("grants = { state = true }\nlimits = { cpu = \"10m\" }").unwrap();
    serve(vec![GuestSource { name: "state".into(), file, config: guest }], Config { ..config(folder) }).await
}

async fn callers(host: &Host, address: SocketAddr) -> Vec<Caller> {
    let modern = || host.connect(None).unwrap();
    vec![
        Caller::Modern(modern()),
        Caller::Session(session(host).await),
        Caller::ModernAsked(modern()),
        Caller::SessionAsked(session(host).await),
        Caller::Http(address),
        http_session(address).await,
    ]
}

/// A task that ends when it is told to.
async fn task(client: &Client) -> String {
    let started = client.request("tools/call", json!({ "name": "wait", "arguments": {}, "_meta": meta() })).await.unwrap();
    started["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
}

async fn ended(client: &Client, task: &str) -> Value {
    let ended = async {
        loop {
            let now = client.request("tasks/get", json!({ "taskId": task, "_meta": meta() })).await.unwrap();
            if now["result"]["status"] != "working" {
                return now;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, ended).await.expect("the task does not end")
}

#[expect(clippy::disallowed_methods, reason = "how long the load lasts is for whoever runs it to say")]
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_is_lost_or_is_carried_out_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (host, address) = start(folder.path()).await;
    let builds: Vec<_> = (0..3).map(|note| other_build(folder.path(), STATE, note)).collect();
    let load = Arc::new(Load {
        stop: AtomicBool::new(false),
        answered: AtomicUsize::new(0),
        counted: AtomicU64::new(0),
        swapping: AtomicBool::new(false),
        took: [Mutex::default(), Mutex::default()],
    });
    let mut running = JoinSet::new();
    for caller in callers(&host, address).await {
        running.spawn(load.clone().run(caller));
    }
    let (listening, mut messages) = listener(&host).await;
    let task = task(&listening).await;
    load.more().await;
    let swaps = number("SWAPS", 16);
    let apart = Duration::from_millis(number("SWAP_MS", 0));
    // Without this many, a percentile says nothing.
    while apart > Duration::ZERO && load.answered.load(Ordering::Relaxed) < 2_000 {
        load.more().await;
    }
    load.swapping.store(true, Ordering::Relaxed);
    for swap in 0..swaps {
        let next = tokio::time::Instant::now() + apart;
        let build = builds[usize::try_from(swap).unwrap() % builds.len()].clone();
        host.swap("state", Component::File(build)).await.unwrap_or_else(|error| panic!("{error:#}"));
        load.more().await;
        tokio::time::sleep_until(next).await;
    }
    load.stop.store(true, Ordering::Relaxed);
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    let counted = load.counted.load(Ordering::SeqCst);
    report(&format!("{swaps} swaps, {counted} calls; p99 {:?} before, {:?} while versions came and went", load.p99(0), load.p99(1)));

    let get = json!({ "name": "run", "arguments": { "steps": [
        { "bucket": "guest", "do": "get", "key": "n" }, { "bucket": "guest", "do": "set", "key": "ready", "value": "yes" }] } });
    let answer = listening.request("tools/call", get).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], json!([counted.to_string(), null]).to_string());
    let done = ended(&host.connect(None).unwrap(), &task).await;
    assert_eq!(done["result"]["status"], "completed", "{done}");
    let status = host.status();
    assert_eq!(status["guests"][0]["calls"].as_object().unwrap().keys().collect::<Vec<_>>(), ["ok"], "{status}");
    only_the_last_changes_a_list(&host, &mut messages).await;
}

#[expect(clippy::print_stdout, reason = "shown to whoever runs it with --nocapture")]
fn report(line: &str) {
    println!("{line}");
}

/// The versions until now had the same lists, so that the first change that is heard of is the one that is made here.
async fn only_the_last_changes_a_list(host: &Host, messages: &mut Messages) {
    let swapped = host.swap("state", Component::File(component(super::KEEPER))).await.unwrap();
    assert!(!swapped.differences.is_empty());
    assert_eq!(hears(messages).await, "notifications/tools/list_changed");
    host.remove("state").await.unwrap();
    assert_eq!(hears(messages).await, "notifications/tools/list_changed");
}
