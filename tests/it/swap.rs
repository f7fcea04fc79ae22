//! Hot swap: the gate, the step, the way back, and that nobody who calls notices more than they should.

mod files;
mod grants;
mod handoff;
mod load;
mod migration;
mod share;

use crate::support::component;
use guesthouse::config::{Config, GuestConfig};
use guesthouse::host::{GuestSource, Host};
use guesthouse::swap::Component;
use guesthouse::transport::memory::{Client, Messages};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::timeout;

const ECHO: &str = "tests/guests/echo";
const KEEPER: &str = "tests/guests/keeper";
const STATE: &str = "tests/guests/state";
const HOSTILE: &str = "tests/guests/hostile";
/// Nothing here takes long; a test that hangs should say where.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host that serves the echo guest as `kit`, and a folder for its versions and for components.
struct Kit {
    host: Host,
    folder: tempfile::TempDir,
}

fn config(folder: &Path) -> Config {
    let mut config = Config::parse("[storage]\nkind = \"memory\"\n").unwrap();
    config.swap =
        toml::from_str(&format!("path = {:?}\nversions = 3\nprobation_calls = 20\nprobation_failures = 10", folder.join("versions")))
            .unwrap();
    config
}

fn kit(folder: &Path) -> GuestSource {
    // Of the hostile guest's tools, those that can be served.
    let served = toml::from_str("tools = [\"echo\", \"trap\", \"loop\"]").unwrap();
    GuestSource { name: "kit".into(), file: folder.join("kit.wasm"), config: served }
}

/// Bytes with others in the place of some, wherever they are.
fn patched(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> = bytes.windows(from.len()).enumerate().filter(|(_, window)| *window == from).map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "there is nothing to be changed");
    let mut patched = bytes.to_vec();
    places.iter().for_each(|at| patched[*at..*at + to.len()].copy_from_slice(to));
    patched
}

/// A guest in another build: its component with a note at its end.
fn other_build(folder: &Path, guest: &str, note: u8) -> PathBuf {
    let mut bytes = std::fs::read(component(guest)).unwrap();
    bytes.extend([0, 3, 1, b'n', note]);
    let file = folder.join(format!("build-{note}.wasm"));
    std::fs::write(&file, bytes).unwrap();
    file
}

impl Kit {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(component(ECHO), folder.path().join("kit.wasm")).unwrap();
        let host = Host::start(config(folder.path()), vec![kit(folder.path())]).await.unwrap_or_else(|error| panic!("{error:#}"));
        Self { host, folder }
    }

    /// The same guest in another build: a component with a note at its end.
    fn other_build(&self, note: u8) -> PathBuf {
        other_build(self.folder.path(), ECHO, note)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let file = self.folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        file
    }

    async fn swap(&self, file: PathBuf) -> Result<String, String> {
        self.host.swap("kit", Component::File(file)).await.map(|swapped| swapped.to.1).map_err(|error| format!("{error:#}"))
    }

    async fn swapped(&self, file: PathBuf) -> String {
        self.swap(file).await.unwrap_or_else(|error| panic!("{error}"))
    }

    fn served(&self) -> String {
        self.host.status()["guests"][0]["digest"].as_str().unwrap().to_owned()
    }
}

async fn call(client: &Client, tool: &str, arguments: Value) -> Value {
    client.request("tools/call", json!({ "name": tool, "arguments": arguments })).await.unwrap()
}

