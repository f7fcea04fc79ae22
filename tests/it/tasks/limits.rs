//! How tasks end before they are done, and how many there may be.

use super::{GUEST, HOSTILE, PATIENCE, begin, call, get, host, modern, text, until_is};
use crate::support::clients::source;
use guesthouse::config::Config;
use guesthouse::host::Host;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Calls of the only guest that are alive.
fn alive(host: &Host) -> usize {
    let mut alive = 0;
    host.each_guest(|guest| alive += guest.version.calls_alive());
    alive
}

async fn until_idle(host: &Host) {
    let idle = async {
        while alive(host) > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, idle).await.expect("the guest goes on");
}

#[tokio::test]
async fn cancelling_a_task_stops_a_guest_that_spins() {
    let host = host("[tasks]\nafter = \"0s\"", HOSTILE).await;
    let client = host.connect(None).unwrap();
    let id = begin(&client, "loop", json!({})).await;
    assert_eq!(alive(&host), 1);
    for _ in 0..2 {
        let cancelled = modern(&client, "tasks/cancel", json!({ "taskId": id })).await;
        assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
    }
    until_idle(&host).await;
    let task = get(&client, &id).await;
    assert_eq!((&task["status"], &task["statusMessage"]), (&json!("cancelled"), &json!("The task was cancelled by request")));
}

#[tokio::test]
async fn a_tasks_own_limits_hold_from_the_moment_it_is_one() {
    let limits = |wall: u64, task: u64| {
        let mut guest = source(HOSTILE);
        guest.config.limits.wall = guesthouse::config::units::Span(wall);
        guest.config.limits.task = guesthouse::config::units::Span(task);
        guest.config.limits.cpu = guesthouse::config::units::Span(60_000);
        guest
    };
    let soon = crate::support::in_memory(Config::parse("[tasks]\nafter = \"20ms\"").unwrap());
    let host = Host::start(soon.clone(), vec![limits(60_000, 100)]).await.unwrap();
    let client = host.connect(None).unwrap();
    let id = begin(&client, "loop", json!({})).await;
    assert_eq!(get(&client, &id).await["status"], "working", "a task never has less time than its call had");
    modern(&client, "tasks/cancel", json!({ "taskId": id })).await;
    let host = Host::start(soon, vec![limits(100, 400)]).await.unwrap();
    let client = host.connect(None).unwrap();
    let begun = std::time::Instant::now();
    let id = begin(&client, "loop", json!({})).await;
    let task = until_is(&client, &id, "failed").await;
    assert_eq!(task["error"]["data"]["type"], "handler_timeout", "{task}");
    assert!(begun.elapsed() >= Duration::from_millis(400));
}

#[tokio::test]
async fn there_is_room_for_so_many_tasks() {
    let host = host("[tasks]\nafter = \"0s\"\ncount = 1", GUEST).await;
    let client = host.connect(None).unwrap();
    let id = begin(&client, "slow_compute", json!({ "seconds": 60 })).await;
    let refused = call(&client, "failing_job", json!({})).await;
    assert_eq!(refused["error"]["data"]["type"], "busy", "{refused}");
    // What need not be a task goes on as a call.
    let answer = call(&client, "slow_compute", json!({ "seconds": 0.1 })).await;
    assert_eq!(text(&answer["result"]), "result: done after 0.1 s");
    modern(&client, "tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(get(&client, &id).await["status"], "cancelled", "what is over is kept, too");
}

#[tokio::test]
async fn tasks_leave_places_to_calls() {
    let mut guest = source(HOSTILE);
    guest.config.limits.concurrency = 2;
    let host = Host::start(crate::support::in_memory(Config::parse("[tasks]\nafter = \"0s\"").unwrap()), vec![guest]).await.unwrap();
    let client = Arc::new(host.connect(None).unwrap());
    begin(&client, "loop", json!({})).await;
    // The second may not become a task, so that it ends as a call; meanwhile it has the other place.
    let second = tokio::spawn({
        let client = client.clone();
        async move { call(&client, "loop", json!({})).await }
    });
    while alive(&host) < 2 {
        tokio::task::yield_now().await;
    }
    second.abort();
}
