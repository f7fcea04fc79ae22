//! Table `[tasks]`: when a call becomes a task, and what is kept of tasks.

use super::check::{count, or_none, size, span, within};
use super::units::{Size, Span};
use anyhow::{Result, bail};
use serde::Deserialize;

/// Table `[tasks]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskLimits {
    /// How long a call runs before it becomes a task, where the tool and the client can do with either.
    pub after: Span,
    /// Most tasks at a time, those that are over included.
    pub count: usize,
    /// What is kept of all tasks together: arguments, questions, answers, results.
    pub bytes: Size,
    /// How long a task is kept, from its beginning.
    pub ttl: Span,
    /// The longest that a client may ask for.
    pub ttl_max: Span,
    /// How often a client should ask how a task is.
    pub poll: Span,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            after: Span(5_000),
            count: 10_000,
            bytes: Size(256 << 20),
            ttl: Span(3_600_000),
            ttl_max: Span(86_400_000),
            poll: Span(1_000),
        }
    }
}

impl TaskLimits {
    /// Refuses what cannot work.
    pub(super) fn check(&self) -> Result<()> {
        let bounds = [
            or_none(span("after", self.after)),
            count("count", self.count),
            size("bytes", self.bytes),
            span("ttl", self.ttl),
            span("ttl_max", self.ttl_max),
            span("poll", self.poll),
        ];
        within("tasks", &bounds)?;
        if self.ttl.0 > self.ttl_max.0 {
            bail!("`tasks.ttl` must not be more than `tasks.ttl_max`");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, part) in [
            ("[tasks]\ncount = 0", "tasks.count"),
            ("[tasks]\npoll = \"0s\"", "tasks.poll"),
            ("[tasks]\nttl = \"48h\"", "tasks.ttl"),
            ("[tasks]\nafterwards = \"2s\"", "afterwards"),
        ] {
            let error = format!("{:#}", Config::parse(text).unwrap_err());
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(Config::parse("[tasks]\nafter = \"0s\"").unwrap().tasks.after.0, 0);
    }
}
