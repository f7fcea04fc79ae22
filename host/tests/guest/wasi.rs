//! A guest built on WASI finds real clocks and randomness, a log for its output, and nothing else.

use guesthouse::guest::{CallLimits, load_bytes};

use crate::context::logged;
use crate::support::{call, engines, hostile_on_wasi, limits, settings, text};

#[tokio::test]
async fn nothing_is_reachable_but_time_and_chance() {
    let version = load_bytes(engines(), "hostile.wasm", hostile_on_wasi(), settings(limits())).unwrap();
    let first = text(call(&version, "surroundings", "").await);
    assert!(first.starts_with("vars 0 args 0 files 0 input Some(0) year real random "), "{first}");
    let second = text(call(&version, "surroundings", "").await);
    assert_ne!(first, second, "the random seed is the same in two instances");
}

#[tokio::test]
async fn output_goes_to_the_log_line_by_line() {
    let log = logged(hostile_on_wasi(), limits(), "print").await;
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines.len(), 3, "{log}");
    for (line, origin, text) in [(0, "stdout", "to stdout"), (1, "stdout", "\\u{1b}[31mand on"), (2, "stderr", "to stderr")] {
        assert!(lines[line].contains("guest=\"hostile\""), "{log}");
        assert!(lines[line].contains(origin) && lines[line].contains(text), "{log}");
    }
}

#[tokio::test]
async fn a_flood_of_output_is_cut() {
    let limits = CallLimits { cpu_ms: 20_000, ..limits() };
    let log = logged(hostile_on_wasi(), limits.clone(), "print-flood").await;
    // Ten megabytes without a line's end are one line, cut.
    assert_eq!(log.lines().count(), 1);
    assert!(log.len() < 2 * limits.log_line_bytes, "{}", log.len());
}
