//! Instances that outlive a call, and versions that do not: their memory goes over, and no call finds less than it should.

use super::{PATIENCE, config, other_build};
use crate::support::component;
use guesthouse::config::GuestConfig;
use guesthouse::config::grants::InstancePolicy;
use guesthouse::host::{GuestSource, Host};
use guesthouse::swap::Component;
use guesthouse::transport::memory::Client;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::time::timeout;

const KEEPER: &str = "tests/guests/keeper";

async fn keeper(folder: &Path, policy: InstancePolicy) -> Host {
    let file = folder.join("keeper.wasm");
    std::fs::copy(component(KEEPER), &file).unwrap();
    let guest = GuestConfig { instance: policy, ..GuestConfig::default() };
    Host::start(config(folder), vec![GuestSource { name: "keeper".into(), file, config: guest }]).await.unwrap()
}

async fn session(host: &Host) -> Client {
    let client = host.connect(None).unwrap();
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    request(&client, "initialize", params).await;
    client.notify("notifications/initialized", json!({})).await.unwrap();
    client
}

async fn request(client: &Client, method: &str, params: Value) -> Value {
    let Value::Object(params) = params else { panic!("parameters are an object") };
    client.request_as_is(method, params).await.unwrap()
}

async fn count(client: &Client) -> u64 {
    let answer = request(client, "tools/call", json!({ "name": "count", "arguments": {} })).await;
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).parse().unwrap()
}

#[tokio::test]
async fn what_is_in_memory_goes_over() {
    for policy in [InstancePolicy::Session, InstancePolicy::Shared] {
        let folder = tempfile::tempdir().unwrap();
        let host = keeper(folder.path(), policy).await;
        let client = session(&host).await;
        for expected in 1..=3 {
            assert_eq!(count(&client).await, expected);
        }
        let swapped = host.swap("keeper", Component::File(other_build(folder.path(), KEEPER, b'1'))).await.unwrap();
        assert_eq!(swapped.handed_over, 1);
        assert_eq!(count(&client).await, 4, "{policy:?}");
        let back = host.swap("keeper", Component::Previous { restore_state: false }).await.unwrap();
        assert_eq!(back.handed_over, 1);
        assert_eq!(count(&client).await, 5, "{policy:?}");
    }
}

/// Calls that a guest has answered, whoever asked: one more for each watched resource is what a new version is told of.
#[tokio::test]
async fn a_new_version_is_told_of_the_resources_that_are_watched() {
    const CHANGING: &str = "tests/guests/changing";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("changing.wasm");
    std::fs::copy(component(CHANGING), &file).unwrap();
    let source = GuestSource { name: "changing".into(), file, config: GuestConfig::default() };
    let host = Host::start(config(folder.path()), vec![source]).await.unwrap();
    let answered = || host.status()["guests"][0]["calls"]["ok"].as_u64().unwrap();
    let before = answered();
    host.swap("changing", Component::File(other_build(folder.path(), CHANGING, b'1'))).await.unwrap();
    let for_the_gate = answered() - before;
    let client = session(&host).await;
    let subscribed = request(&client, "resources/subscribe", json!({ "uri": "watch://one" })).await;
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    // The guest says that it has heard of that, so that a list is asked again.
    let settled = async |wanted: u64| {
        while answered() < wanted {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, settled(before + for_the_gate + 2)).await.unwrap();
    let before = answered();
    host.swap("changing", Component::File(other_build(folder.path(), CHANGING, b'2'))).await.unwrap();
    timeout(PATIENCE, settled(before + for_the_gate + 2)).await.expect("the new version hears of no watcher");
}

#[tokio::test]
async fn a_version_without_handoff_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let host = keeper(folder.path(), InstancePolicy::Session).await;
    let client = session(&host).await;
    assert_eq!(count(&client).await, 1);
    assert_eq!(host.swap("keeper", Component::File(component(super::ECHO))).await.unwrap().handed_over, 0);
    assert_eq!(host.swap("keeper", Component::Previous { restore_state: false }).await.unwrap().handed_over, 0);
    assert_eq!(count(&client).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_between_two_versions_find_the_memory_of_all_calls_before_them() {
    for policy in [InstancePolicy::Session, InstancePolicy::Shared] {
        let folder = tempfile::tempdir().unwrap();
        let host = keeper(folder.path(), policy).await;
        let builds: Vec<_> = (0..2).map(|note| other_build(folder.path(), KEEPER, note)).collect();
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut callers = Vec::new();
        for _ in 0..4 {
            let (client, stop, answered) = (session(&host).await, stop.clone(), answered.clone());
            callers.push(tokio::spawn(async move {
                let mut counts = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    counts.push(count(&client).await);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                counts
            }));
        }
        for swap in 0..12 {
            let before = answered.load(Ordering::Relaxed);
            host.swap("keeper", Component::File(builds[swap % 2].clone())).await.unwrap_or_else(|error| panic!("{error:#}"));
            while answered.load(Ordering::Relaxed) < before + 4 {
                tokio::task::yield_now().await;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for caller in callers {
            let counts = caller.await.unwrap();
            if policy == InstancePolicy::Session {
                assert!(counts.iter().copied().eq(1..=counts.len() as u64), "{counts:?}");
            }
            all.extend(counts);
        }
        if policy == InstancePolicy::Shared {
            all.sort_unstable();
            assert!(all.iter().copied().eq(1..=all.len() as u64), "{all:?}");
        }
    }
}
