//! Fresh instances are cheap: a call of a guest that does not grow its memory makes the kernel map nothing anew.

use guesthouse::guest::{EngineLimits, Engines, load_bytes};

use crate::support::{call, hostile, limits, settings, text};

const CALLS: u64 = 1_000;

/// Page faults of this thread so far that needed no disk.
fn minor_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    // The state is field 3 of the line, and these faults are field 10.
    after_name.split_whitespace().nth(7).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_fresh_call_faults_no_page_in() {
    // Engines of its own: in a shared pool, other tests would take the slot whose pages are warm.
    let engines = Engines::new(EngineLimits::default()).unwrap();
    let version = load_bytes(&engines, "hostile.wasm", hostile(), settings(limits())).unwrap();
    for _ in 0..100 {
        text(call(&version, "echo", "warm").await);
    }
    let before = minor_faults();
    for _ in 0..CALLS {
        text(call(&version, "echo", "measured").await);
    }
    let faults = minor_faults() - before;
    assert!(faults < CALLS / 10, "{faults} page faults in {CALLS} calls");
}
