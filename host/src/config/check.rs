//! What the syntax of a configuration cannot say: which numbers a limit can be.

use super::units::{Size, Span};
use super::{GuestLimits, Limits};
use crate::guest::{MEMORY_BYTES_MAX, TABLE_ELEMENTS_MAX};
use anyhow::{Result, bail};

/// Most of anything that is counted; far more than a machine can hold, far less than what a queue or a semaphore takes.
const COUNT_MAX: u64 = 10_000_000;
/// Largest size that can be held at once.
const BYTES_MAX: u64 = 2 << 30;
/// Most that one guest can save.
const STATE_BYTES_MAX: u64 = 1 << 40;
/// Longest duration: thirty days, well within what clocks can add.
const TIME_MS_MAX: u64 = 30 * 24 * 3_600_000;
/// Deepest JSON that is parsed without fear for the stack.
const DEPTH_MAX: u64 = 120;
/// Smallest buffer for a header section that the HTTP server works with.
const HEADER_BYTES_MIN: u64 = 8 << 10;

/// A key, its value, the least and the most that it can be.
pub(super) struct Bound {
    key: &'static str,
    value: Value,
    least: u64,
    most: u64,
}

/// A value in its own unit, for messages.
#[derive(Clone, Copy)]
enum Value {
    Count(u64),
    Size(u64),
    Span(u64),
}

impl Value {
    fn number(self) -> u64 {
        match self {
            Value::Count(number) | Value::Size(number) | Value::Span(number) => number,
        }
    }

    /// Another number in the same unit, as one would write it.
    fn show(self, number: u64) -> String {
        match self {
            Value::Count(_) => number.to_string(),
            Value::Size(_) => Size(number).to_string(),
            Value::Span(_) => Span(number).to_string(),
        }
    }
}

impl Bound {
    fn check(&self, table: &str) -> Result<()> {
        let Bound { key, value, least, most } = self;
        let number = value.number();
        if number < *least {
            let least = if *least == 1 { "more than 0".to_owned() } else { format!("at least {}", value.show(*least)) };
            bail!("`{table}.{key}` must be {least}");
        }
        if number > *most {
            bail!("`{table}.{key}` is {}, and can be at most {}", value.show(number), value.show(*most));
        }
        Ok(())
    }
}

pub(super) fn count(key: &'static str, value: usize) -> Bound {
    Bound { key, value: Value::Count(value as u64), least: 1, most: COUNT_MAX }
}

pub(super) fn size(key: &'static str, value: Size) -> Bound {
    Bound { key, value: Value::Size(value.0), least: 1, most: BYTES_MAX }
}

pub(super) fn span(key: &'static str, value: Span) -> Bound {
    Bound { key, value: Value::Span(value.0), least: 1, most: TIME_MS_MAX }
}

/// For limits of which nothing at all is a sensible amount.
pub(super) fn or_none(bound: Bound) -> Bound {
    Bound { least: 0, ..bound }
}

/// For limits of a part of something of which there is that much.
fn at_most(all: usize, bound: Bound) -> Bound {
    Bound { most: bound.most.min(all as u64), ..bound }
}

/// Checks the values of one table.
pub(super) fn within(table: &str, bounds: &[Bound]) -> Result<()> {
    bounds.iter().try_for_each(|bound| bound.check(table))
}

impl Limits {
    /// Refuses what cannot work: nothing where something is needed, and more than can be.
    pub(super) fn check(&self) -> Result<()> {
        let bounds = [
            size("message", self.message),
            Bound { most: DEPTH_MAX, ..count("depth", self.depth) },
            count("batch", self.batch),
            Bound { least: HEADER_BYTES_MIN, ..size("headers", self.headers) },
            count("connections", self.connections),
            count("requests", self.requests),
            count("requests_per_peer", self.requests_per_peer),
            at_most(self.requests, count("requests_per_principal", self.requests_per_principal.unwrap_or(self.requests))),
            span("header_time", self.header_time),
            span("body_time", self.body_time),
            span("write_time", self.write_time),
            count("sessions", self.sessions),
            span("session_idle", self.session_idle),
            count("request_ids", self.request_ids),
            count("page", self.page),
            count("entries", self.entries),
            size("schema", self.schema),
            count("queue", self.queue),
            size("queue_bytes", self.queue_bytes),
            span("question_time", self.question_time),
            or_none(count("question_rounds", usize::try_from(self.question_rounds).unwrap_or(usize::MAX))),
            or_none(count("questions_per_peer", self.questions_per_peer)),
            count("instances", self.instances),
            or_none(span("stop_time", self.stop_time)),
        ];
        within("limits", &bounds)
    }
}

