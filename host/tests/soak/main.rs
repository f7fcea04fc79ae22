//! Memory over time: calls of every kind, and guests that are loaded and dropped again, do not make the process grow.
//!
//! A program of its own, so that nothing else is in the figure. `cargo test` runs a short form of it; `just soak` the long one,
//! whose counts the variables `SOAK_CALLS` and `SOAK_LOADS` say.
#![expect(clippy::unwrap_used, clippy::panic, unreachable_pub, reason = "helpers of tests may panic, and are shared")]

#[expect(dead_code, reason = "shared with the other tests of guests, which use all of it")]
#[path = "../guest/support.rs"]
mod support;

use guesthouse::config::grants::InstancePolicy;
use guesthouse::guest::{CallLimits, Keeping, Settings, Version, load_bytes};
use support::{Recorder, call, engines, hostile, keeper, limits, settings, text};

/// Part of the whole that the process may grow by, in hundredths.
const GROWTH_MAX: u64 = 5;
/// What has happened before the figure is taken: the slots of the pool that come and go with guests have all been used.
const WARM_UP_CALLS: usize = 2_000;
const WARM_UP_LOADS: usize = 150;

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read")]
fn count(variable: &str, short: usize) -> usize {
    std::env::var(variable).map_or(short, |count| count.parse().unwrap())
}

/// Pages of this process that are in memory.
fn resident_pages() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// One guest under each policy, loaded anew.
fn load_all() -> [Version; 3] {
    // Under the last two, sessions make each other's instances go all the time.
    let load = |component: &[u8], policy| {
        let keeping = Keeping { policy, instances_max: 4, saved_total_bytes_max: 16 << 10, ..Keeping::default() };
        let limits = CallLimits { log_lines: 10, ..limits() };
        load_bytes(engines(), "guest.wasm", component, Settings { keeping, ..settings(limits) }).unwrap()
    };
    [load(hostile(), InstancePolicy::Call), load(keeper(), InstancePolicy::Session), load(keeper(), InstancePolicy::Shared)]
}

async fn in_session(version: &Version, session: usize, tool: &str) -> bool {
    let (caller, _) = Recorder::new();
    version.call_tool(Some(caller.of_session(&session.to_string())), tool.into(), "20".into()).await.is_ok()
}

/// One call of some kind: most succeed, some crash, and some end with what they were refused.
async fn one_call([fresh, by_session, shared]: &[Version; 3], number: usize) {
    let session = number / 10 % 50;
    match number % 10 {
        0 => assert!(call(fresh, "trap", "").await.is_err()),
        1 => assert!(call(fresh, "huge", "").await.is_err()),
        2 => assert!(in_session(fresh, session, "progress-quick").await),
        3 => assert!(!in_session(by_session, session, "trap").await),
        4 => by_session.end_session(&session.to_string().into()),
        5 | 6 => assert!(in_session(by_session, session, "count").await),
        7 => assert!(in_session(shared, 0, "flood").await),
        _ => assert_eq!(text(call(fresh, "echo", "hello").await), "hello"),
    }
}

async fn calls(versions: &[Version; 3], count: usize) {
    for number in 0..count {
        one_call(versions, number).await;
    }
}

/// Loads guests, calls each, and drops them with what they keep.
async fn loads(count: usize) {
    for at in 0..count {
        if at % 100 == 0 {
            eprintln!("{at} loads: {} pages", resident_pages());
        }
        let versions = load_all();
        for version in &versions {
            version.describe().await.unwrap();
        }
        calls(&versions, 10).await;
    }
}

#[tokio::test]
async fn the_process_does_not_grow() {
    let (many_calls, many_loads) = (count("SOAK_CALLS", 5_000), count("SOAK_LOADS", 50));
    let versions = load_all();
    for version in &versions {
        version.describe().await.unwrap();
    }
    calls(&versions, WARM_UP_CALLS).await;
    loads(WARM_UP_LOADS).await;
    let before = resident_pages();
    calls(&versions, many_calls).await;
    let after_calls = resident_pages();
    loads(many_loads).await;
    let after = resident_pages();
    eprintln!("resident pages: {before} before, {after_calls} after {many_calls} calls, {after} after {many_loads} loads");
    let most = before * (100 + GROWTH_MAX) / 100;
    assert!(after_calls <= most, "{many_calls} calls made the process grow from {before} to {after_calls} pages");
    assert!(after <= most, "{many_loads} loads made the process grow from {before} to {after} pages");
}
