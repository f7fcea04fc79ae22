//! `guesthouse:mcp/context`: what a callback learns of its request and may send while it runs.

use std::time::Instant;

use wasmtime::component::{HasData, Linker};

use crate::guest::bindings::context::{self, LogLevel, ProgressError, RequestInfo};
use crate::guest::bindings::types::RpcError;
use crate::guest::log::{Bucket, clean};
use crate::guest::{CallContext, CallLimits, State};

/// A progress report: how far, of how much, and what is being done.
type Report = (f64, Option<f64>, Option<String>);

/// The progress reports of one call, as far as they are limited.
#[derive(Debug)]
pub(crate) struct Progress {
    left: u32,
    per_s: u32,
    bucket: Bucket,
    newest: f64,
    /// The newest report that found no room; it is sent when the call ends.
    kept: Option<Report>,
    /// Why nothing more is sent: the client did not ask for it, or is gone.
    refused: Option<ProgressError>,
}

impl Progress {
    pub(crate) fn new(limits: &CallLimits) -> Progress {
        let per_s = limits.progress_per_s;
        Progress { left: limits.progress, per_s, bucket: Bucket::full(per_s), newest: f64::NEG_INFINITY, kept: None, refused: None }
    }

    /// Sends a report, or keeps it where there are too many.
    async fn report(&mut self, context: &mut dyn CallContext, report: Report) -> Result<(), ProgressError> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        if report.0 <= self.newest {
            return Err(ProgressError::NotIncreasing);
        }
        // The last one belongs to the end of the call.
        if self.left <= 1 || !self.bucket.take(self.per_s, Instant::now()) {
            self.newest = report.0;
            self.kept = Some(report);
            return Ok(());
        }
        self.send(context, report).await
    }

    /// Sends the report that was kept, so that a client sees the end of a progress however fast it was made.
    pub(crate) async fn finish(&mut self, context: &mut dyn CallContext) {
        if let Some(report) = self.kept.take()
            && self.left > 0
        {
            // A client that is gone or never asked misses nothing.
            let _ = self.send(context, report).await;
        }
    }

    async fn send(&mut self, context: &mut dyn CallContext, report: Report) -> Result<(), ProgressError> {
        let (progress, total, message) = report;
        let sent = context.progress(progress, total, message).await;
        match sent {
            Ok(()) => {
                self.kept = None;
                self.newest = progress;
                self.left = self.left.saturating_sub(1);
            }
            Err(ProgressError::NotIncreasing) => {}
            Err(refused @ (ProgressError::NotRequested | ProgressError::Closed)) => self.refused = Some(refused),
        }
        sent
    }
}

struct View<'a>(&'a mut State);

struct HasView;

impl HasData for HasView {
    type Data<'a> = View<'a>;
}

impl context::Host for View<'_> {
    fn request(&mut self) -> Option<RequestInfo> {
        self.0.callback_context()?.request_info()
    }

    fn answer(&mut self, key: String) -> Option<Result<String, RpcError>> {
        self.0.callback_context()?.answer(&key)
    }

    fn state(&mut self) -> Option<Vec<u8>> {
        self.0.callback_context()?.state()
    }

    async fn report_progress(&mut self, progress: f64, total: Option<f64>, message: Option<String>) -> Result<(), ProgressError> {
        // JSON has no way to write the others, and they do not increase either.
        if !progress.is_finite() {
            return Err(ProgressError::NotIncreasing);
        }
        let total = total.filter(|total| total.is_finite());
        let message = message.map(|text| cut(text, self.0.limits().progress_message_bytes));
        let Some((context, sent)) = self.0.reporting() else { return Err(ProgressError::Closed) };
        sent.report(context, (progress, total, message)).await
    }

    async fn log(&mut self, level: LogLevel, logger: Option<String>, data: String) {
        if !self.0.log.take() {
            return;
        }
        let line_bytes_max = self.0.log.line_bytes_max();
        match &logger {
            None => self.0.log.write(level, "log", &data),
            Some(logger) => {
                let data = data.get(..data.floor_char_boundary(line_bytes_max)).unwrap_or_default();
                self.0.log.write(level, "log", &format!("{}: {data}", clean(logger, line_bytes_max)));
            }
        }
        let size = data.len() + logger.as_ref().map_or(0, String::len);
        if size > self.0.limits().log_data_bytes {
            return;
        }
        if let Some(context) = self.0.callback_context() {
            context.log(level, logger, data).await;
        }
    }

    fn time_left_ms(&mut self) -> u32 {
        let left = self.0.allowance.deadline().saturating_duration_since(tokio::time::Instant::now());
        u32::try_from(left.as_millis()).unwrap_or(u32::MAX)
    }
}

pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    context::add_to_linker::<State, HasView>(linker, |state| View(state))
}

/// Shortens a text to a number of bytes, at a character's boundary.
fn cut(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_keeps_whole_characters() {
        for (bytes_max, kept) in [(0, ""), (1, "a"), (2, "a"), (3, "aü"), (9, "aü")] {
            assert_eq!(cut("aü".into(), bytes_max), kept);
        }
    }
}
