//! A new version that has a share of the calls before it has all of them, or none.

use super::{HOSTILE, Kit, STATE, call};
use crate::support::component;
use guesthouse::config::grants::InstancePolicy;
use guesthouse::host::GuestSource;
use guesthouse::swap::Component;
use guesthouse::transport::memory::Client;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// How many of a hundred calls the new version answers: it says more than it is told.
async fn new_of_a_hundred(client: &Client) -> usize {
    let mut new = 0;
    for _ in 0..100 {
        let answer = call(client, "echo", json!({ "message": "x" })).await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        new += usize::from(text != "x");
    }
    new
}

#[tokio::test]
async fn a_share_of_the_calls_goes_to_the_new_version_until_all_or_none_do() {
    let kit = Kit::start().await;
    let client = kit.host.connect(None).unwrap();
    let first = kit.served();
    let tried = kit.host.try_out("kit", component(HOSTILE), 30).await.unwrap();
    assert!(tried.sentence().contains("30 of 100"), "{}", tried.sentence());
    assert_eq!((new_of_a_hundred(&client).await, kit.served()), (30, first.clone()));
    assert_eq!(super::tools(&client).await, ["echo"], "the lists are those of the version in force");
    let status = kit.host.status();
    assert_eq!(status["guests"][0]["tried"], json!({ "digest": tried.to.1, "percent": 30 }));

    let ended = kit.host.swap("kit", Component::Previous { restore_state: false }).await.unwrap();
    assert_eq!(ended.to.1, first);
    assert_eq!(new_of_a_hundred(&client).await, 0);
    let none = format!("{:#}", kit.host.swap("kit", Component::Tried).await.unwrap_err());
    assert!(none.contains("has a share"), "{none}");

    kit.host.try_out("kit", component(HOSTILE), 1).await.unwrap();
    assert_eq!(new_of_a_hundred(&client).await, 1);
    assert_eq!(kit.host.swap("kit", Component::Tried).await.unwrap().to.1, tried.to.1);
    assert_eq!((new_of_a_hundred(&client).await, kit.served()), (100, tried.to.1));
    assert_eq!(kit.host.status()["guests"][0]["tried"], Value::Null);
    assert_eq!(kit.host.swap("kit", Component::Previous { restore_state: false }).await.unwrap().to.1, first);
}

#[tokio::test]
async fn a_tried_version_whose_calls_fail_loses_its_share() {
    let kit = Kit::start().await;
    let client = kit.host.connect(None).unwrap();
    kit.host.swap("kit", Component::File(component(HOSTILE))).await.unwrap();
    kit.host.try_out("kit", hostile_again(&kit), 50).await.unwrap();
    let failing = async {
        while kit.host.status()["guests"][0]["tried"] != Value::Null {
            call(&client, "trap", json!({})).await;
        }
    };
    timeout(Duration::from_secs(60), failing).await.unwrap();
    let status = kit.host.status();
    assert!(status["guests"][0]["refused"]["reason"].as_str().is_some_and(|reason| reason.contains("calls failed")), "{status}");
}

fn hostile_again(kit: &Kit) -> std::path::PathBuf {
    super::other_build(kit.folder.path(), HOSTILE, b'2')
}

#[tokio::test]
async fn where_two_versions_cannot_be_side_by_side_there_is_no_share() {
    let kit = Kit::start().await;
    for percent in [0, 100] {
        let said = kit.host.try_out("kit", component(HOSTILE), percent).await.unwrap_err().to_string();
        assert!(said.contains("1 to 99"), "{said}");
    }
    let mut shared = GuestSource { name: "keeper".into(), file: component(super::KEEPER), config: super::kit_of(&kit).config };
    shared.config.tools = None;
    shared.config.instance = InstancePolicy::Shared;
    kit.host.configure(shared).await.unwrap();
    let other = super::other_build(kit.folder.path(), super::KEEPER, b'3');
    let said = kit.host.try_out("keeper", other, 10).await.unwrap_err().to_string();
    assert!(said.contains("outlive a call"), "{said}");

    let state = GuestSource { name: "state".into(), file: component(STATE), config: toml::from_str("grants = { state = true }").unwrap() };
    kit.host.configure(state).await.unwrap();
    let client = kit.host.connect(Some("state")).unwrap();
    let count = json!({ "steps": [{ "bucket": "guest", "do": "count", "key": "n" }], "end": "ok" });
    assert!(call(&client, "run", count).await.get("result").is_some());
    let second = super::migration::build(kit.folder.path(), b'2');
    let said = kit.host.try_out("state", second, 10).await.unwrap_err().to_string();
    assert!(said.contains("migrates"), "{said}");
    let said = kit.host.try_out("kit", kit.file("no.wasm", b"no"), 10).await.unwrap_err().to_string();
    assert!(said.contains("not a WebAssembly component"), "{said}");
}
