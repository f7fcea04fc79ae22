//! Guests of one size class share an engine and its threads, and none of them can take the room of another.

use std::time::{Duration, Instant};

use guesthouse::guest::{CallLimits, EngineLimits, Engines, Failure, Settings, Version, load_bytes};

use crate::support::{call, engines, hostile, limits, settings, text};

fn guest(engines: &Engines, name: &str, limits: CallLimits) -> Version {
    let settings = Settings { name: name.into(), ..settings(limits) };
    load_bytes(engines, "hostile.wasm", hostile(), settings).unwrap()
}

/// Short calls of `guest`, and some that have to move to the threads for long ones.
async fn is_served(guest: &Version) {
    for round in 0..20 {
        assert_eq!(text(call(guest, "echo", "quick").await), "quick", "round {round}");
    }
    for round in 0..3 {
        assert_eq!(text(call(guest, "work", "10000000").await), "10000000", "round {round}");
    }
}

/// A guest with as many loops as it may have, in pools of different sizes, beside a guest of the same class.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_full_of_loops_holds_up_no_other() {
    for small_instances in [8, 64, 256] {
        let limits = CallLimits { cpu_ms: 600_000, wall_ms: 600_000, ..limits() };
        let engines = Engines::new(EngineLimits { small_instances, interactive_cpu_ms: 2, ..EngineLimits::default() }).unwrap();
        let (a, c) = (guest(&engines, "a", limits.clone()), guest(&engines, "c", limits.clone()));
        let loops: Vec<_> = (0..limits.concurrency)
            .map(|_| {
                let a = a.clone();
                tokio::spawn(async move { call(&a, "loop", "").await })
            })
            .collect();
        let start = Instant::now();
        while a.calls_alive() < limits.concurrency {
            assert!(start.elapsed() < Duration::from_secs(30));
            tokio::task::yield_now().await;
        }
        is_served(&c).await;
        let running = loops.iter().filter(|running| !running.is_finished()).count();
        let places = usize::try_from(small_instances).unwrap();
        assert!(running >= (places / 2).min(limits.concurrency), "only {running} loops are left of {places} places");
        loops.iter().for_each(tokio::task::JoinHandle::abort);
        for ended in loops {
            // Those that found no place were told so.
            assert!(ended.await.map_or(true, |outcome| outcome == Err(Failure::Busy)));
        }
    }
}

#[tokio::test]
async fn limits_that_no_engine_could_give_are_refused() {
    for (limits, key, most) in [
        (CallLimits { memory_bytes: (512 << 20) + 1, ..limits() }, "limits.memory", "536870912"),
        (CallLimits { table_elements: 100_001, ..limits() }, "limits.table", "100000"),
    ] {
        let error = load_bytes(engines(), "x.wasm", hostile(), settings(limits)).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains(most), "{error}");
    }
}
