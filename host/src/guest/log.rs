//! What guests write, on its way into the host's log: attributed, cleaned, cut, counted and rate-limited.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::bindings::context::LogLevel;
use super::limits::CallLimits;
use super::said::Said;

/// Makes a guest's text safe to print: control characters (line ends and terminal sequences among them) and the
/// characters that reorder text are escaped, and what is longer than `bytes_max` is cut.
pub fn clean(text: &str, bytes_max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(bytes_max));
    for (at, character) in text.char_indices() {
        if at >= bytes_max {
            // Writing into a String cannot fail.
            let _ = write!(out, "… ({} bytes more)", text.len() - at);
            break;
        }
        let reorders = matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || reorders {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// The log of one guest, over all its calls.
#[derive(Debug)]
pub(crate) struct GuestLog {
    name: String,
    lines_per_s: u32,
    line_bytes_max: usize,
    bucket: Mutex<Bucket>,
    /// Reports that did not pass since the last one that did.
    unsaid: AtomicU32,
}

impl GuestLog {
    pub(crate) fn new(name: &str, limits: &CallLimits) -> GuestLog {
        GuestLog {
            name: name.to_owned(),
            lines_per_s: limits.log_lines_per_s,
            line_bytes_max: limits.log_line_bytes,
            bucket: Mutex::new(Bucket::full(limits.log_lines_per_s)),
            unsaid: AtomicU32::new(0),
        }
    }

    fn take(&self) -> bool {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner).take(self.lines_per_s, Instant::now())
    }

    /// Writes what the host has to say of the guest. It may quote the guest and its client, so it is cleaned, cut and
    /// counted like what the guest writes itself.
    pub(crate) fn report(&self, version: &str, text: &str) {
        if !self.take() {
            self.unsaid.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (guest, line) = (self.name.as_str(), clean(text, self.line_bytes_max));
        match self.unsaid.swap(0, Ordering::Relaxed) {
            0 => tracing::error!(guest, version, "{line}"),
            unsaid => tracing::error!(guest, version, unsaid, "{line}"),
        }
    }
}

/// The log of one call, over all runs of its callback. When it is dropped, it says how many lines did not pass.
#[derive(Debug)]
pub(crate) struct CallLog {
    guest: Arc<GuestLog>,
    lines_left: AtomicU32,
    dropped: AtomicU32,
    line_bytes_max: usize,
    said: Mutex<Said>,
}

impl CallLog {
    pub(crate) fn new(guest: &Arc<GuestLog>, limits: &CallLimits) -> CallLog {
        CallLog {
            guest: Arc::clone(guest),
            lines_left: AtomicU32::new(limits.log_lines),
            dropped: AtomicU32::new(0),
            line_bytes_max: limits.log_line_bytes,
            said: Mutex::default(),
        }
    }

    /// The callback begins again from the top. The lines that it then repeats are not written again.
    pub(crate) fn run_again(&self) {
        self.said().run_again();
    }

    /// Another call begins, on an instance that was kept. Says what did not pass of the one before.
    pub(crate) fn renew(&self, limits: &CallLimits) {
        self.lines_left.store(limits.log_lines, Ordering::Relaxed);
        *self.said() = Said::default();
        self.say_dropped(self.dropped.swap(0, Ordering::Relaxed));
    }

    fn say_dropped(&self, dropped: u32) {
        if dropped > 0 {
            let guest = self.guest.name.as_str();
            tracing::warn!(target: "guest", guest, dropped, "the guest wrote more lines than its log limits allow");
        }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line from the allowance of the call and of the guest; without one, the line counts as dropped. False, too, if
    /// the line was written in an earlier run.
    pub(crate) fn take(&self, line: &[u8]) -> bool {
        if self.said().repeats(line) {
            return false;
        }
        let within_call = self.lines_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        let pass = within_call && self.guest.take();
        if !pass {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        pass
    }

    /// Writes a line that `take` let pass. `origin` says where it comes from: `log`, `stdout` or `stderr`.
    pub(crate) fn write(&self, level: LogLevel, origin: &str, text: &str) {
        let guest = self.guest.name.as_str();
        let line = clean(text, self.line_bytes_max);
        match level {
            LogLevel::Debug => tracing::debug!(target: "guest", guest, origin, "{line}"),
            LogLevel::Info | LogLevel::Notice => tracing::info!(target: "guest", guest, origin, "{line}"),
            LogLevel::Warning => tracing::warn!(target: "guest", guest, origin, "{line}"),
            LogLevel::Error | LogLevel::Critical | LogLevel::Alert | LogLevel::Emergency => {
                tracing::error!(target: "guest", guest, origin, "{line}");
            }
        }
    }

    pub(crate) fn line_bytes_max(&self) -> usize {
        self.line_bytes_max
    }
}

impl Drop for CallLog {
    fn drop(&mut self) {
        let dropped = *self.dropped.get_mut();
        self.say_dropped(dropped);
    }
}

/// A token bucket that holds what one second grants.
#[derive(Debug)]
pub(crate) struct Bucket {
    tokens: f64,
    filled: Option<Instant>,
}

impl Bucket {
    pub(crate) fn full(per_s: u32) -> Bucket {
        Bucket { tokens: f64::from(per_s), filled: None }
    }

    pub(crate) fn take(&mut self, per_s: u32, now: Instant) -> bool {
        let per_s = f64::from(per_s);
        if let Some(filled) = self.filled {
            let grown = now.saturating_duration_since(filled).as_secs_f64() * per_s;
            self.tokens = (self.tokens + grown).min(per_s);
        }
        self.filled = Some(now);
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}

/// Cuts a stream of bytes into lines for the log, holding one unfinished line at most.
#[derive(Debug)]
pub(crate) struct Lines {
    log: Arc<CallLog>,
    origin: &'static str,
    partial: Vec<u8>,
    /// Whether the unfinished line was too long and its rest is being skipped.
    skipping: bool,
}

impl Lines {
    pub(crate) fn new(log: &Arc<CallLog>, origin: &'static str) -> Lines {
        Lines { log: Arc::clone(log), origin, partial: Vec::new(), skipping: false }
    }

    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            self.extend(line);
            self.emit();
            self.skipping = false;
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.extend(bytes);
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.skipping {
            return;
        }
        let room = self.log.line_bytes_max().saturating_sub(self.partial.len());
        self.partial.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        if bytes.len() > room {
            self.partial.extend_from_slice("…".as_bytes());
            self.emit();
            self.skipping = true;
        }
    }

    fn emit(&mut self) {
        let line = std::mem::take(&mut self.partial);
        if line.is_empty() {
            return;
        }
        if self.log.take(&line) {
            self.log.write(LogLevel::Info, self.origin, &String::from_utf8_lossy(&line));
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.emit();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn call_log(lines: u32) -> Arc<CallLog> {
        let limits = CallLimits { log_lines: lines, log_line_bytes: 8, ..CallLimits::default() };
        Arc::new(CallLog::new(&Arc::new(GuestLog::new("g", &limits)), &limits))
    }

    fn left(log: &CallLog) -> (u32, u32) {
        (log.lines_left.load(Ordering::Relaxed), log.dropped.load(Ordering::Relaxed))
    }

    #[test]
    fn control_and_reordering_characters_are_escaped() {
        let table = [
            ("plain ü 漢", "plain ü 漢"),
            ("a\nb\tc", "a\\nb\\tc"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("abc\u{202e}cba", "abc\\u{202e}cba"),
        ];
        for (text, cleaned) in table {
            assert_eq!(clean(text, 100), cleaned);
        }
        assert_eq!(clean("0123456789", 4), "0123… (6 bytes more)");
    }

    #[test]
    fn lines_are_cut_counted_and_never_buffered_beyond_the_limit() {
        let log = call_log(3);
        let mut lines = Lines::new(&log, "stdout");
        lines.feed(b"one\ntw");
        assert_eq!(left(&log), (2, 0));
        lines.feed(b"o\n\n\n");
        assert_eq!(left(&log), (1, 0));
        for _ in 0..1_000 {
            lines.feed(b"no end of this line in sight ");
            assert!(lines.partial.capacity() < 64);
        }
        assert_eq!(left(&log), (0, 0));
        lines.feed(b"end\nnext\nlast");
        assert_eq!(left(&log), (0, 1));
        drop(lines);
        assert_eq!(left(&log), (0, 2));
    }

    #[test]
    fn bucket_refills_with_time_up_to_one_second() {
        let start = Instant::now();
        let mut bucket = Bucket::full(2);
        let table = [(0, true), (0, true), (0, false), (500, true), (500, false), (9_000, true), (9_000, true)];
        for (at_ms, pass) in table {
            assert_eq!(bucket.take(2, start + Duration::from_millis(at_ms)), pass, "{at_ms}");
        }
        assert!(!bucket.take(2, start + Duration::from_millis(9_000)));
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

    #[test]
    fn reports_are_one_line_each_and_count_as_the_guests_own() {
        let limits = CallLimits { log_lines_per_s: 2, log_line_bytes: 40, ..CallLimits::default() };
        let log = GuestLog::new("g", &limits);
        let sink = Sink::default();
        let writer = sink.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            log.report("v", "resource `a:\n2026-01-01 ERROR forged\u{1b}[2J`");
            log.report("v", &"x".repeat(1_000_000));
            for _ in 0..1_000 {
                log.report("v", "flood");
            }
            // As if a second had gone by.
            log.bucket.lock().unwrap().tokens = 2.0;
            log.report("v", "later");
        });
        let bytes = sink.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        let said: Vec<&str> = text.lines().filter(|line| !line.contains("flood")).collect();
        assert_eq!(said.len(), 3, "{text}");
        assert!(said[0].contains("a:\\n2026-01-01 ERROR forged\\u{1b}"), "{text}");
        assert!(said[1].len() < 200 && said[1].contains("bytes more"), "{text}");
        assert!(said[2].contains("later") && said[2].contains("unsaid="), "{text}");
        // The bucket fills while this runs, a line each half second.
        assert!(text.lines().count() < 100, "{text}");
    }
}
