//! What goes wrong in callbacks after a guest was loaded well: each fault in each of them, over the whole host.

use super::sabotage::{Callback, Fault, Listing};
use super::stage::{Era, Stage, Transport, beside_echo, guest, sources};
use super::{Expected, Harmless, Kind, Stopped};
use crate::support::component;
use guesthouse::config::Config;
use guesthouse::host::Host;
use guesthouse::swap::Component;
use guesthouse::transport::memory::Client;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const SABOTEUR: &str = "tests/guests/saboteur";
const TABLE: &str = "grants = { state = true }\nlimits = { cpu = \"300ms\", wall = \"2s\", memory = \"16MiB\", output = \"1MiB\" }";
/// Time enough for a guest to take all that it can.
const PATIENT: &str = "grants = { state = true }\nlimits = { cpu = \"20s\", wall = \"60s\" }";

fn table(fault: Fault) -> &'static str {
    match fault {
        Fault::Hoard => PATIENT,
        Fault::Trap | Fault::Loop | Fault::Sleep | Fault::Grow => TABLE,
    }
}

fn expected(fault: Fault, callback: Callback) -> Expected {
    match (fault, callback) {
        (Fault::Trap, Callback::Init) => Kind("handler_start_failed"),
        (Fault::Trap, _) => Kind("handler_crash"),
        (Fault::Loop | Fault::Sleep, _) => Stopped("handler_timeout"),
        (Fault::Grow, _) => Kind("handler_memory"),
        // It ends, because there is an end to what a call can hold.
        (Fault::Hoard, _) => Harmless("\"result\""),
    }
}

/// The request that leads to a callback; none where no request of this era does.
fn request(callback: Callback, era: Era, task: &str) -> Option<(&'static str, Value)> {
    let uri = json!({ "uri": "sabotage://one" });
    let in_session = era == Era::Handshake;
    match callback {
        Callback::CallTool | Callback::Init => Some(("tools/call", json!({ "name": "saboteur_well", "arguments": {} }))),
        Callback::ListResources => Some(("resources/list", json!({}))),
        Callback::ReadResource => Some(("resources/read", uri)),
        Callback::Subscribe => in_session.then_some(("resources/subscribe", uri)),
        Callback::GetPrompt => Some(("prompts/get", json!({ "name": "saboteur_well" }))),
        Callback::Complete => {
            let reference = json!({ "type": "ref/prompt", "name": "saboteur_well" });
            Some(("completion/complete", json!({ "ref": reference, "argument": { "name": "a", "value": "" } })))
        }
        Callback::GetTask => (!in_session).then(|| ("tasks/get", json!({ "taskId": task }))),
        Callback::UpdateTask => {
            let answers = json!({ "where": { "roots": [{ "uri": "file:///a" }] } });
            (!in_session).then(|| ("tasks/update", json!({ "taskId": task, "inputResponses": answers })))
        }
        Callback::CancelTask => (!in_session).then(|| ("tasks/cancel", json!({ "taskId": task }))),
        // Asked once per version; see `starts.rs`.
        Callback::Describe | Callback::ListTools | Callback::ListTemplates | Callback::ListPrompts => None,
        // Nobody waits for these; see below.
        Callback::Unsubscribe | Callback::Migrate | Callback::Save | Callback::Restore => None,
    }
}

async fn arm(stage: &mut Stage, note: &str) {
    let armed = stage.call("saboteur_arm", json!({ "wrong": note })).await;
    assert_eq!(armed["result"]["content"][0]["text"], note, "{armed}");
}