impl GuestLimits {
    /// The same for the calls of one guest.
    pub(super) fn check(&self, guest: &str) -> Result<()> {
        let bounds = [
            Bound { most: MEMORY_BYTES_MAX as u64, ..size("memory", self.memory) },
            span("cpu", self.cpu),
            span("wall", self.wall),
            span("task", self.task),
            size("output", self.output),
            or_none(Bound { most: TABLE_ELEMENTS_MAX as u64, ..count("table", self.table) }),
            or_none(count("logs", usize::try_from(self.logs).unwrap_or(usize::MAX))),
            or_none(count("progress", usize::try_from(self.progress).unwrap_or(usize::MAX))),
            count("concurrency", self.concurrency),
            or_none(count("requests", usize::try_from(self.requests).unwrap_or(usize::MAX))),
            count("requests_at_once", self.requests_at_once),
            span("request_wall", self.request_wall),
            span("request_connect", self.request_connect),
            or_none(size("request", self.request)),
            or_none(size("response", self.response)),
            Bound { least: HEADER_BYTES_MIN, ..size("response_headers", self.response_headers) },
            at_most(self.concurrency, count("per_principal", self.per_principal.unwrap_or(self.concurrency))),
            or_none(count("keys", self.keys)),
            or_none(size("value", self.value)),
            or_none(Bound { most: STATE_BYTES_MAX, ..size("state", self.state) }),
            count("instances", self.instances),
            span("instance_idle", self.instance_idle),
            span("turn", self.turn),
            or_none(size("saved", self.saved)),
            or_none(size("saved_total", self.saved_total)),
        ];
        within(&format!("guest.{guest}.limits"), &bounds)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    /// What is said of one limit with that value; None if it is accepted.
    fn refusal(table: &str, key: &str, value: &str) -> Option<String> {
        let text = format!("[{table}]\n{key} = {value}");
        Config::parse(&text).err().map(|error| format!("{error:#}"))
    }

    #[test]
    fn nothing_is_refused_where_something_is_needed() {
        let counts =
            ["depth", "batch", "connections", "requests", "requests_per_peer", "sessions", "request_ids", "page", "entries", "queue"];
        let spans = ["header_time", "body_time", "write_time", "session_idle", "question_time"];
        let host = counts.map(|key| (key, "0")).into_iter().chain(spans.map(|key| (key, "\"0s\"")));
        for (key, zero) in host.chain([("message", "0"), ("schema", "0"), ("queue_bytes", "0")]) {
            assert_eq!(refusal("limits", key, zero), Some(format!("`limits.{key}` must be more than 0")));
        }
        for (key, zero) in [("memory", "0"), ("cpu", "\"0s\""), ("wall", "\"0s\""), ("output", "0"), ("concurrency", "0")] {
            assert_eq!(refusal("guest.a.limits", key, zero), Some(format!("`guest.a.limits.{key}` must be more than 0")));
        }
        for (table, key, zero) in [("limits", "stop_time", "\"0s\""), ("limits", "question_rounds", "0"), ("guest.a.limits", "logs", "0")] {
            assert_eq!(refusal(table, key, zero), None, "{key}");
        }
    }

    #[test]
    fn more_than_can_be_is_refused_with_the_most() {
        for (table, key, value, most) in [
            ("limits", "message", "\"3GiB\"", "at most 2GiB"),
            ("limits", "depth", "121", "at most 120"),
            ("limits", "headers", "\"4KiB\"", "at least 8KiB"),
            ("limits", "queue", "9223372036854775807", "at most 10000000"),
            ("limits", "requests", "9223372036854775807", "at most 10000000"),
            ("limits", "connections", "9223372036854775807", "at most 10000000"),
            ("limits", "sessions", "9223372036854775807", "at most 10000000"),
            ("limits", "write_time", "\"721h\"", "`limits.write_time` is 721h, and can be at most 720h"),
            ("guest.a.limits", "memory", "\"513MiB\"", "`guest.a.limits.memory` is 513MiB, and can be at most 512MiB"),
            ("guest.a.limits", "table", "100001", "`guest.a.limits.table` is 100001, and can be at most 100000"),
            ("guest.a.limits", "task", "\"721h\"", "at most 720h"),
            ("streams", "queue", "9223372036854775807", "at most 10000000"),
            ("streams", "listen_time", "\"721h\"", "at most 720h"),
            ("tasks", "after", "\"721h\"", "at most 720h"),
            ("tasks", "count", "9223372036854775807", "at most 10000000"),
            ("guest.a.limits", "wall", "\"5000000000000h\"", "at most 720h"),
            ("guest.a.limits", "cpu", "\"721h\"", "at most 720h"),
            ("guest.a.limits", "output", "\"3GiB\"", "at most 2GiB"),
            ("guest.a.limits", "concurrency", "9223372036854775807", "at most 10000000"),
            ("guest.a.limits", "requests_at_once", "9223372036854775807", "at most 10000000"),
            ("guest.a.limits", "request_wall", "\"721h\"", "at most 720h"),
            ("guest.a.limits", "request_connect", "\"0s\"", "must be more than 0"),
            ("guest.a.limits", "request", "\"3GiB\"", "at most 2GiB"),
            ("guest.a.limits", "response", "\"3GiB\"", "at most 2GiB"),
            ("guest.a.limits", "response_headers", "\"4KiB\"", "at least 8KiB"),
            ("guest.a.limits", "per_principal", "65", "at most 64"),
            ("limits", "requests_per_principal", "4097", "at most 4096"),
        ] {
            let said = refusal(table, key, value);
            assert!(said.as_ref().is_some_and(|said| said.contains(most) && said.contains(key)), "{key} = {value}: {said:?}");
        }
        for (table, key, value) in [
            ("limits", "headers", "\"8KiB\""),
            ("limits", "depth", "120"),
            ("guest.a.limits", "memory", "\"512MiB\""),
            ("guest.a.limits", "table", "100000"),
            ("guest.a.limits", "wall", "\"720h\""),
        ] {
            assert_eq!(refusal(table, key, value), None, "{key} = {value}");
        }
    }
}
