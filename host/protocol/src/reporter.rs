//! What a running call may send before its result: progress and log messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::json::{Object, raw};
use crate::message::RequestId;
use crate::model::LogLevel;
use crate::revision::Revision;

/// Makes the notifications of one call. It goes with the call; what it makes belongs on the stream of the call's
/// response, before the response.
#[derive(Debug)]
pub struct Reporter {
    revision: Revision,
    token: Option<RequestId>,
    last: Option<f64>,
    /// What an earlier run of the same call reported.
    floor: Option<f64>,
    threshold: Threshold,
    /// Shared with the peer. None if nothing was asked for, so that nothing can be sent anyway.
    line: Option<Arc<Line>>,
}

/// What all runs of a call and the peer know about its notifications.
#[derive(Debug)]
pub(crate) struct Line {
    /// Set by the peer when the call is over.
    closed: AtomicBool,
    /// The progress that was reported last, as bits; no number where there was none.
    sent: AtomicU64,
}

/// Which log messages the client wants to see.
#[derive(Clone, Debug)]
pub(crate) enum Threshold {
    /// None: the request did not ask.
    Silent,
    /// From this level up, for this request.
    Fixed(LogLevel),
    /// From the session's level up, which may change while the call runs.
    Session(SessionLevel),
}

/// The log level of a session, shared with the calls in flight.
#[derive(Clone, Debug)]
pub(crate) struct SessionLevel(Arc<AtomicU8>);

/// Why a progress notification was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressError {
    /// The client sent no progress token.
    NotRequested,
    /// The value is no higher than the one before, or no number.
    NotIncreasing,
    /// The value was reported by an earlier run of the same call. The client has it, so this is no mistake.
    Repeated,
    /// The call is over.
    Closed,
}

impl Line {
    /// Ends all reporting.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

impl SessionLevel {
    /// What a client gets that never asked for a level, which the specification leaves to the server.
    pub(crate) const DEFAULT: LogLevel = LogLevel::Info;

    pub(crate) fn new() -> SessionLevel {
        SessionLevel(Arc::new(AtomicU8::new(SessionLevel::DEFAULT as u8)))
    }

    pub(crate) fn set(&self, level: LogLevel) {
        self.0.store(level as u8, Ordering::Relaxed);
    }

    fn shows(&self, level: LogLevel) -> bool {
        level as u8 >= self.0.load(Ordering::Relaxed)
    }
}

impl Reporter {
    pub(crate) fn new(revision: Revision, token: Option<RequestId>, threshold: Threshold) -> Reporter {
        let silent = token.is_none() && matches!(threshold, Threshold::Silent);
        let line = || Arc::new(Line { closed: AtomicBool::new(false), sent: AtomicU64::new(f64::NAN.to_bits()) });
        Reporter { revision, token, last: None, floor: None, threshold, line: (!silent).then(line) }
    }

    /// What the peer keeps of it.
    pub(crate) fn line(&self) -> Option<Arc<Line>> {
        self.line.clone()
    }

    /// The reporter of the next run of the same call. What the runs before reported is not reported again.
    pub(crate) fn again(&self) -> Reporter {
        let sent = self.line.as_ref().map(|line| f64::from_bits(line.sent.load(Ordering::Acquire)));
        Reporter {
            revision: self.revision,
            token: self.token.clone(),
            last: None,
            floor: sent.filter(|sent| !sent.is_nan()),
            threshold: self.threshold.clone(),
            line: self.line.clone(),
        }
    }

    /// Whether the client asked for progress.
    pub fn wants_progress(&self) -> bool {
        self.token.is_some() && !self.is_closed()
    }

    /// Whether a log message of some level could reach the client.
    pub fn wants_logs(&self) -> bool {
        !matches!(self.threshold, Threshold::Silent) && !self.is_closed()
    }

    /// Makes a progress notification. A total that is no number is left out.
    pub fn progress(&mut self, progress: f64, total: Option<f64>, message: Option<&str>) -> Result<Bytes, ProgressError> {
        let Some(token) = &self.token else {
            return Err(ProgressError::NotRequested);
        };
        if self.is_closed() {
            return Err(ProgressError::Closed);
        }
        if !progress.is_finite() || self.last.is_some_and(|last| progress <= last) {
            return Err(ProgressError::NotIncreasing);
        }
        if self.floor.is_some_and(|floor| progress <= floor) {
            self.last = Some(progress);
            return Err(ProgressError::Repeated);
        }
        let bytes = notification("notifications/progress", |params| {
            token.write(params.key("progressToken"));
            params.number("progress", progress);
            if let Some(total) = total {
                params.number("total", total);
            }
            if self.revision.has_progress_message() {
                params.optional_text("message", message);
            }
        });
        self.last = Some(progress);
        if let Some(line) = &self.line {
            line.sent.store(progress.to_bits(), Ordering::Release);
        }
        Ok(bytes)
    }

