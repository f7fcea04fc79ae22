//! Every state, every step: what is possible, and what the task is then.

#![expect(clippy::panic, clippy::indexing_slicing, reason = "a test may stop at a surprise")]

use serde_json::json;

use super::*;
use crate::failure::Failure;
use crate::json::to_raw;
use crate::revision::Era;

fn task() -> Task {
    Task::new("task_1".into(), 1_000, 60_000, 500)
}

fn asked(keys: &[&str]) -> Vec<Asked> {
    keys.iter().map(|key| Asked { key: (*key).into(), question: Question::Roots }).collect()
}

/// Every step that there is, by name. Those of another state than the task's leave it as it is.
fn step(task: &mut Task, name: &str) -> bool {
    let end = |over: Over| move |_: Live| Stage::Over(over);
    match name {
        "ask" => task.advance(2_000, |live| match live {
            Live::Working(working) => working.ask(asked(&["a", "b"])).into(),
            waiting @ Live::Waiting(_) => waiting.into(),
        }),
        "answer one" => answer(task, &["a"]),
        "answer all" => answer(task, &["a", "b"]),
        "complete" => task.advance(2_000, end(Over::of(Ok(Reply::Tool(CallToolResult::default())), Revision::LATEST_MODERN))),
        "fail" => task.advance(2_000, end(Over::of(Err(Failure::Busy { retry_after_s: 1 }), Revision::LATEST_MODERN))),
        "cancel" => task.advance(2_000, end(Over::Cancelled)),
        _ => panic!("no such step: {name}"),
    }
}

fn answer(task: &mut Task, keys: &[&str]) -> bool {
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    task.advance(2_000, |live| match live {
        Live::Waiting(waiting) => waiting.answered(&keys).into(),
        working @ Live::Working(_) => working.into(),
    })
}

fn state(task: &Task) -> &'static str {
    match task.stage() {
        Stage::Live(Live::Working(_)) => "working",
        Stage::Live(Live::Waiting(waiting)) if waiting.open().len() == 1 => "waiting for b",
        Stage::Live(Live::Waiting(_)) => "waiting",
        Stage::Over(Over::Completed(_)) => "completed",
        Stage::Over(Over::Failed(_)) => "failed",
        Stage::Over(Over::Cancelled) => "cancelled",
    }
}

#[test]
fn every_step_from_every_state() {
    let steps = ["ask", "answer one", "answer all", "complete", "fail", "cancel"];
    let table = [
        ("working", vec![], ["waiting", "working", "working", "completed", "failed", "cancelled"]),
        ("waiting", vec!["ask"], ["waiting", "waiting for b", "working", "completed", "failed", "cancelled"]),
        ("waiting for b", vec!["ask", "answer one"], ["waiting for b", "waiting for b", "working", "completed", "failed", "cancelled"]),
        ("completed", vec!["complete"], ["completed"; 6]),
        ("failed", vec!["fail"], ["failed"; 6]),
        ("cancelled", vec!["cancel"], ["cancelled"; 6]),
    ];
    for (from, way, then) in table {
        for (name, expected) in steps.into_iter().zip(then) {
            let mut task = task();
            way.iter().for_each(|name| assert!(step(&mut task, name)));
            assert_eq!(state(&task), from);
            let over = task.live().is_none();
            assert_eq!(step(&mut task, name), !over, "{name} from {from}");
            assert_eq!(state(&task), expected, "{name} from {from}");
            assert_eq!(task.updated_at_ms, if way.is_empty() && over { 1_000 } else { 2_000 });
        }
    }
}

#[test]
fn nothing_asked_is_nothing_to_wait_for() {
    let mut task = task();
    task.advance(1_000, |live| match live {
        Live::Working(working) => working.ask(Vec::new()).into(),
        waiting @ Live::Waiting(_) => waiting.into(),
    });
    assert_eq!(state(&task), "working");
}

#[test]
fn a_note_is_for_work_alone_and_time_never_goes_back() {
    let mut task = task();
    assert!(task.note(500, "half".into()));
    assert_eq!((task.updated_at_ms, task.message.as_deref()), (1_000, Some("half")));
    step(&mut task, "ask");
    assert!(!task.note(3_000, "more".into()));
    assert_eq!(task.message.as_deref(), Some("half"));
    assert_eq!(task.expires_at_ms(), 61_000);
}

fn written(task: &Task, revision: Revision) -> serde_json::Value {
    let text = to_raw_written(|out| {
        let mut object = Object::new(out);
        task.write_detailed(&mut object, revision);
        object.end();
    });
    serde_json::from_str(text.get()).unwrap_or_default()
}

#[test]
fn a_tool_that_failed_has_completed_its_task_or_failed_it_by_revision() {
    let mut task = task();
    let over = Over::of(Ok(Reply::Tool(CallToolResult::error("no"))), Revision::LATEST_MODERN);
    task.advance(1_000, |_| over.into());
    let modern = written(&task, Revision::V2026_07_28);
    assert_eq!((&modern["status"], &modern["result"]["isError"]), (&json!("completed"), &json!(true)));
    assert_eq!((&modern["ttlMs"], &modern["pollIntervalMs"]), (&json!(60_000), &json!(500)));
    let older = written(&task, Revision::V2025_11_25);
    assert_eq!((&older["status"], &older["ttl"], older.get("result")), (&json!("failed"), &json!(60_000), None));
}

#[test]
fn a_failure_reads_as_it_would_without_a_task() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let missing = || Failure::MissingClientCapability(to_raw(&json!({ "roots": {} })));
        match Over::of(Err(missing()), revision) {
            Over::Failed(error) => assert_eq!((error.code, revision.era()), (-32021, Era::Modern)),
            Over::Completed(finished) => assert!(finished.is_error() && revision.era() == Era::Handshake),
            Over::Cancelled => panic!("cancelled in {revision}"),
        }
    }
}

#[test]
fn structured_content_that_only_the_modern_era_has_is_written_twice() {
    let list = CallToolResult { structured_content: Some(to_raw(&json!([1]))), ..CallToolResult::default() };
    let finished = Finished::of(&list);
    assert!(finished.form(Revision::V2026_07_28).get().contains("structuredContent"));
    assert!(!finished.form(Revision::V2025_11_25).get().contains("structuredContent"));
    assert!(Finished::of(&CallToolResult::error("x")).older.is_none());
}
