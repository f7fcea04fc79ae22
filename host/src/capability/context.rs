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
    /// What the callback reported last, in this run of it.
    newest: f64,
    /// What was sent last, in any run. A run that begins again comes by it without anybody's being told.
    sent: f64,
    /// The newest report that found no room; it is sent when the call ends.
    kept: Option<Report>,
    /// Why nothing more is sent: the client did not ask for it, or is gone.
    refused: Option<ProgressError>,
}

impl Progress {
    pub(crate) fn new(limits: &CallLimits) -> Progress {
        let per_s = limits.progress_per_s;
        let none = f64::NEG_INFINITY;
        Progress { left: limits.progress, per_s, bucket: Bucket::full(per_s), newest: none, sent: none, kept: None, refused: None }
    }

    /// The callback begins again from the top, and reports again.
    pub(crate) fn run_again(&mut self) {
        self.newest = f64::NEG_INFINITY;
        self.kept = None;
    }

    /// Sends a report, or keeps it where there are too many.
    async fn report(&mut self, context: &mut dyn CallContext, report: Report) -> Result<(), ProgressError> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        if report.0 <= self.newest {
            return Err(ProgressError::NotIncreasing);
        }
        if report.0 <= self.sent {
            self.newest = report.0;
            return Ok(());
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
                self.sent = progress;
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
        if !self.0.log.take(data.as_bytes()) {
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
    use crate::identity::Identity;
    use futures_util::future::{BoxFuture, ready};

    /// A client that takes every report.
    #[derive(Default)]
    struct Client(Vec<f64>);

    impl CallContext for Client {
        fn request_info(&mut self) -> Option<RequestInfo> {
            None
        }

        fn identity(&self) -> Identity {
            Identity::default()
        }

        fn answer(&mut self, _: &str) -> Option<Result<String, RpcError>> {
            None
        }

        fn state(&mut self) -> Option<Vec<u8>> {
            None
        }

        fn progress(&mut self, progress: f64, _: Option<f64>, _: Option<String>) -> BoxFuture<'_, Result<(), ProgressError>> {
            self.0.push(progress);
            Box::pin(ready(Ok(())))
        }

        fn log(&mut self, _: LogLevel, _: Option<String>, _: String) -> BoxFuture<'_, ()> {
            Box::pin(ready(()))
        }

        fn change(&mut self, _: crate::guest::Change) {}
    }

    #[tokio::test]
    async fn a_run_that_begins_again_reports_only_what_is_above_all_that_was_sent() {
        let limits = CallLimits { progress: 5, ..CallLimits::default() };
        let (mut client, mut progress) = (Client::default(), Progress::new(&limits));
        let expected = [(1.0, true), (4.0, true), (3.0, false), (9.0, true), (10.0, true)];
        for (report, increases) in expected {
            assert_eq!(progress.report(&mut client, (report, None, None)).await.is_ok(), increases, "{report}");
        }
        progress.run_again();
        // Within a run, reports increase, whether or not they are sent; there is room for one more, which the end is kept for.
        for (report, increases) in [(2.0, true), (1.0, false), (10.0, true), (10.5, true), (11.0, true)] {
            assert_eq!(progress.report(&mut client, (report, None, None)).await.is_ok(), increases, "{report}");
        }
        assert_eq!(client.0, [1.0, 4.0, 9.0, 10.0]);
        progress.finish(&mut client).await;
        assert_eq!(client.0, [1.0, 4.0, 9.0, 10.0, 11.0]);
    }

    #[test]
    fn cut_keeps_whole_characters() {
        for (bytes_max, kept) in [(0, ""), (1, "a"), (2, "a"), (3, "aü"), (9, "aü")] {
            assert_eq!(cut("aü".into(), bytes_max), kept);
        }
    }
}
