//! Instances that outlive a call, seen by clients: whose memory they find, over every transport and in both eras.

use crate::support::clients::{delete, headers, last_message, post, serve, source};
use crate::support::{Client, Transport};
use guesthouse::config::Config;
use guesthouse::config::grants::InstancePolicy;
use guesthouse::config::storage::{Kind, StorageConfig};
use guesthouse::host::{GuestSource, Host};
use guesthouse::transport::memory;
use guesthouse_protocol::Revision;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const KEEPER: &str = "tests/guests/keeper";
const PATH: &str = "/mcp/keeper";
const PATIENCE: Duration = Duration::from_secs(30);

/// The guest that counts in its memory.
fn keeper(policy: InstancePolicy) -> GuestSource {
    let mut guest = source(KEEPER);
    guest.config.instance = policy;
    guest
}

fn counted(answer: &Value) -> u64 {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    text.parse().unwrap()
}

fn kept(host: &Host) -> usize {
    let mut kept = 0;
    host.each_guest(|guest| kept += guest.version.instances_kept());
    kept
}

async fn eventually(wanted: impl Fn() -> bool) {
    let start = Instant::now();
    while !wanted() {
        assert!(start.elapsed() < PATIENCE, "waited too long");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_session_or_everybody_finds_the_memory_that_is_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keeper.wasm");
    for (policy, revision, expected) in [
        (InstancePolicy::Call, Revision::LATEST_HANDSHAKE, [1, 1, 1]),
        (InstancePolicy::Session, Revision::LATEST_HANDSHAKE, [1, 2, 3]),
        (InstancePolicy::Session, Revision::V2024_11_05, [1, 2, 3]),
        // The modern era has no sessions.
        (InstancePolicy::Session, Revision::LATEST_MODERN, [1, 1, 1]),
        (InstancePolicy::Shared, Revision::LATEST_HANDSHAKE, [1, 2, 3]),
        (InstancePolicy::Shared, Revision::LATEST_MODERN, [1, 2, 3]),
    ] {
        let guest = keeper(policy);
        std::fs::copy(&guest.file, &file).unwrap();
        let name = match policy {
            InstancePolicy::Call => "call",
            InstancePolicy::Session => "session",
            InstancePolicy::Shared => "shared",
        };
        std::fs::write(folder.path().join("guesthouse.toml"), format!("[guest.keeper]\ninstance = \"{name}\"\n")).unwrap();
        for transport in [Transport::Http, Transport::Stdio, Transport::Memory] {
            let mut client = Client::connect_guest(transport, revision, GuestSource { file: file.clone(), ..guest.clone() }).await;
            for expected in expected {
                let answer = client.call("count", json!({})).await;
                assert_eq!(counted(&answer), expected, "{policy:?} {revision:?} {transport:?}");
            }
        }
    }
}

/// A session over HTTP.
struct Session {
    address: SocketAddr,
    headers: Vec<(String, String)>,
}

impl Session {
    async fn open(address: SocketAddr) -> Self {
        let revision = Revision::LATEST_HANDSHAKE;
        let params = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let (_, answered, _) = post(address, PATH, &headers(revision, None, &initialize), &initialize).await;
        let id = answered["mcp-session-id"].to_str().unwrap().to_owned();
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let headers = headers(revision, Some(&id), &initialized);
        assert_eq!(post(address, PATH, &headers, &initialized).await.0, 202);
        Self { address, headers }
    }

    async fn count(&self, id: i64) -> u64 {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "count", "arguments": {} } });
        let (_, _, body) = post(self.address, PATH, &self.headers, &call).await;
        counted(&last_message(&body))
    }
}

#[tokio::test]
async fn each_session_over_http_has_its_own_until_it_ends() {
    let mut config = crate::support::config();
    config.limits.instances = 2;
    let (host, address) = serve(vec![keeper(InstancePolicy::Session)], config).await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(Session::open(address).await);
    }
    for (id, expected) in [(1, 1), (2, 2)] {
        for session in &sessions {
            assert_eq!(session.count(id).await, expected, "with two instances for three sessions");
        }
    }
    assert_eq!(kept(&host), 2);
    for session in &sessions {
        assert!((200..300).contains(&delete(address, PATH, &session.headers).await));
    }
    eventually(|| kept(&host) == 0).await;
}

/// A session in this process.
async fn session(host: &Host) -> memory::Client {
    let client = host.connect(None).unwrap();
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    request(&client, "initialize", params).await;
    client.notify("notifications/initialized", json!({})).await.unwrap();
    client
}

async fn request(client: &memory::Client, method: &str, params: Value) -> Value {
    let Value::Object(params) = params else { panic!("parameters are an object") };
    client.request_as_is(method, params).await.unwrap()
}

#[tokio::test]
async fn the_end_of_a_connection_is_the_end_of_its_session() {
    let host = Host::start(crate::support::config(), vec![keeper(InstancePolicy::Session)]).await.unwrap();
    let mut clients = Vec::new();
    for count in 1..=2 {
        let client = session(&host).await;
        assert_eq!(counted(&request(&client, "tools/call", json!({ "name": "count", "arguments": {} })).await), 1);
        clients.push(client);
        assert_eq!(kept(&host), count);
    }
    clients.pop();
    eventually(|| kept(&host) == 1).await;
    clients.pop();
    eventually(|| kept(&host) == 0).await;
}

/// On a kept instance a callback is not run again; what fails is told, and what is told to have worked did.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_on_a_kept_instance_is_told_and_loses_nothing() {
    let mut guest = source("tests/guests/state");
    guest.config.instance = InstancePolicy::Session;
    guest.config.grants.state = Some(true);
    let config = Config { storage: StorageConfig { kind: Kind::Memory, ..StorageConfig::default() }, ..Config::default() };
    let host = Host::start(config, vec![guest]).await.unwrap();
    let count = json!({ "name": "run", "arguments": { "steps": [{ "bucket": "guest", "do": "count", "key": "n" }], "end": "ok" } });
    let mut sessions = Vec::new();
    for _ in 0..8 {
        let (client, count) = (session(&host).await, count.clone());
        sessions.push(tokio::spawn(async move {
            let mut committed = 0;
            for _ in 0..25 {
                let answer = request(&client, "tools/call", count.clone()).await;
                match answer.get("error") {
                    None => committed += 1,
                    Some(error) => assert_eq!(error["data"]["type"], "state_conflict", "{answer}"),
                }
            }
            committed
        }));
    }
    let mut committed = 0;
    for session in sessions {
        committed += session.await.unwrap();
    }
    assert!(committed > 0);
    let get = json!({ "name": "run", "arguments": { "steps": [{ "bucket": "guest", "do": "get", "key": "n" }], "end": "ok" } });
    let answer = request(&session(&host).await, "tools/call", get).await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(text.contains(&format!("\"{committed}\"")), "{text}, and {committed} were told that they counted");
}
