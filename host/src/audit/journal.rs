//! The audit trail as lines of JSON, in a file or on standard error, written by a thread of its own.

use super::{Event, Sink};
use crate::guest::clean;
use anyhow::{Context, Result, bail};
use guesthouse_protocol::model::tasks::iso_8601;
use serde_json::json;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// Lines of one guest that wait to be written. Beyond, its events are counted and dropped: a slow disk must not hold calls up, and
/// a guest that is busy must not push out what is to be said of the others.
const GUEST_QUEUE_LEN: usize = 1_024;
/// Longest value of an event that is written; the rest is cut.
const VALUE_BYTES_MAX: usize = 1 << 10;
/// Permission bits of a file that let others than the owner in.
const OTHERS_MODE: u32 = 0o077;

/// Writes events down. Dropping it writes what waits.
pub struct Journal {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What waits to be written.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// Told when there is something to write, or nothing more will come.
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<String>,
    /// How many of them are of each guest.
    by_guest: HashMap<String, usize>,
    /// Lines of each guest that found no room.
    dropped: BTreeMap<String, u64>,
    over: bool,
}

impl Queue {
    /// No code panics while it holds the lock; were it ever to, the state would still be whole.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that waits, as soon as something does. It is the last, if it says so.
    fn take(&self) -> Waiting {
        let mut waiting = self.lock();
        while waiting.lines.is_empty() && waiting.dropped.is_empty() && !waiting.over {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let over = waiting.over;
        std::mem::replace(&mut *waiting, Waiting { over, ..Waiting::default() })
    }
}

impl Journal {
    /// A journal that is added to the end of a file. One that others than this user can read or write is refused.
    pub fn open(file: &Path) -> Result<Journal> {
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(file);
        let opened = opened.with_context(|| format!("cannot open the audit file `{}`", file.display()))?;
        check(&opened, file)?;
        Journal::to(opened)
    }

    /// A journal on standard error.
    pub fn on_stderr() -> Result<Journal> {
        Journal::to(io::stderr())
    }

    fn to(out: impl Write + Send + 'static) -> Result<Journal> {
        let queue = Arc::new(Queue::default());
        let written = queue.clone();
        let thread = std::thread::Builder::new().name("audit".into()).spawn(move || write(&written, out));
        let thread = thread.context("cannot start the thread of the audit trail")?;
        Ok(Journal { queue, thread: Mutex::new(Some(thread)) })
    }
}

/// Refuses a file that was there before, and is not this user's alone.
fn check(opened: &File, file: &Path) -> Result<()> {
    let shown = file.display();
    let found = opened.metadata().with_context(|| format!("cannot look at the audit file `{shown}`"))?;
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        bail!(
            "the audit file `{shown}` belongs to user {}, not to this process's user {own}; name a file of your own with `audit` in [admin]",
            found.uid()
        );
    }
    if found.mode() & OTHERS_MODE != 0 {
        bail!("the audit file `{shown}` is open to other users (mode {:03o}); run `chmod 600` on it", found.mode() & 0o777);
    }
    Ok(())
}

impl Sink for Journal {
    fn record(&self, event: &Event<'_>) {
        let line = line(event, now_ms());
        let mut waiting = self.queue.lock();
        let of_guest = waiting.by_guest.entry(event.guest.to_owned()).or_default();
        if *of_guest < GUEST_QUEUE_LEN {
            *of_guest = of_guest.saturating_add(1);
            waiting.lines.push_back(line);
        } else {
            let dropped = waiting.dropped.entry(event.guest.to_owned()).or_default();
            *dropped = dropped.saturating_add(1);
        }
        drop(waiting);
        self.queue.changed.notify_one();
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.queue.lock().over = true;
        self.queue.changed.notify_one();
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

/// Writes lines until no more will come; everything that waits goes out in one write.
fn write(queue: &Queue, mut out: impl Write) {
    let mut failed = false;
    loop {
        let Waiting { lines, dropped, over, .. } = queue.take();
        let mut text: String = lines.into_iter().collect();
        for (guest, count) in dropped {
            let note = json!({ "time": iso_8601(now_ms()), "event": "dropped", "guest": guest, "count": count });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Audit, What};
    use serde_json::Value;
    use std::os::unix::fs::PermissionsExt as _;

    fn event(value: &str) -> Event<'_> {
        event_of("forge", value)
    }

    fn event_of<'a>(guest: &'a str, value: &'a str) -> Event<'a> {
        Event { what: What::Refused, guest, subject: "http", value, principal: Some("alice") }
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
    fn what_finds_no_room_is_counted_and_pushes_out_nothing_of_other_guests() {
        let (go, stuck) = std::sync::mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let journal = Journal::to(Stuck(stuck, written.clone())).unwrap();
        // The writer may take what waits once before it stands still.
        let sent = 3 * GUEST_QUEUE_LEN;
        for _ in 0..sent {
            journal.record(&event("a"));
        }
        journal.record(&event_of("notes", "b"));
        drop(go);
        drop(journal);
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of =
            |event: &str, guest: &str| lines.iter().filter(|line| line["event"] == event && line["guest"] == guest).collect::<Vec<_>>();
        let dropped: u64 = of("dropped", "forge").iter().map(|line| line["count"].as_u64().unwrap()).sum();
        assert_eq!(of("refused", "forge").len() as u64 + dropped, sent as u64);
        assert!(dropped > 0);
        assert_eq!((of("refused", "notes").len(), of("dropped", "notes").len()), (1, 0));
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        std::fs::write(&file, "").unwrap();
        for (mode, refused) in [(0o644, true), (0o620, true), (0o600, false)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            let error = Journal::open(&file).err().map(|error| error.to_string());
            assert_eq!(error.as_ref().is_some_and(|error| error.contains("chmod 600")), refused, "{mode:o}: {error:?}");
        }
    }
}
