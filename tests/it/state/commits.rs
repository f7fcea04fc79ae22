//! When state is saved: with a callback that returns ok, all of it at once, and as if callbacks ran one after the other.

use super::*;
use guesthouse::config::units::{Size, Span};

const CLIENTS: usize = 16;
const COUNTS: u64 = 25;

#[tokio::test]
async fn a_callback_that_does_not_return_ok_leaves_no_trace() {
    let mut guest = granted();
    guest.config.limits.wall = Span(1_000);
    let host = host(in_memory(), guest).await;
    let set = json!([{ "bucket": "guest", "do": "set", "key": "a", "value": "1" }, { "bucket": "principal", "do": "count", "key": "n" }]);
    for end in ["error", "failed", "trap", "ask", "loop"] {
        let answer = run_to(&host, set.clone(), end).await;
        let asks = answer["result"]["resultType"] == "input_required";
        assert!(answer.get("error").is_some() || answer["result"]["isError"] == true || asks, "{end}: {answer}");
    }
    let looks = json!([{ "bucket": "guest", "do": "list" }, { "bucket": "principal", "do": "get", "key": "n" }]);
    assert_eq!(run(&host, looks).await, json!([{ "keys": [], "cursor": null }, null]));
}

/// Many clients count on one key, by reading and writing. Says what they counted to.
async fn count_together(hosts: &[Host], bucket: &'static str) -> Vec<u64> {
    let clients = (0..CLIENTS).map(|client| {
        let host = hosts[client % hosts.len()].clone();
        tokio::spawn(async move {
            let mut numbers = Vec::new();
            for _ in 0..COUNTS {
                let seen = run(&host, json!([{ "bucket": bucket, "do": "count", "key": "n" }])).await;
                numbers.push(seen[0].as_u64().unwrap_or_else(|| panic!("{seen}")));
            }
            numbers
        })
    });
    let mut numbers = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        numbers.extend(client.await.unwrap());
    }
    numbers.sort_unstable();
    numbers
}

fn every_number() -> Vec<u64> {
    (1..=CLIENTS as u64 * COUNTS).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_clients_on_one_counter_lose_nothing_and_fail_nothing_in_memory() {
    let host = host(in_memory(), granted()).await;
    assert_eq!(count_together(&[host], "guest").await, every_number());
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_clients_on_one_counter_lose_nothing_and_fail_nothing_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = in_file(&folder.path().join("state/state.db"));
    let first = host(config.clone(), granted()).await;
    assert_eq!(count_together(&[first], "principal").await, every_number());
    // Nor does a restart.
    let second = host(config, granted()).await;
    let seen = run(&second, json!([{ "bucket": "principal", "do": "get", "key": "n" }])).await;
    assert_eq!(seen, json!([every_number().len().to_string()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_do_those_of_two_hosts_that_share_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = in_file(&folder.path().join("state/state.db"));
    let hosts = [host(config.clone(), granted()).await, host(config, granted()).await];
    assert_eq!(count_together(&hosts, "guest").await, every_number());
}

#[tokio::test]
async fn quotas_are_held_and_named() {
    let mut guest = granted();
    guest.config.limits = GuestLimits { keys: 3, value: Size(100), state: Size(200), ..GuestLimits::default() };
    let host = host(in_memory(), guest).await;
    let set = |key: &str, bytes: usize| json!({ "bucket": "guest", "do": "fill", "key": key, "bytes": bytes });
    let seen = run(&host, json!([set("a", 101), set("a", 99), set("b", 99), set("c", 1), set("b", 1), set("c", 1), set("d", 1)])).await;
    let said = |place: usize| seen[place]["error"].as_str().unwrap_or_default().to_owned();
    assert!(said(0).contains("`value`") && said(3).contains("`state`") && said(6).contains("`keys`"), "{seen}");
    assert_eq!(json!([seen[1], seen[2], seen[4], seen[5]]), json!([null, null, null, null]));
    // All buckets count together. What can only be known at the end fails the call, and none of it is saved.
    let late = run_to(&host, json!([{ "bucket": "principal", "do": "fill", "key": "d", "bytes": 1 }]), "ok").await;
    assert_eq!(late["error"]["data"]["type"], "handler_error", "{late}");
    let listed = run(&host, json!([{ "bucket": "principal", "do": "list" }, { "bucket": "guest", "do": "list" }])).await;
    assert_eq!(json!([listed[0]["keys"], listed[1]["keys"]]), json!([[], ["a", "b", "c"]]));
}

#[tokio::test]
async fn a_storage_that_cannot_be_opened_is_said_at_the_start_where_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in/the/way");
    std::fs::write(folder.path().join("in"), "a file").unwrap();
    let Err(error) = Host::start(in_file(&path), vec![granted()]).await else { panic!("it started") };
    let said = format!("{error:#}");
    assert!(said.contains("in/the") && said.contains("[storage]"), "{said}");
    // Who saves nothing needs no place for it.
    Host::start(in_file(&path), vec![source("tests/guests/echo")]).await.unwrap();
}

#[tokio::test]
async fn a_value_of_the_sdk_saves_itself_or_ends_the_call() {
    let mut guest = source("tests/guests/notes");
    guest.config.grants.state = Some(true);
    let host = host(in_memory(), guest).await;
    let client = host.connect(None).unwrap();
    let call =
        async |tool: &str, arguments: Value| client.request("tools/call", json!({ "name": tool, "arguments": arguments })).await.unwrap();
    let text = |answer: Value| answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    assert_eq!(text(call("note", json!({ "text": "a" })).await), "a; 1 by all");
    assert_eq!(text(call("note", json!({ "text": "b" })).await), "a, b; 2 by all");
    assert_eq!(call("flood", json!({})).await["error"]["data"]["type"], "handler_crash");
    assert_eq!(text(call("note", json!({ "text": "c" })).await), "a, b, c; 3 by all");
    assert_eq!(text(call("keys", json!({})).await), "count, notes");
}