/// A job of the guest's that asks something.
async fn task(stage: &mut Stage) -> String {
    if stage.era == Era::Handshake {
        return String::new();
    }
    let made = stage.call("saboteur_asking-job", json!({})).await;
    let id = made["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    while stage.ask("tasks/get", json!({ "taskId": id })).await["result"]["status"] != "input_required" {}
    id
}

async fn check(transport: Transport, era: Era, faults: &[Fault]) {
    for fault in faults {
        // `init` comes last, and leaves nothing that works.
        let mut stage = Stage::open(transport, era, &beside_echo(&guest("saboteur", SABOTEUR, table(*fault)))).await;
        let mut wrong = Vec::new();
        for callback in Callback::ALL {
            let task = task(&mut stage).await;
            let Some((method, params)) = request(*callback, era, &task) else { continue };
            arm(&mut stage, &format!("{} {}", callback.name(), fault.name())).await;
            let ran = stage.attack(method, params.clone()).await;
            let problem = expected(*fault, *callback).problem(&ran);
            wrong.extend(problem.map(|problem| format!("{} in {}: {problem}", fault.name(), callback.name())));
            if *callback != Callback::Init {
                arm(&mut stage, "").await;
                let after = stage.ask(method, params).await;
                if after.get("result").is_none() {
                    wrong.push(format!("after {} in {}: {}", fault.name(), callback.name(), super::shown(&after)));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_over_http() {
    check(Transport::Http, Era::Modern, Fault::ALL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_over_http_in_a_session() {
    check(Transport::Http, Era::Handshake, &[Fault::Trap]).await;
}

#[tokio::test]
async fn a_crash_over_stdio() {
    check(Transport::Stdio, Era::Modern, &[Fault::Trap]).await;
}

#[tokio::test]
async fn a_crash_over_stdio_in_a_session() {
    check(Transport::Stdio, Era::Handshake, &[Fault::Trap]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_when_the_last_watcher_leaves_is_nobodys_answer() {
    let mut stage = Stage::open(Transport::Http, Era::Handshake, &beside_echo(&guest("saboteur", SABOTEUR, TABLE))).await;
    arm(&mut stage, "unsubscribe trap").await;
    let uri = json!({ "uri": "sabotage://one" });
    let failures = |stage: &Stage| {
        let mut failures = 0;
        stage.host().each_guest(|guest| failures += guest.version.tally().1);
        failures
    };
    for round in 1..=3 {
        let subscribed = stage.ask("resources/subscribe", uri.clone()).await;
        assert!(subscribed["result"].is_object(), "{subscribed}");
        let ran = stage.attack("resources/unsubscribe", uri.clone()).await;
        assert_eq!(Harmless("result").problem(&ran), None);
        while failures(&stage) < round {
            tokio::task::yield_now().await;
        }
    }
}

/// Resources are listed for each client: what a guest lists at once is bounded by what it may answer, and its pages are the
/// client's to turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_are_asked_for_each_client_are_read_page_by_page() {
    let mut stage = Stage::open(Transport::Http, Era::Modern, &beside_echo(&guest("saboteur", SABOTEUR, TABLE))).await;
    for listing in Listing::ALL {
        let expected = match listing {
            Listing::Many => Kind("output_too_large"),
            Listing::Endless | Listing::Circle => Harmless("nextCursor"),
            Listing::LongNames | Listing::StrangeNames => Harmless("sabotage://one"),
        };
        arm(&mut stage, &format!("list-resources {}", listing.name())).await;
        let ran = stage.attack("resources/list", json!({})).await;
        assert_eq!(expected.problem(&ran), None, "{}", listing.name());
    }
}

async fn session(host: &Host) -> Client {
    let client = host.connect(Some("saboteur")).unwrap();
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    as_is(&client, "initialize", params).await;
    client.notify("notifications/initialized", json!({})).await.unwrap();
    client
}

async fn as_is(client: &Client, method: &str, params: Value) -> Value {
    let Value::Object(params) = params else { panic!("parameters are an object") };
    client.request_as_is(method, params).await.unwrap()
}

/// A host that keeps a single instance, of a guest with this fault.
async fn with_one_instance(callback: Callback, fault: Fault) -> Host {
    let table = format!("{TABLE}\ninstance = \"session\"\nconfig = {{ wrong = \"{} {}\" }}", callback.name(), fault.name());
    let mut config = Config::parse(&beside_echo(&guest("saboteur", SABOTEUR, &table))).unwrap();
    config.limits.instances = 1;
    Host::start(config.clone(), sources(&config)).await.unwrap()
}

/// The time is that of the call that wants its memory back. It is lost with it, and the next call does without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_that_takes_for_ever_to_restore_costs_one_call() {
    for fault in [Fault::Loop, Fault::Sleep] {
        let host = with_one_instance(Callback::Restore, fault).await;
        let (one, two) = (session(&host).await, session(&host).await);
        let call = async |client: &Client| as_is(client, "tools/call", json!({ "name": "well", "arguments": {} })).await;
        for client in [&one, &two] {
            assert_eq!(call(client).await["result"]["content"][0]["text"], "well");
        }
        let failed = call(&one).await;
        assert_eq!(failed["error"]["data"]["type"], "handler_timeout", "{failed}");
        let next = call(&one).await;
        assert_eq!(next["result"]["content"][0]["text"], "well", "after {} in restore: {next}", fault.name());
    }
}

/// Two sessions take turns on the only instance: it is saved and restored each time, or would be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_while_memory_is_saved_or_restored_costs_that_memory_alone() {
    for callback in [Callback::Save, Callback::Restore] {
        for fault in [Fault::Trap, Fault::Grow] {
            let host = with_one_instance(callback, fault).await;
            let (one, two, beside) = (session(&host).await, session(&host).await, host.connect(Some("echo")).unwrap());
            for round in 0..3 {
                for client in [&one, &two] {
                    let call = as_is(client, "tools/call", json!({ "name": "well", "arguments": {} }));
                    let other = beside.request("tools/call", json!({ "name": "echo", "arguments": { "message": "well" } }));
                    let (called, other) = tokio::join!(call, other);
                    let text = &called["result"]["content"][0]["text"];
                    assert_eq!(text, "well", "{} in {}, round {round}: {called}", fault.name(), callback.name());
                    assert_eq!(other.unwrap()["result"]["content"][0]["text"], "well");
                }
            }
        }
    }
}

/// The guest as its next version.
fn next_version(folder: &Path) -> PathBuf {
    const MARK: &[u8] = b"saboteur-version-1";
    let mut bytes = std::fs::read(component(SABOTEUR)).unwrap();
    let at = bytes.windows(MARK.len()).position(|bytes| bytes == MARK).expect("the version is in the component");
    bytes[at + MARK.len() - 1] = b'2';
    let file = folder.join("next.wasm");
    std::fs::write(&file, bytes).unwrap();
    file
}

fn migration(fault: Fault) -> Result<(), &'static str> {
    match fault {
        Fault::Trap => Err("the guest crashed"),
        Fault::Loop => Err("used up its processor time"),
        Fault::Sleep => Err("did not finish before its deadline"),
        Fault::Grow => Err("ran out of the memory"),
        // It ends, because there is an end to what a call can hold.
        Fault::Hoard => Ok(()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_with_a_fault_in_its_migration_is_not_served_and_the_one_before_is() {
    for fault in Fault::ALL {
        let folder = tempfile::tempdir().unwrap();
        let table = format!("{}\nconfig = {{ wrong = \"migrate {}\" }}", table(*fault), fault.name());
        let kept = format!("[swap]\npath = {:?}\n", folder.path().join("versions").display().to_string());
        let config = Config::parse(&beside_echo(&(kept + &guest("saboteur", SABOTEUR, &table)))).unwrap();
        let host = Host::start(config.clone(), sources(&config)).await.unwrap();
        let (client, beside) = (host.connect(Some("saboteur")).unwrap(), host.connect(Some("echo")).unwrap());
        client.request("tools/call", json!({ "name": "arm", "arguments": { "wrong": "something to migrate" } })).await.unwrap();
        let swap = host.swap("saboteur", Component::File(next_version(folder.path())));
        let call = beside.request("tools/call", json!({ "name": "echo", "arguments": { "message": "well" } }));
        let (swapped, called) = tokio::join!(swap, call);
        assert_eq!(called.unwrap()["result"]["content"][0]["text"], "well");
        match (migration(*fault), swapped) {
            (Ok(()), Ok(_)) => {}
            (Err(part), Err(error)) => assert!(format!("{error:#}").contains(part), "{}: {error:#}", fault.name()),
            (expected, swapped) => panic!("{}: not {expected:?}, but {:?}", fault.name(), swapped.map(|swapped| swapped.to)),
        }
        let answer = client.request("tools/call", json!({ "name": "well", "arguments": {} })).await.unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "well", "{answer}");
    }
}