async fn tools(client: &Client) -> Vec<String> {
    let listed = client.request("tools/list", json!({})).await.unwrap();
    listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// A client that listens to changes of the tools.
async fn listener(host: &Host) -> (Client, Messages) {
    let client = host.connect(None).unwrap();
    let mut messages = client.messages();
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
    client.send(json!({ "jsonrpc": "2.0", "id": 77, "method": "subscriptions/listen", "params": params }).to_string()).await.unwrap();
    let acknowledged = timeout(PATIENCE, messages.next()).await.unwrap().unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    (client, messages)
}

async fn hears(messages: &mut Messages) -> String {
    let message = timeout(PATIENCE, messages.next()).await.expect("nothing comes").expect("the connection is closed");
    message["method"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_new_version_goes_live_and_back_and_listeners_hear_of_lists_that_differ() {
    let kit = Kit::start().await;
    let (client, mut messages) = listener(&kit.host).await;
    assert_eq!(tools(&client).await, ["echo"]);
    let first = kit.served();

    let same_tools = kit.swapped(kit.other_build(b'1')).await;
    assert_ne!(same_tools, first);
    let swapped = kit.host.swap("kit", Component::File(component(HOSTILE))).await.unwrap();
    assert!(swapped.differences.iter().any(|said| said == "the tool `trap` is new"), "{swapped:?}");
    assert!(swapped.differences.iter().any(|said| said.starts_with("the tool `echo` has another")), "{swapped:?}");
    // The first swap changed no list: this is the only change so far.
    assert_eq!(hears(&mut messages).await, "notifications/tools/list_changed");
    assert!(tools(&client).await.contains(&"trap".to_owned()));

    let back = kit.host.swap("kit", Component::Previous { restore_state: false }).await.unwrap();
    assert_eq!(back.to.1, same_tools);
    assert_eq!(hears(&mut messages).await, "notifications/tools/list_changed");
    assert_eq!(kit.host.swap("kit", Component::Previous { restore_state: false }).await.unwrap().to.1, first);
    let none = kit.host.swap("kit", Component::Previous { restore_state: false }).await.unwrap_err().to_string();
    assert!(none.contains("no version before"), "{none}");
    assert_eq!(call(&client, "echo", json!({ "message": "hello" })).await["result"]["content"][0]["text"], "hello");
}

#[tokio::test]
async fn each_way_to_be_refused_leaves_the_old_version_serving_and_says_why() {
    let kit = Kit::start().await;
    let client = kit.host.connect(None).unwrap();
    let first = kit.served();
    let echo = std::fs::read(component(ECHO)).unwrap();
    let no_wasm = kit.file("text.wasm", b"hello");
    let core = kit.file("core.wasm", b"\0asm\x01\0\0\0");
    let cut = kit.file("cut.wasm", &echo[..echo.len() / 2]);
    let other_world = kit.file("other.wasm", b"\0asm\x0d\0\x01\0");
    let other_contract = kit.file("contract.wasm", &patched(&echo, b"@0.1.0", b"@9.1.0"));
    for (file, part) in [
        (kit.folder.path().join("none.wasm"), "cannot be read"),
        (no_wasm, "not a WebAssembly component"),
        (core, "core WebAssembly module"),
        (cut, "damaged"),
        (other_world, "another world"),
        (other_contract, "9.1.0"),
        (crate::grants::guest(kit.folder.path(), "wants.wasm", &[], Some("state = { required = true }")), "requires state of its own"),
        (crate::grants::guest(kit.folder.path(), "imports.wasm", &["wasi:http/outgoing-handler@0.2.4"], None), "not granted"),
        (kit.folder.path().join("kit.wasm"), "served already"),
    ] {
        let said = kit.swap(file).await.unwrap_err();
        assert!(said.contains(part), "{part}: {said}");
        assert_eq!(kit.served(), first);
        assert_eq!(call(&client, "echo", json!({ "message": "on" })).await["result"]["content"][0]["text"], "on");
        let status = kit.host.status();
        assert!(status["guests"][0]["refused"]["reason"].as_str().is_some_and(|reason| reason.contains(part)), "{status}");
    }
    let said = kit.host.swap("nobody", Component::Previous { restore_state: false }).await.unwrap_err().to_string();
    assert!(said.contains("no guest called `nobody`"), "{said}");
    kit.swapped(kit.other_build(b'2')).await;
    assert_eq!(kit.host.status()["guests"][0]["refused"], Value::Null, "what is refused is forgotten with the next success");
}

#[tokio::test]
async fn a_version_that_does_not_start_or_fits_no_limit_is_refused() {
    let kit = Kit::start().await;
    // None of the tables below takes anything back that this one gives.
    let table = toml::from_str("tools = [\"echo\"]").unwrap();
    kit.host.configure(GuestSource { config: table, ..kit_of(&kit) }).await.unwrap();
    for (config, part) in [
        ("config = { start = \"refuse\" }", "no such unit"),
        ("config = { start = \"trap\" }", "`describe` failed"),
        ("config = { start = \"loop\" }\nlimits = { wall = \"300ms\", cpu = \"300ms\" }", "`describe` failed"),
        ("limits = { memory = \"64KiB\" }", "limits.memory"),
        ("tools = [\"echo\", \"schema-*\"]", "the tool `schema-"),
    ] {
        let tools = if config.contains("tools") { "" } else { "tools = [\"echo\"]\n" };
        let config = format!("{tools}{config}");
        let source = GuestSource { file: component(HOSTILE), config: toml::from_str(&config).unwrap(), ..kit_of(&kit) };
        let said = format!("{:#}", kit.host.configure(source).await.unwrap_err());
        assert!(said.contains(part), "{config}: {said}");
        assert!(!said.contains('\u{1b}'), "{said:?}");
    }
    assert_eq!(tools(&kit.host.connect(None).unwrap()).await, ["echo"]);
}

#[tokio::test]
async fn a_list_that_is_too_long_or_fails_is_a_reason_to_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.limits.entries = 5;
    std::fs::copy(component(ECHO), folder.path().join("kit.wasm")).unwrap();
    let host = Host::start(config, vec![kit(folder.path())]).await.unwrap();
    let said = format!("{:#}", host.swap("kit", Component::File(component(HOSTILE))).await.unwrap_err());
    assert!(said.contains("`list-tools` failed") && said.contains("5 entries"), "{said}");
    assert_eq!(tools(&host.connect(None).unwrap()).await, ["echo"]);
}

fn kit_of(of: &Kit) -> GuestSource {
    kit(of.folder.path())
}

#[tokio::test]
async fn an_old_version_is_let_go_with_its_last_call() {
    let kit = Kit::start().await;
    // A subscription and a session stay open all the time.
    let (client, _messages) = listener(&kit.host).await;
    let session = kit.host.connect(None).unwrap();
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    session.request_as_is("initialize", params.as_object().unwrap().clone()).await.unwrap();
    session.notify("notifications/initialized", json!({})).await.unwrap();
    let mut old = Vec::new();
    for note in b'a'..=b'e' {
        kit.host.each_guest(|guest| old.push(guest.version.clone()));
        call(&client, "echo", json!({ "message": "x" })).await;
        kit.swapped(kit.other_build(note)).await;
    }
    let let_go = async {
        while old.iter().any(|version| version.holders() > 1) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, let_go).await.expect("an old version is held by more than this test");
}

#[tokio::test]
async fn a_connection_that_is_open_says_who_the_server_is_now() {
    let kit = Kit::start().await;
    let client = kit.host.connect(None).unwrap();
    let name = async || {
        let answer = call(&client, "echo", json!({ "message": "on" })).await;
        answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"].clone()
    };
    assert_eq!(name().await, "echo");
    kit.swapped(component(HOSTILE)).await;
    assert_eq!(name().await, "hostile");
}

#[tokio::test]
async fn names_that_collide_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.server.prefix = guesthouse::config::Prefix::Never;
    std::fs::copy(component(ECHO), folder.path().join("kit.wasm")).unwrap();
    let other = GuestSource { name: "other".into(), file: component("tests/guests/changing"), config: kit(folder.path()).config };
    let host = Host::start(config, vec![kit(folder.path()), other]).await.unwrap();
    let said = format!("{:#}", host.swap("other", Component::File(component(HOSTILE))).await.unwrap_err());
    assert!(said.contains("echo") && said.contains("kit") && said.contains("other"), "{said}");
}

#[tokio::test]
async fn what_was_swapped_in_is_served_after_a_restart_until_the_configured_file_changes() {
    let kit = Kit::start().await;
    let (first, second) = (kit.served(), kit.swapped(kit.other_build(b'3')).await);
    let restart = async || {
        let host = Host::start(config(kit.folder.path()), vec![kit_of(&kit)]).await.unwrap();
        host.status()["guests"][0]["digest"].as_str().unwrap().to_owned()
    };
    assert_eq!(restart().await, second);
    let third = kit.other_build(b'4');
    std::fs::copy(&third, kit.folder.path().join("kit.wasm")).unwrap();
    let configured = restart().await;
    assert!(configured != first && configured != second);
}

#[tokio::test]
async fn a_version_whose_first_calls_fail_goes_back_by_itself() {
    let kit = Kit::start().await;
    let first = kit.served();
    let (client, mut messages) = listener(&kit.host).await;
    kit.swapped(component(HOSTILE)).await;
    assert_eq!(hears(&mut messages).await, "notifications/tools/list_changed");
    // Two of twenty may fail.
    for _ in 0..3 {
        assert_eq!(call(&client, "trap", json!({})).await["error"]["data"]["type"], "handler_crash");
    }
    assert_eq!(hears(&mut messages).await, "notifications/tools/list_changed", "it goes back");
    assert_eq!(kit.served(), first);
    let reason = async {
        loop {
            if let Some(reason) = kit.host.status()["guests"][0]["refused"]["reason"].as_str() {
                return reason.to_owned();
            }
            tokio::task::yield_now().await;
        }
    };
    let reason = timeout(PATIENCE, reason).await.unwrap();
    assert!(reason.contains("3 of its first 3 calls failed"), "{reason}");
}

#[tokio::test]
async fn a_call_in_flight_ends_on_the_version_that_it_began_on() {
    let kit = Kit::start().await;
    let long = toml::from_str("tools = [\"loop\"]\nlimits = { wall = \"1s\", cpu = \"60s\" }").unwrap();
    kit.host.configure(GuestSource { file: component(HOSTILE), config: long, ..kit_of(&kit) }).await.unwrap();
    let client = Arc::new(kit.host.connect(None).unwrap());
    let running = tokio::spawn({
        let client = client.clone();
        async move { call(&client, "loop", json!({})).await }
    });
    while kit.host.status()["guests"][0]["calls_alive"] != 1 {
        tokio::task::yield_now().await;
    }
    kit.host.configure(kit_of(&kit)).await.unwrap();
    assert_eq!(tools(&client).await, ["echo"], "the new version serves while the old one runs");
    assert_eq!(running.await.unwrap()["error"]["data"]["type"], "handler_timeout", "it had its own time to the end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_versions_come_and_go_no_call_is_lost_or_fails() {
    let kit = Kit::start().await;
    let builds: Vec<PathBuf> = (0..4).map(|note| kit.other_build(note)).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let (client, stop, answered) = (kit.host.connect(None).unwrap(), stop.clone(), answered.clone());
            tokio::spawn(async move {
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    let message = format!("{caller}-{count}");
                    let answer = call(&client, "echo", json!({ "message": message })).await;
                    assert_eq!(answer["result"]["content"][0]["text"], message, "{answer}");
                    count += 1;
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for swap in 0..60 {
        let before = answered.load(Ordering::Relaxed);
        kit.swapped(builds[swap % builds.len()].clone()).await;
        // Some calls in between, so that swaps and calls really mix.
        while answered.load(Ordering::Relaxed) < before + 8 {
            tokio::task::yield_now().await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
}

#[tokio::test]
async fn a_guest_is_taken_out_and_another_comes() {
    let kit = Kit::start().await;
    let added = GuestSource { name: "added".into(), file: component(KEEPER), config: GuestConfig::default() };
    kit.host.configure(added).await.unwrap();
    assert!(kit.host.serves("added"));
    let client = kit.host.connect(Some("added")).unwrap();
    assert!(tools(&client).await.contains(&"loop".to_owned()));
    kit.host.remove("added").await.unwrap();
    assert!(!kit.host.serves("added") && kit.host.connect(Some("added")).is_err());
    assert!(call(&client, "count", json!({})).await.get("error").is_some());
}
