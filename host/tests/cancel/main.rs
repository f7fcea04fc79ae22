//! What a guest still computes after its call was cancelled, in processor time, so that the figure holds on a busy machine, too.
//!
//! A program of its own: nothing else runs on the threads for long calls here.
#![expect(clippy::unwrap_used, clippy::panic, unreachable_pub, reason = "helpers of tests may panic, and are shared")]

#[expect(dead_code, reason = "shared with the other tests of guests, which use all of it")]
#[path = "../guest/support.rs"]
mod support;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use guesthouse::guest::CallLimits;
use support::{Record, Recorder, is_pending, limits, version};

/// What a cancelled call may use afterwards.
const AFTERWARDS_MAX: Duration = Duration::from_millis(100);
/// What it has used before, so that it runs where long calls run.
const BEFORE: Duration = Duration::from_millis(30);
const PATIENCE: Duration = Duration::from_secs(120);

/// Processor time of the threads for long calls so far.
fn used() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    let nanoseconds = threads.filter_map(|thread| {
        // A thread may be gone by now.
        let name = std::fs::read_to_string(thread.join("comm")).ok()?;
        let times = std::fs::read_to_string(thread.join("schedstat")).ok()?;
        let first = times.split_whitespace().next()?.to_owned();
        (name.trim() == "guest-batch").then(|| first.parse::<u64>().unwrap())
    });
    Duration::from_nanos(nanoseconds.sum())
}

#[tokio::test]
async fn a_cancelled_call_uses_no_more_than_a_moment() {
    let version = version(CallLimits { cpu_ms: 600_000, wall_ms: 600_000, ..limits() });
    for (round, loops) in [1, 1, 1, 1, 1, 4, 8, 8].into_iter().enumerate() {
        let records: Mutex<Vec<Arc<Mutex<Record>>>> = Mutex::default();
        let mut calls: Vec<_> = (0..loops)
            .map(|_| {
                let (caller, record) = Recorder::new();
                records.lock().unwrap().push(record);
                Box::pin(version.call_tool(Some(caller), "loop".into(), String::new()))
            })
            .collect();
        let (start, before) = (Instant::now(), used());
        while used() - before < BEFORE * loops {
            assert!(start.elapsed() < PATIENCE, "the loops do not run");
            for call in &mut calls {
                assert!(is_pending(call).await);
            }
            tokio::task::yield_now().await;
        }
        let cancelled = used();
        drop(calls);
        while !records.lock().unwrap().iter().all(|record| record.lock().unwrap().ended) {
            assert!(start.elapsed() < PATIENCE, "they still run");
            tokio::task::yield_now().await;
        }
        let afterwards = used() - cancelled;
        assert!(afterwards < AFTERWARDS_MAX, "round {round}: {loops} loops used {afterwards:?} after their end was asked for");
    }
}
