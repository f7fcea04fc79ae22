//! Framing of messages on a byte stream: bounded lines, and server-sent events.

use bytes::{Bytes, BytesMut};

/// Splits a byte stream into lines of bounded length.
///
/// A line that is too long is reported once and skipped up to its end; what follows is read as if nothing had
/// happened. Empty lines are skipped.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// Up to here the buffer holds no line break.
    searched: usize,
    skipping: bool,
    line_bytes_max: usize,
}

/// A line was longer than allowed, and is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTooLong;

impl Lines {
    /// A splitter that has seen nothing yet.
    pub fn new(line_bytes_max: usize) -> Lines {
        Lines { buffer: BytesMut::new(), searched: 0, skipping: false, line_bytes_max }
    }

    /// Takes in what was read. Take all lines out before the next read: then at most one line is kept.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next line that is complete, without its line break.
    pub fn next_line(&mut self) -> Option<Result<Bytes, LineTooLong>> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(found) = memchr::memchr(b'\n', unsearched) else {
                return self.without_break();
            };
            let end = self.searched.saturating_add(found);
            let line = self.buffer.split_to(end.saturating_add(1)).freeze();
            self.searched = 0;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            let line = trim_break(line);
            if line.len() > self.line_bytes_max {
                return Some(Err(LineTooLong));
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(Ok(line));
            }
        }
    }

    /// The stream has ended: what is left is a line, too.
    pub fn finish(&mut self) -> Option<Result<Bytes, LineTooLong>> {
        if !self.buffer.is_empty() {
            self.buffer.extend_from_slice(b"\n");
        }
        self.next_line()
    }

    fn without_break(&mut self) -> Option<Result<Bytes, LineTooLong>> {
        // One byte more is a carriage return that belongs to the line break.
        let too_long = self.buffer.len() > self.line_bytes_max.saturating_add(1);
        if self.skipping || too_long {
            self.buffer.clear();
            self.searched = 0;
        } else {
            self.searched = self.buffer.len();
        }
        if too_long && !self.skipping {
            self.skipping = true;
            return Some(Err(LineTooLong));
        }
        None
    }
}

fn trim_break(mut line: Bytes) -> Bytes {
    line.truncate(line.len().saturating_sub(1));
    if line.ends_with(b"\r") {
        line.truncate(line.len().saturating_sub(1));
    }
    line
}

/// Writes a server-sent event that carries one message.
pub fn write_event(out: &mut Vec<u8>, id: Option<&str>, message: &[u8]) {
    if let Some(id) = id {
        write_field(out, "id", id.as_bytes());
    }
    let mut rest = message;
    // A carriage return ends a line for a reader of events, with or without a line feed.
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        let (line, tail) = rest.split_at(at);
        write_field(out, "data", line);
        rest = tail.strip_prefix(b"\r\n").or(tail.get(1..)).unwrap_or_default();
    }
    write_field(out, "data", rest);
    out.push(b'\n');
}

/// Writes an event of another type than `message`.
pub fn write_named_event(out: &mut Vec<u8>, name: &str, data: &str) {
    write_field(out, "event", name.as_bytes());
    write_event(out, None, data.as_bytes());
}

/// Writes an event without content that tells a client where a stream can be taken up again, and when at the earliest.
pub fn write_priming_event(out: &mut Vec<u8>, id: &str, retry_ms: u64) {
    write_field(out, "id", id.as_bytes());
    write_retry_field(out, retry_ms);
    out.extend_from_slice(b"data: \n\n");
}

/// Writes when a client may come back whose connection is about to be closed.
pub fn write_retry(out: &mut Vec<u8>, retry_ms: u64) {
    write_retry_field(out, retry_ms);
    out.push(b'\n');
}

fn write_retry_field(out: &mut Vec<u8>, retry_ms: u64) {
    write_field(out, "retry", retry_ms.to_string().as_bytes());
}

/// A comment, which keeps an idle stream open.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &mut Lines) -> Vec<Result<String, LineTooLong>> {
        std::iter::from_fn(|| lines.next_line()).map(|line| line.map(|line| String::from_utf8_lossy(&line).into_owned())).collect()
    }

    fn ok(line: &str) -> Result<String, LineTooLong> {
        Ok(line.to_owned())
    }

    #[test]
    fn lines_come_out_whole_however_they_went_in() {
        let mut lines = Lines::new(10);
        let mut seen = Vec::new();
        for byte in b"one\r\n\n  \ntwo\nthree" {
            lines.push(&[*byte]);
            seen.extend(all(&mut lines));
        }
        assert_eq!(seen, [ok("one"), ok("two")]);
        assert_eq!(lines.finish(), Some(Ok(Bytes::from_static(b"three"))));
        assert_eq!(lines.finish(), None);
    }

    #[test]
    fn a_line_of_exactly_the_limit_passes() {
        let mut lines = Lines::new(4);
        lines.push(b"1234\n1234\r\n12345\n12\n");
        assert_eq!(all(&mut lines), [ok("1234"), ok("1234"), Err(LineTooLong), ok("12")]);
    }

    #[test]
    fn a_line_that_is_too_long_is_reported_once_and_never_kept() {
        let mut lines = Lines::new(4);
        let mut seen = Vec::new();
        for _ in 0..1000 {
            lines.push(b"xxxxxxxx");
            seen.extend(all(&mut lines));
            assert!(lines.buffer.len() <= 5);
        }
        lines.push(b"\nok\n");
        seen.extend(all(&mut lines));
        assert_eq!(seen, [Err(LineTooLong), ok("ok")]);
    }

    #[test]
    fn an_event_is_one_message() {
        let mut out = Vec::new();
        write_event(&mut out, None, br#"{"a":1}"#);
        write_event(&mut out, Some("7-0"), b"{}");
        assert_eq!(String::from_utf8_lossy(&out), "data: {\"a\":1}\n\nid: 7-0\ndata: {}\n\n");
        for (message, expected) in [
            ("{\n}", "data: {\ndata: }\n\n"),
            ("{\r\n}", "data: {\ndata: }\n\n"),
            ("{\r}\r", "data: {\ndata: }\ndata: \n\n"),
            ("", "data: \n\n"),
        ] {
            out.clear();
            write_event(&mut out, None, message.as_bytes());
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
        let mut out = Vec::new();
        write_priming_event(&mut out, "7-1", 500);
        write_named_event(&mut out, "endpoint", "/message");
        write_retry(&mut out, 1000);
        assert_eq!(String::from_utf8_lossy(&out), "id: 7-1\nretry: 500\ndata: \n\nevent: endpoint\ndata: /message\n\nretry: 1000\n\n");
    }
}
