//! The audit trail as lines of JSON, in a file or on standard error, written by a thread of its own.

use super::{Event, Sink, What};
use crate::guest::clean;
use anyhow::{Context, Result};
use guesthouse_protocol::model::tasks::iso_8601;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// Lines that wait to be written. Beyond, events are counted and dropped: a slow disk must not hold calls up.
const QUEUE_LEN: usize = 4_096;
/// Longest value of an event that is written; the rest is cut.
const VALUE_BYTES_MAX: usize = 1 << 10;

/// Writes events down. Dropping it writes what waits.
pub struct Journal {
    lines: Option<SyncSender<String>>,
    dropped: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Journal {
    /// A journal that is added to the end of a file, which only this user can read.
    pub fn open(file: &Path) -> Result<Journal> {
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(file);
        let opened = opened.with_context(|| format!("cannot open the audit file `{}`", file.display()))?;
        Journal::to(opened)
    }

    /// A journal on standard error.
    pub fn on_stderr() -> Result<Journal> {
        Journal::to(io::stderr())
    }

    fn to(out: impl Write + Send + 'static) -> Result<Journal> {
        let (lines, queue) = sync_channel(QUEUE_LEN);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = dropped.clone();
        let thread = std::thread::Builder::new().name("audit".into()).spawn(move || write(&queue, out, &counted));
        let thread = thread.context("cannot start the thread of the audit trail")?;
        Ok(Journal { lines: Some(lines), dropped, thread: Mutex::new(Some(thread)) })
    }
}

impl Sink for Journal {
    fn record(&self, event: &Event<'_>) {
        let Some(lines) = &self.lines else { return };
        match lines.try_send(line(event, now_ms())) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.lines = None;
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of it has nothing to tell here.
            drop(thread.join());
        }
    }
}

/// One event as one line. Whatever a guest may have chosen is cleaned and cut.
fn line(event: &Event<'_>, now_ms: u64) -> String {
    let Event { what, guest, subject, value, principal } = event;
    let line = json!({
        "time": iso_8601(now_ms),
        "event": what.as_str(),
        "guest": guest,
        "subject": clean(subject, VALUE_BYTES_MAX),
        "value": clean(value, VALUE_BYTES_MAX),
        "principal": principal.map(|principal| clean(principal, VALUE_BYTES_MAX)),
    });
    format!("{line}\n")
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Writes lines until nobody can send any more; everything that waits goes out in one write.
fn write(queue: &Receiver<String>, mut out: impl Write, dropped: &AtomicU64) {
    let mut failed = false;
    loop {
        let next = queue.recv();
        let over = next.is_err();
        let mut text = next.unwrap_or_default();
        for next in queue.try_iter() {
            text.push_str(&next);
        }
        let missed = dropped.swap(0, Ordering::Relaxed);
        if missed > 0 {
            let note = json!({ "time": iso_8601(now_ms()), "event": "dropped", "count": missed });
            text.push_str(&format!("{note}\n"));
        }
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        if let Err(error) = &written
            && !failed
        {
            tracing::error!("the audit trail cannot be written: {error}");
        }
        failed = written.is_err();
        if over {
            return;
        }
    }
}

/// Refusals, said in the host's log, too: an author who wonders why something does not work looks there.
pub struct Refusals;

impl Sink for Refusals {
    fn record(&self, event: &Event<'_>) {
        if event.what == What::Refused {
            let (subject, value) = (clean(event.subject, VALUE_BYTES_MAX), clean(event.value, VALUE_BYTES_MAX));
            tracing::warn!(guest = event.guest, "refused: {subject} {value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Audit;
    use serde_json::Value;
    use std::os::unix::fs::PermissionsExt as _;

    fn event(value: &str) -> Event<'_> {
        Event { what: What::Refused, guest: "forge", subject: "http", value, principal: Some("alice") }
    }

    #[test]
    fn events_are_lines_of_json_that_only_the_owner_reads() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        for _ in 0..2 {
            let audit = Audit::to(Arc::new(Journal::open(&file).unwrap()));
            audit.record(&event("GET https://evil.example/\n{\"event\":\"granted\"}"));
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{text}");
        for line in lines {
            assert_eq!((&line["event"], &line["guest"], &line["principal"]), (&json!("refused"), &json!("forge"), &json!("alice")));
            assert!(line["value"].as_str().unwrap().contains("\\n"), "{line}");
        }
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn long_values_are_cut() {
        let long = "x".repeat(100_000);
        assert!(line(&event(&long), 0).len() < 2 * VALUE_BYTES_MAX);
    }

    /// A place to write that stands still until it is let go.
    struct Stuck(std::sync::mpsc::Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            self.1.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let (go, stuck) = std::sync::mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let journal = Journal::to(Stuck(stuck, written.clone())).unwrap();
        let sent = 3 * QUEUE_LEN;
        for _ in 0..sent {
            journal.record(&event("a"));
        }
        drop(go);
        drop(journal);
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let dropped: u64 = lines.iter().filter(|line| line["event"] == "dropped").map(|line| line["count"].as_u64().unwrap()).sum();
        let kept = lines.iter().filter(|line| line["event"] == "refused").count();
        assert_eq!(kept as u64 + dropped, sent as u64);
        assert!(dropped > 0);
    }
}
