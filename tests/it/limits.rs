//! Limits that the operator sets, as clients see them.

use crate::support::clients::{headers, last_message, post, serve, source};
use guesthouse::config::GuestLimits;
use guesthouse::config::units::{Size, Span};
use guesthouse::host::Host;
use guesthouse_protocol::Revision;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Collects what the host logs.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const HOSTILE: &str = "tests/guests/hostile";

async fn call(limits: GuestLimits, tool: &str) -> Value {
    let mut guest = source(HOSTILE);
    guest.config.limits = limits;
    let host = Host::start(crate::support::config(), vec![guest]).await.unwrap();
    host.connect(None).unwrap().request("tools/call", json!({ "name": tool, "arguments": {} })).await.unwrap()
}

#[tokio::test]
async fn each_limit_fails_the_call_with_its_own_word() {
    let tight = GuestLimits { wall: Span(200), cpu: Span(60_000), ..GuestLimits::default() };
    assert_eq!(call(tight, "loop").await["error"]["data"]["type"], "handler_timeout");
    let busy = GuestLimits { wall: Span(60_000), cpu: Span(100), ..GuestLimits::default() };
    assert_eq!(call(busy, "loop").await["error"]["data"]["type"], "handler_timeout");
    let small = GuestLimits { memory: Size(4 << 20), ..GuestLimits::default() };
    assert_eq!(call(small, "grow").await["error"]["data"]["type"], "handler_memory");
    let quiet = GuestLimits { output: Size(64 << 10), ..GuestLimits::default() };
    assert_eq!(call(quiet, "huge").await["error"]["data"]["type"], "output_too_large");
}

#[tokio::test]
async fn a_guest_that_cannot_start_is_not_served_and_says_why() {
    let mut guest = source(HOSTILE);
    guest.config.config = toml::from_str("start = \"refuse\"").unwrap();
    let Err(error) = Host::start(crate::support::config(), vec![guest]).await else { panic!("it started") };
    let said = format!("{error:#}");
    assert!(said.contains("hostile") && said.contains("no such unit"), "{said}");
    assert!(!said.contains('\u{1b}'), "control characters reach the terminal: {said:?}");
}

#[tokio::test]
async fn one_guest_that_fails_to_load_takes_no_other_with_it() {
    let mut broken = source(HOSTILE);
    broken.name = "broken".into();
    broken.config.config = toml::from_str("start = \"trap\"").unwrap();
    let host = Host::start(crate::support::config(), vec![broken, source(HOSTILE)]).await.unwrap();
    let names: Vec<String> = host.summaries().into_iter().map(|guest| guest.name).collect();
    assert_eq!(names, ["hostile"]);
}

#[tokio::test]
async fn looping_guests_do_not_starve_other_calls() {
    let mut guest = source(HOSTILE);
    guest.config.limits.wall = Span(5_000);
    let host = Host::start(crate::support::config(), vec![guest]).await.unwrap();
    let loops: Vec<_> = (0..8)
        .map(|_| {
            let client = host.connect(None).unwrap();
            tokio::spawn(async move { client.request("tools/call", json!({ "name": "loop", "arguments": {} })).await })
        })
        .collect();
    let client = host.connect(None).unwrap();
    for _ in 0..200 {
        let answer = client.request("tools/call", json!({ "name": "echo", "arguments": {} })).await.unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "{}");
    }
    assert!(loops.iter().all(|running| !running.is_finished()), "the loops ended before the other calls did");
    for running in loops {
        running.abort();
    }
}

#[tokio::test]
async fn what_a_guest_says_of_a_failure_is_one_bounded_line_of_the_log() {
    let sink = Sink::default();
    let writer = sink.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let host = Host::start(crate::support::config(), vec![source(HOSTILE)]).await.unwrap();
    // The guest's error repeats the text of the arguments.
    let client = host.connect(None).unwrap();
    let asked = client.request("tools/call", json!({ "name": "internal", "arguments": { "x": "y".repeat(100_000) } })).await.unwrap();
    assert_eq!(asked["error"]["data"]["type"], "handler_error");
    drop(guard);
    let bytes = sink.0.lock().unwrap().clone();
    let said = String::from_utf8(bytes).unwrap();
    let failed: Vec<&str> = said.lines().filter(|line| line.contains("internal")).collect();
    assert_eq!(failed.len(), 1, "{said}");
    assert!(failed[0].len() < 8 << 10 && failed[0].contains("bytes more"), "{}", failed[0].len());
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused_on_http() {
    let mut config = crate::support::config();
    config.limits.message = Size(1_000);
    let (_host, address) = serve(vec![source(HOSTILE)], config).await;
    let message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo", "arguments": { "x": "y".repeat(2_000) } } });
    let (status, _, body) = post(address, "/mcp", &headers(Revision::LATEST_MODERN, None, &message), &message).await;
    assert_eq!(status, 413);
    assert!(last_message(&body)["error"]["message"].as_str().unwrap().contains("1000"), "the limit is named");
}

#[tokio::test]
async fn only_the_tools_that_the_operator_names_are_served() {
    let mut guest = source(HOSTILE);
    guest.config.tools = Some(vec!["echo".into(), "log-*".into()]);
    let host = Host::start(crate::support::config(), vec![guest]).await.unwrap();
    let client = host.connect(None).unwrap();
    let listed = client.request("tools/list", json!({})).await.unwrap();
    let names: Vec<&str> = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["echo", "log-flood", "log-long", "log-long-name"]);
    let refused = client.request("tools/call", json!({ "name": "panic", "arguments": {} })).await.unwrap();
    assert_eq!(refused["error"]["code"], -32602);
}
