//! Framing: lines are those that a simple splitter finds, however the bytes arrive; an event carries its message whole.

use guesthouse_protocol::framing::{Lines, write_event};

use super::first;

/// The first byte is the limit of a line, the second how many bytes arrive at a time.
pub fn check(data: &[u8]) {
    let (limit, rest) = first(data);
    let (piece, stream) = first(rest);
    lines(stream, usize::from(limit), usize::from(piece).max(1));
    event(rest);
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Text(Vec<u8>),
    TooLong,
}

fn lines(stream: &[u8], limit: usize, piece: usize) {
    let mut found = Vec::new();
    let mut lines = Lines::new(limit);
    let mut keep = |line: Result<_, _>| found.push(line.map_or(Line::TooLong, |line: bytes::Bytes| Line::Text(line.to_vec())));
    for piece in stream.chunks(piece) {
        lines.push(piece);
        while let Some(line) = lines.next_line() {
            keep(line);
        }
    }
    while let Some(line) = lines.finish() {
        keep(line);
    }
    let expected: Vec<Line> = stream.split(|byte| *byte == b'\n').filter_map(|line| expected(line, limit)).collect();
    assert_eq!(found, expected);
}

fn expected(line: &[u8], limit: usize) -> Option<Line> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() > limit {
        return Some(Line::TooLong);
    }
    (!line.iter().all(u8::is_ascii_whitespace)).then(|| Line::Text(line.to_vec()))
}

/// Reads an event as a browser does: any of the three line breaks ends a line, data lines are joined by a line feed.
fn event(message: &[u8]) {
    let mut out = Vec::new();
    write_event(&mut out, Some("7"), message);
    let Some(body) = out.strip_suffix(b"\n\n") else { panic!("an event ends with an empty line") };
    let normal = normalised(body);
    let mut data: Vec<&[u8]> = Vec::new();
    for (index, line) in normal.split(|byte| *byte == b'\n').enumerate() {
        if index == 0 {
            assert_eq!(line, b"id: 7");
            continue;
        }
        data.push(line.strip_prefix(b"data: ").expect("nothing but data follows"));
    }
    assert_eq!(data.join(&b'\n'), normalised(message));
}

fn normalised(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.iter().peekable();
    while let Some(byte) = bytes.next() {
        if *byte == b'\r' {
            bytes.next_if(|next| **next == b'\n');
            out.push(b'\n');
        } else {
            out.push(*byte);
        }
    }
    out
}
