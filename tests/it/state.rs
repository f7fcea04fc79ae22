//! The state of guests: whose it is, when it is saved, and how much of it there can be.

mod buckets;
mod commits;
mod crash;
mod restart;

use crate::support::clients::{Client, Era, Transport, serve, source};
use guesthouse::config::storage::{Kind, StorageConfig};
use guesthouse::config::{Config, GuestLimits};
use guesthouse::host::{GuestSource, Host};
use serde_json::{Value, json};
use std::path::Path;

const STATE: &str = "tests/guests/state";

/// The guest, with state granted.
fn granted() -> GuestSource {
    let mut guest = source(STATE);
    guest.config.grants.state = Some(true);
    guest
}

fn in_memory() -> Config {
    Config { storage: StorageConfig { kind: Kind::Memory, ..StorageConfig::default() }, ..Config::default() }
}

fn in_file(path: &Path) -> Config {
    Config { storage: StorageConfig { path: Some(path.to_owned()), ..StorageConfig::default() }, ..Config::default() }
}

async fn host(config: Config, guest: GuestSource) -> Host {
    Host::start(config, vec![guest]).await.unwrap_or_else(|error| panic!("{error:#}"))
}

/// Calls `run`: whole answer.
async fn run_to(host: &Host, steps: Value, end: &str) -> Value {
    let arguments = json!({ "steps": steps, "end": end });
    host.connect(None).unwrap().request("tools/call", json!({ "name": "run", "arguments": arguments })).await.unwrap()
}

/// Calls `run`, which must succeed: what each step came to.
async fn run(host: &Host, steps: Value) -> Value {
    saw(&run_to(host, steps, "ok").await)
}

fn saw(answer: &Value) -> Value {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    serde_json::from_str(text).unwrap()
}
