//! What a guest may learn and send during a callback, and how much of it.

use std::sync::{Arc, Mutex};

use guesthouse::guest::bindings::context::LogLevel;
use guesthouse::guest::{CallLimits, Change, EngineLimits, Engines, load_bytes};

use crate::support::{Record, Recorder, configured, hostile, limits, settings, text, version};

async fn recorded(limits: CallLimits, tool: &str, arguments: &str) -> (String, Arc<Mutex<Record>>) {
    let (caller, record) = Recorder::new();
    let outcome = version(limits).call_tool(Some(caller), tool.into(), arguments.into()).await;
    (text(outcome), record)
}

#[tokio::test]
async fn the_context_speaks_of_the_request() {
    let (answer, _) = recorded(limits(), "context", "").await;
    assert_eq!(answer, r#"Some("call-1") Some(Ok("\"answer to key\"")) Some([4, 2]) true"#);
    let without = version(limits()).call_tool(None, "context".into(), String::new()).await;
    assert_eq!(text(without), "None None None true");
}

#[tokio::test]
async fn init_has_no_request() {
    let (caller, record) = Recorder::new();
    let version = configured(r#"{"start":"talk"}"#);
    text(version.call_tool(Some(caller), "echo".into(), String::new()).await);
    let record = record.lock().unwrap();
    assert!(record.logs.is_empty() && record.changes.is_empty() && record.progress.is_empty());
}

#[tokio::test]
async fn progress_reaches_the_caller_bounded() {
    let few = CallLimits { progress_per_s: 5, progress_message_bytes: 4, ..limits() };
    let (_, record) = recorded(few.clone(), "progress", "too long").await;
    assert_eq!(record.lock().unwrap().progress, [(1.0, Some(2.0), Some("too ".into()))]);
    let (refused, record) = recorded(few, "progress-flood", "").await;
    let sent = record.lock().unwrap().progress.len();
    assert_eq!(refused, "0");
    // The flood takes a while, in which the allowance grows.
    assert!((5..1_000).contains(&sent), "{sent}");
    let (answers, _) = recorded(limits(), "progress-falling", "").await;
    assert_eq!(answers, "[true, false, false, false, false, true]");
}

#[tokio::test]
async fn the_end_of_a_progress_arrives_however_fast_it_was() {
    // Ten at once, and no more within the test; then at most four in all, whatever the speed; then one; then none.
    for (per_s, most, expected) in [(10, 1_000, 11), (10_000, 4, 4), (10_000, 1, 1), (10_000, 0, 0)] {
        let limits = CallLimits { progress_per_s: per_s, progress: most, ..limits() };
        let (answer, record) = recorded(limits, "progress-quick", "500").await;
        assert_eq!(answer, "true");
        let sent: Vec<f64> = record.lock().unwrap().progress.iter().map(|report| report.0).collect();
        assert!(sent.len() >= expected && sent.len() <= usize::try_from(most).unwrap().min(100), "{sent:?}");
        assert_eq!(sent.last().copied(), (most > 0).then_some(500.0), "{sent:?}");
    }
}

#[tokio::test]
async fn changes_arrive_once_and_only_with_success() {
    let (_, record) = recorded(limits(), "changes", "").await;
    let expected = [Change::Tools, Change::Resource("file:///a".into())];
    assert_eq!(record.lock().unwrap().changes, expected);
    for tool in ["changes-then-fail", "changes-then-ask"] {
        let (caller, record) = Recorder::new();
        drop(version(limits()).call_tool(Some(caller), tool.into(), String::new()).await);
        assert!(record.lock().unwrap().changes.is_empty(), "{tool}");
    }
}

#[tokio::test]
async fn logs_reach_the_caller_bounded() {
    let (_, record) = recorded(CallLimits { log_lines: 7, ..limits() }, "log-flood", "").await;
    let logs = record.lock().unwrap().logs.clone();
    assert_eq!(logs.len(), 7);
    assert_eq!(logs[6], (LogLevel::Info, Some("flood".into()), "6".into()));
    let (_, record) = recorded(CallLimits { log_lines_per_s: 3, ..limits() }, "log-flood", "").await;
    let sent = record.lock().unwrap().logs.len();
    assert!((3..100).contains(&sent), "{sent}");
    let (_, record) = recorded(limits(), "log-long", "").await;
    assert!(record.lock().unwrap().logs.is_empty());
}

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

/// What the host logs while a tool runs, on this thread from beginning to end.
pub async fn logged(component: &[u8], limits: CallLimits, tool: &str) -> String {
    let inline = EngineLimits { interactive_cpu_ms: 60_000, ..EngineLimits::default() };
    let engines = Engines::new(inline).unwrap();
    let version = load_bytes(&engines, "hostile.wasm", component, settings(limits)).unwrap();
    let sink = Sink::default();
    let writer = sink.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let guard = tracing::subscriber::set_default(subscriber);
    text(version.call_tool(None, tool.into(), String::new()).await);
    drop(guard);
    let bytes = sink.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn the_hosts_log_names_the_guest_and_says_what_was_dropped() {
    let log = logged(hostile(), CallLimits { log_lines: 3, ..limits() }, "log-flood").await;
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines.len(), 4, "{log}");
    assert!(lines[2].contains("guest=\"hostile\"") && lines[2].contains("flood: 2"), "{log}");
    assert!(lines[3].contains("dropped=9997"), "{log}");
}

#[tokio::test]
async fn a_log_line_cannot_forge_another() {
    let log = logged(hostile(), limits(), "log-long").await;
    assert_eq!(log.lines().count(), 1);
    assert!(log.len() < 3 * limits().log_line_bytes && log.contains("bytes more"), "{}", log.len());
}
