//! Each misdeed fails its own call, with the right kind, while another call succeeds.

use std::time::{Duration, Instant};

use guesthouse::guest::bindings::tools::ToolOutcome;
use guesthouse::guest::bindings::types::{Error, RpcError};
use guesthouse::guest::{CallLimits, Failure, SizeClass, Version};

use crate::support::{Recorder, call, configured, is_pending, limits, text, version};

/// A tool, its arguments, and whether this is how it must fail.
type Misdeed = (&'static str, &'static str, IsExpected);
type IsExpected = fn(&Failure) -> bool;

const MISDEEDS: &[Misdeed] = &[
    ("loop", "", |failure| *failure == Failure::CpuBudget),
    ("grow", "", |failure| *failure == Failure::Memory),
    ("recurse", "", |failure| matches!(failure, Failure::Trap(_))),
    ("trap", "", |failure| matches!(failure, Failure::Trap(text) if text.contains("unreachable"))),
    ("panic", "", |failure| matches!(failure, Failure::Trap(_))),
    ("huge", "", |failure| *failure == Failure::OutputTooLarge { bytes: 1 << 20 }),
    ("alias", "", |failure| *failure == Failure::OutputTooLarge { bytes: 1 << 20 }),
    ("not-found", "a", |failure| *failure == Failure::Guest(Error::NotFound("a".into()))),
    ("invalid-params", "b", |failure| *failure == Failure::Guest(Error::InvalidParams("b".into()))),
    ("missing-capability", "", |failure| matches!(failure, Failure::Guest(Error::MissingClientCapability(_)))),
    ("internal", "c", |failure| *failure == Failure::Guest(Error::Internal("c".into()))),
    ("rpc", "d", |failure| *failure == Failure::Guest(Error::Rpc(RpcError { code: 7, message: "d".into(), data: None }))),
    ("no such tool", "", |failure| *failure == Failure::Guest(Error::NotFound("no such tool".into()))),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_misdeed_fails_its_own_call_only() {
    let version = version(limits());
    for (tool, arguments, expected) in MISDEEDS {
        let (bad, good) = tokio::join!(call(&version, tool, arguments), call(&version, "echo", "hello"));
        let failure = bad.expect_err(tool);
        assert!(expected(&failure), "{tool}: {failure:?}");
        assert_eq!(text(good), "hello", "beside {tool}");
        assert_eq!(text(call(&version, "echo", "after").await), "after", "after {tool}");
    }
}

#[tokio::test]
async fn outputs_of_any_shape_within_the_limit_pass_unread() {
    let version = version(limits());
    assert_eq!(text(call(&version, "huge", "1000000").await).len(), 1_000_000);
    for (tool, length) in [("bad-json", 9), ("deep-json", 100_000)] {
        let ToolOutcome::Complete(result) = call(&version, tool, "").await.unwrap() else { panic!("{tool}") };
        assert_eq!(result.structured_content.unwrap().len(), length);
    }
}

#[tokio::test]
async fn the_deadline_ends_guests_that_compute_and_guests_that_wait() {
    let version = version(CallLimits { wall_ms: 150, cpu_ms: 60_000, ..limits() });
    let start = Instant::now();
    assert_eq!(call(&version, "loop", "").await, Err(Failure::Deadline));
    let (caller, record) = Recorder::stalled();
    let waiting = version.call_tool(Some(caller), "progress".into(), String::new()).await;
    assert_eq!(waiting, Err(Failure::Deadline));
    assert!(record.lock().unwrap().ended);
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn looping_guests_do_not_hold_the_thread_of_others() {
    // One thread for everything here: a guest that did not yield would block it for good.
    let version = version(CallLimits { cpu_ms: 60_000, ..limits() });
    let mut loops: Vec<_> = (0..4).map(|_| Box::pin(call(&version, "loop", ""))).collect();
    for round in 0..20 {
        for looping in &mut loops {
            assert!(is_pending(looping).await);
        }
        assert_eq!(text(call(&version, "echo", "quick").await), "quick", "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn dropping_a_call_stops_its_guest() {
    let version = version(CallLimits { cpu_ms: 600_000, wall_ms: 600_000, concurrency: 1, ..limits() });
    for (tool, polls) in [("loop", 1), ("loop", 200)] {
        let (caller, record) = Recorder::new();
        let mut looping = Box::pin(version.call_tool(Some(caller), tool.into(), String::new()));
        for _ in 0..polls {
            assert!(is_pending(&mut looping).await);
            tokio::task::yield_now().await;
        }
        assert!(!record.lock().unwrap().ended);
        drop(looping);
        let start = Instant::now();
        while !record.lock().unwrap().ended {
            assert!(start.elapsed() < Duration::from_secs(10), "still running {tool} after {polls} polls");
            tokio::task::yield_now().await;
        }
    }
    // Its permit is free, too.
    assert_eq!(text(eventually(&version, "echo").await), "arguments");
}

async fn eventually(version: &Version, tool: &str) -> Result<ToolOutcome, Failure> {
    let start = Instant::now();
    loop {
        match call(version, tool, "arguments").await {
            Err(Failure::Busy) if start.elapsed() < Duration::from_secs(10) => tokio::task::yield_now().await,
            other => return other,
        }
    }
}

#[tokio::test]
async fn calls_beyond_the_concurrency_are_told_that_the_guest_is_busy() {
    let version = version(CallLimits { concurrency: 2, ..limits() });
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let (caller, _) = Recorder::stalled();
        let mut stalled = Box::pin(version.call_tool(Some(caller), "progress".into(), String::new()));
        assert!(is_pending(&mut stalled).await);
        waiting.push(stalled);
    }
    assert_eq!(version.calls_alive(), 2);
    assert_eq!(call(&version, "echo", "").await, Err(Failure::Busy));
    waiting.pop();
    assert_eq!(version.calls_alive(), 1);
    assert_eq!(text(call(&version, "echo", "free").await), "free");
}

#[tokio::test]
async fn a_start_that_fails_says_so() {
    let table: [(&str, IsExpected); 5] = [
        (r#"{"start":"refuse"}"#, |failure| *failure == Failure::StartFailed("init refused: no such unit\\n\\u{1b}[31m".into())),
        (r#"{"start":"trap"}"#, |failure| matches!(failure, Failure::StartFailed(_))),
        (r#"{"start":"loop"}"#, |failure| *failure == Failure::CpuBudget),
        (r#"{"start":"grow"}"#, |failure| *failure == Failure::Memory),
        ("", |_| false),
    ];
    for (config, expected) in table {
        match call(&configured(config), "echo", "started").await {
            Err(failure) => assert!(expected(&failure), "{config}: {failure:?}"),
            outcome => {
                assert_eq!(config, "");
                assert_eq!(text(outcome), "started");
            }
        }
    }
}

#[tokio::test]
async fn a_component_of_more_core_instances_than_allowed_does_not_start() {
    // The guest's own module, and those that the encoder puts around it.
    for (core_instances, starts) in [(64, true), (1, false)] {
        let outcome = call(&version(CallLimits { core_instances, ..limits() }), "echo", "started").await;
        match outcome {
            Err(Failure::StartFailed(text)) => assert!(!starts && text.contains("instance"), "{text}"),
            outcome => assert!(starts && text(outcome) == "started"),
        }
    }
}

#[tokio::test]
async fn an_instance_finds_nothing_of_the_one_before() {
    let version = version(limits());
    let first = text(call(&version, "sparse-growth", "").await);
    assert!(first.starts_with("0 dirty of 128 pages from "), "{first}");
    for _ in 0..20 {
        assert_eq!(text(call(&version, "sparse-growth", "").await), first);
    }
}

#[tokio::test]
async fn what_is_not_exported_is_not_called() {
    let version = version(limits());
    assert!(version.exports().tools && !version.exports().prompts && !version.exports().resources);
    assert_eq!(version.list_prompts(None, None).await.err(), Some(Failure::NotExported("prompts")));
    assert_eq!(version.read_resource(None, "a:b".into()).await.err(), Some(Failure::NotExported("resources")));
    assert_eq!(version.class(), SizeClass::Small);
    assert_eq!(version.describe().await.unwrap().name, "hostile");
    let tools = version.list_tools(None, None).await.unwrap().tools;
    assert!(tools.iter().any(|tool| tool.name == "echo"));
}