    /// Makes a log notification; none if the client did not ask for messages of that level.
    pub fn log(&self, level: LogLevel, logger: Option<&str>, data: &RawValue) -> Option<Bytes> {
        let shown = match &self.threshold {
            Threshold::Silent => false,
            Threshold::Fixed(threshold) => level >= *threshold,
            Threshold::Session(session) => session.shows(level),
        };
        if !shown || self.is_closed() {
            return None;
        }
        Some(notification("notifications/message", |params| {
            params.text("level", level.as_str());
            params.optional_text("logger", logger);
            raw(params.key("data"), data);
        }))
    }

    fn is_closed(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.closed.load(Ordering::Acquire))
    }
}

fn notification(method: &'static str, write: impl FnOnce(&mut Object<'_>)) -> Bytes {
    let mut out = Vec::with_capacity(160);
    let mut object = Object::new(&mut out);
    object.text("jsonrpc", "2.0");
    object.text("method", method);
    let mut params = Object::new(object.key("params"));
    write(&mut params);
    params.end();
    object.end();
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at a surprise")]

    use super::*;

    fn text(bytes: &Bytes) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn progress_increases_and_echoes_the_token() {
        let token = Some(RequestId::Integer(7));
        let mut reporter = Reporter::new(Revision::V2025_06_18, token, Threshold::Silent);
        assert!(reporter.wants_progress());
        assert_eq!(
            text(&reporter.progress(0.0, Some(100.0), None).unwrap()),
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0,"total":100}}"#
        );
        assert_eq!(reporter.progress(0.0, None, None), Err(ProgressError::NotIncreasing));
        assert_eq!(reporter.progress(f64::NAN, None, None), Err(ProgressError::NotIncreasing));
        assert_eq!(
            text(&reporter.progress(0.5, Some(f64::INFINITY), Some("half")).unwrap()),
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.5,"message":"half"}}"#
        );
        reporter.line().unwrap().close();
        assert_eq!(reporter.progress(1.0, None, None), Err(ProgressError::Closed));
        assert!(!reporter.wants_progress());
    }

    #[test]
    fn the_first_revision_has_no_progress_message() {
        let token = Some(RequestId::String("t".into()));
        let mut reporter = Reporter::new(Revision::V2024_11_05, token, Threshold::Silent);
        assert!(!text(&reporter.progress(1.0, None, Some("half")).unwrap()).contains("half"));
    }

    #[test]
    fn nothing_is_sent_that_was_not_asked_for() {
        let mut reporter = Reporter::new(Revision::V2026_07_28, None, Threshold::Silent);
        assert_eq!(reporter.progress(1.0, None, None), Err(ProgressError::NotRequested));
        assert_eq!(reporter.log(LogLevel::Emergency, None, RawValue::NULL), None);
        assert!(!reporter.wants_logs());
    }

    #[test]
    fn a_session_level_acts_on_calls_in_flight() {
        let level = SessionLevel::new();
        let reporter = Reporter::new(Revision::V2025_11_25, None, Threshold::Session(level.clone()));
        assert_eq!(reporter.log(LogLevel::Debug, None, RawValue::NULL), None);
        level.set(LogLevel::Debug);
        assert_eq!(
            text(&reporter.log(LogLevel::Debug, Some("x"), RawValue::TRUE).unwrap()),
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","logger":"x","data":true}}"#
        );
        level.set(LogLevel::Emergency);
        assert_eq!(reporter.log(LogLevel::Alert, None, RawValue::NULL), None);
    }

    #[test]
    fn a_request_level_is_fixed() {
        let reporter = Reporter::new(Revision::V2026_07_28, None, Threshold::Fixed(LogLevel::Warning));
        assert!(reporter.log(LogLevel::Notice, None, RawValue::NULL).is_none());
        assert!(reporter.log(LogLevel::Warning, None, RawValue::NULL).is_some());
    }
}
