//! State that goes over to another version: all of it or nothing, and back when that is asked for.

use super::{PATIENCE, STATE, config, patched};
use crate::support::component;
use guesthouse::config::storage::{Kind, StorageConfig};
use guesthouse::config::{Config, GuestConfig};
use guesthouse::host::{GuestSource, Host};
use guesthouse::swap::{Component, Stored};
use guesthouse::transport::memory::Client;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::time::timeout;

const MARK: &[u8] = b"state-guest-version-1";

/// The guest in one of its versions.
pub(super) fn build(folder: &Path, version: u8) -> PathBuf {
    let mut mark = MARK.to_vec();
    *mark.last_mut().unwrap() = version;
    let bytes = patched(&std::fs::read(component(STATE)).unwrap(), MARK, &mark);
    let file = folder.join(format!("version-{}.wasm", char::from(version)));
    std::fs::write(&file, bytes).unwrap();
    file
}

fn source(folder: &Path, table: &str) -> GuestSource {
    let guest: GuestConfig = toml::from_str(&format!("grants = {{ state = true }}\n{table}")).unwrap();
    GuestSource { name: "state".into(), file: build(folder, b'1'), config: guest }
}

async fn start(config: Config, source: GuestSource) -> Host {
    Host::start(config, vec![source]).await.unwrap_or_else(|error| panic!("{error:#}"))
}

async fn started(folder: &Path, table: &str) -> Host {
    start(config(folder), source(folder, table)).await
}

async fn swap(host: &Host, folder: &Path, version: u8) -> Result<Stored, String> {
    let swapped = host.swap("state", Component::File(build(folder, version))).await;
    swapped.map(|swapped| swapped.state).map_err(|error| format!("{error:#}"))
}

async fn back(host: &Host, restore_state: bool) -> Result<Stored, String> {
    let swapped = host.swap("state", Component::Previous { restore_state }).await;
    swapped.map(|swapped| swapped.state).map_err(|error| format!("{error:#}"))
}

fn script(bucket: &str, act: Value) -> Value {
    let mut step = json!({ "bucket": bucket });
    step.as_object_mut().unwrap().extend(act.as_object().unwrap().clone());
    json!({ "name": "run", "arguments": { "steps": [step], "end": "ok" } })
}

fn saw(answer: &Value) -> Value {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    serde_json::from_str::<Value>(text).unwrap()[0].clone()
}

async fn does(client: &Client, bucket: &str, act: Value) -> Value {
    saw(&client.request("tools/call", script(bucket, act)).await.unwrap())
}

async fn get(client: &Client, bucket: &str, key: &str) -> Value {
    does(client, bucket, json!({ "do": "get", "key": key })).await
}

async fn count(client: &Client) -> Value {
    does(client, "guest", json!({ "do": "count", "key": "n" })).await
}

/// A client with a session, and what one call of it comes to.
async fn session(host: &Host) -> Client {
    let client = host.connect(None).unwrap();
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    client.request_as_is("initialize", params.as_object().unwrap().clone()).await.unwrap();
    client.notify("notifications/initialized", json!({})).await.unwrap();
    client
}

async fn in_session(client: &Client, act: Value) -> Value {
    let params = script("session", act);
    saw(&client.request_as_is("tools/call", params.as_object().unwrap().clone()).await.unwrap())
}

