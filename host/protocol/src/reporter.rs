//! What a running call may send before its result: progress and log messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

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
    threshold: Threshold,
    /// Set by the peer when the call is over. None if nothing was asked for, so that nothing can be sent anyway.
    closed: Option<Arc<AtomicBool>>,
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
    /// The call is over.
    Closed,
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
        let closed = (!silent).then(|| Arc::new(AtomicBool::new(false)));
        Reporter { revision, token, last: None, threshold, closed }
    }

    /// The flag that ends all reporting.
    pub(crate) fn closed_flag(&self) -> Option<Arc<AtomicBool>> {
        self.closed.clone()
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
        self.closed.as_ref().is_some_and(|closed| closed.load(Ordering::Acquire))
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
        reporter.closed_flag().unwrap().store(true, Ordering::Release);
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