#[tokio::test]
async fn each_namespace_is_migrated_once_for_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let steps = r#"config = { migrate = [{ bucket = "owner", do = "open" }, { bucket = "guest", do = "open" }, { bucket = "principal", do = "open" }] }"#;
    let host = started(folder.path(), steps).await;
    let (client, with_session) = (host.connect(None).unwrap(), session(&host).await);
    for _ in 0..3 {
        count(&client).await;
    }
    does(&client, "principal", json!({ "do": "count", "key": "n" })).await;
    in_session(&with_session, json!({ "do": "count", "key": "n" })).await;
    let swapped = host.swap("state", Component::File(build(folder.path(), b'2'))).await.unwrap();
    assert_eq!(swapped.state, Stored::Migrated(3));
    assert!(swapped.sentence().contains("migrated 3"), "{}", swapped.sentence());

    assert_eq!(get(&client, "guest", "n").await, "v2:3");
    assert_eq!(get(&client, "guest", "owner").await, "guest ");
    assert_eq!(get(&client, "principal", "n").await, "v2:1");
    assert_eq!(get(&client, "principal", "owner").await, "principal local");
    // Whose it is alone can be opened.
    let denied = json!({ "error": "access-denied" });
    assert_eq!(get(&client, "guest", "saw").await, json!(["open", "open", denied]).to_string());
    assert_eq!(get(&client, "principal", "saw").await, json!(["open", denied, "open"]).to_string());
    assert_eq!(in_session(&with_session, json!({ "do": "get", "key": "n" })).await, "v2:1");
    let owner = in_session(&with_session, json!({ "do": "get", "key": "owner" })).await;
    assert!(owner.as_str().unwrap().starts_with("session ") && owner.as_str().unwrap().len() > 8, "{owner}");
    assert_eq!(count(&client).await, 4);
    let status = host.status();
    let versions = status["guests"][0]["versions"].as_array().unwrap();
    assert_eq!(versions.iter().map(|kept| kept["migrated"].as_bool().unwrap()).collect::<Vec<_>>(), [false, true], "{status}");
}

#[tokio::test]
async fn a_migration_that_fails_changes_nothing() {
    for (table, part) in [
        ("config = { migrate_end = \"error\" }", "as told"),
        ("config = { migrate_end = \"trap\" }", "crashed"),
        ("config = { migrate_end = \"loop\" }\nlimits = { cpu = \"200ms\", wall = \"5s\" }", "processor time"),
        (
            "config = { migrate = [{ bucket = \"owner\", do = \"fill\", key = \"x\", bytes = 3000 }] }\nlimits = { state = \"2KiB\", value = \"4KiB\" }",
            "`state`",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let host = started(folder.path(), table).await;
        let client = host.connect(None).unwrap();
        assert_eq!(count(&client).await, 1);
        let refused = swap(&host, folder.path(), b'2').await;
        if part == "`state`" {
            // What does not fit is refused at once, and here the guest goes on without it.
            assert_eq!(refused, Ok(Stored::Migrated(1)));
            assert!(get(&client, "guest", "saw").await.as_str().unwrap().contains(part));
            continue;
        }
        let said = refused.unwrap_err();
        assert!(said.contains("`migrate` failed") && said.contains(part), "{table}: {said}");
        assert_eq!(get(&client, "guest", "owner").await, Value::Null, "{table}");
        assert_eq!(count(&client).await, 2, "the old version serves on");
        assert_eq!(host.status()["guests"][0]["versions"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn going_back_over_a_migration_is_asked_for_and_says_what_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = StorageConfig { path: Some(folder.path().join("state.db")), ..StorageConfig::default() };
    let config = || Config { storage: file.clone(), ..config(folder.path()) };
    let host = start(config(), source(folder.path(), "")).await;
    let client = host.connect(None).unwrap();
    count(&client).await;
    does(&client, "principal", json!({ "do": "set", "key": "note", "value": "before" })).await;
    assert_eq!(swap(&host, folder.path(), b'2').await, Ok(Stored::Migrated(2)));
    assert_eq!(count(&client).await, 2);
    does(&client, "guest", json!({ "do": "set", "key": "new", "value": "x" })).await;
    drop((client, host));

    // It is so after a restart, too.
    let host = start(config(), source(folder.path(), "")).await;
    let client = host.connect(None).unwrap();
    let said = back(&host, false).await.unwrap_err();
    assert!(said.contains("--restore-state") && said.contains("2 keys"), "{said}");
    assert_eq!(get(&client, "guest", "n").await, "v2:2");
    assert_eq!(back(&host, true).await, Ok(Stored::Restored(2)));
    assert_eq!(get(&client, "guest", "n").await, "1");
    assert_eq!(get(&client, "guest", "new").await, Value::Null);
    assert_eq!(get(&client, "guest", "owner").await, Value::Null);
    assert_eq!(get(&client, "principal", "note").await, "before");
    assert_eq!(count(&client).await, 2);
    assert_eq!(swap(&host, folder.path(), b'3').await, Ok(Stored::Migrated(2)));
    assert_eq!(count(&client).await, 3);
}

#[tokio::test]
async fn a_version_that_comes_while_the_host_is_down_migrates_before_anybody_calls_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let file = StorageConfig { kind: Kind::Sqlite, path: Some(at.join("state.db")), ..StorageConfig::default() };
    let with = async |version: u8, table: &str| {
        let guest = source(at, table);
        let config = Config { storage: file.clone(), ..config(at) };
        std::fs::copy(build(at, version), at.join("state.wasm")).unwrap();
        start(config, GuestSource { file: at.join("state.wasm"), ..guest }).await
    };
    let host = with(b'1', "").await;
    assert_eq!(count(&host.connect(None).unwrap()).await, 1);
    drop(host);
    let host = with(b'2', "config = { migrate_end = \"error\" }").await;
    assert!(!host.serves("state"));
    let status = host.status();
    assert!(status["not_served"][0]["reason"].as_str().is_some_and(|reason| reason.contains("as told")), "{status}");
    drop(host);
    let host = with(b'1', "").await;
    assert_eq!(count(&host.connect(None).unwrap()).await, 2, "the state is as it was");
    drop(host);
    let host = with(b'3', "").await;
    let client = host.connect(None).unwrap();
    assert_eq!(count(&client).await, 3);
    assert_eq!(get(&client, "guest", "n").await, "v3:3");
    assert!(back(&host, false).await.unwrap_err().contains("--restore-state"));
    assert_eq!(back(&host, true).await, Ok(Stored::Restored(1)));
    assert_eq!(count(&client).await, 3);
}

#[tokio::test]
async fn the_state_before_goes_with_the_last_version_that_it_belongs_to() {
    let folder = tempfile::tempdir().unwrap();
    let host = started(folder.path(), "").await;
    let client = host.connect(None).unwrap();
    count(&client).await;
    // Three versions are kept.
    for version in b'2'..=b'5' {
        assert_eq!(swap(&host, folder.path(), version).await, Ok(Stored::Migrated(1)));
    }
    for version in [b'4', b'3'] {
        assert!(matches!(back(&host, true).await, Ok(Stored::Restored(_))));
        assert_eq!(get(&client, "guest", "n").await, format!("v{}:1", char::from(version)));
    }
    assert!(back(&host, true).await.unwrap_err().contains("no version before"));
}

/// Versions that do not understand each other's state come and go while it is counted in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_increment_is_lost_doubled_or_torn_by_migrations() {
    for (instance, fails) in [("call", false), ("session", true)] {
        let folder = tempfile::tempdir().unwrap();
        let host = started(folder.path(), &format!("instance = \"{instance}\"")).await;
        count(&host.connect(None).unwrap()).await;
        let (stop, counted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(1)));
        let mut callers = Vec::new();
        for _ in 0..6 {
            let (client, stop, counted) = (session(&host).await, stop.clone(), counted.clone());
            callers.push(tokio::spawn(async move {
                let params = script("guest", json!({ "do": "count", "key": "n" }));
                while !stop.load(Ordering::Relaxed) {
                    let answer = client.request_as_is("tools/call", params.as_object().unwrap().clone()).await.unwrap();
                    match answer.get("error") {
                        None => drop(counted.fetch_add(1, Ordering::SeqCst)),
                        // A kept instance cannot be told to forget what it did.
                        Some(error) => assert!(fails && error["data"]["type"] == "state_conflict", "{answer}"),
                    }
                }
            }));
        }
        for version in b'2'..=b'9' {
            let before = counted.load(Ordering::SeqCst);
            assert_eq!(swap(&host, folder.path(), version).await, Ok(Stored::Migrated(1)));
            timeout(PATIENCE, async {
                while counted.load(Ordering::SeqCst) < before + 12 {
                    tokio::task::yield_now().await;
                }
            })
            .await
            .unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.await.unwrap();
        }
        let client = host.connect(None).unwrap();
        assert_eq!(get(&client, "guest", "n").await, format!("v9:{}", counted.load(Ordering::SeqCst)), "{instance}");
    }
}
