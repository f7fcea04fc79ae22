//! The answers of HTTP: their statuses, headers and bodies.

use super::event::{Events, event};
use bytes::Bytes;
use guesthouse_protocol::Outgoing;
use guesthouse_protocol::http::{Accepts, HttpRefusal};
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Response, StatusCode};
use std::convert::Infallible;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
/// Tells a proxy to pass events on at once.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const NO: HeaderValue = HeaderValue::from_static("no");
const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// What follows the header section.
pub(super) enum AnswerBody {
    /// Nothing (any more).
    Empty,
    /// One piece.
    Whole(Bytes),
    /// Events, as they come.
    Events(Box<dyn Events>),
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut *self {
            Self::Empty => Poll::Ready(None),
            Self::Whole(bytes) => {
                let bytes = mem::take(bytes);
                *self = Self::Empty;
                Poll::Ready(Some(bytes))
            }
            Self::Events(events) => events.poll_event(context),
        };
        piece.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Whole(_) => false,
            Self::Events(events) => events.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

fn with_body(status: StatusCode, kind: HeaderValue, body: Bytes) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Whole(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A status alone.
pub(super) fn empty(status: StatusCode, headers: HeaderMap) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Empty);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// The message wants no answer.
pub(super) fn accepted() -> Response<AnswerBody> {
    empty(StatusCode::ACCEPTED, HeaderMap::new())
}

/// A line for people and probes.
pub(super) fn text(status: StatusCode, line: &'static str) -> Response<AnswerBody> {
    with_body(status, TEXT, Bytes::from_static(line.as_bytes()))
}

/// A response that nothing precedes. A client that takes nothing but events gets it as the only one.
pub(super) fn response(outgoing: Outgoing, accepts: Accepts) -> Response<AnswerBody> {
    let status = StatusCode::from_u16(outgoing.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if !accepts.json && status == StatusCode::OK {
        let mut response = with_body(status, EVENT_STREAM, event(None, &outgoing.message));
        stream_headers(response.headers_mut());
        return response;
    }
    let mut response = with_body(status, JSON, outgoing.message);
    if let Some(seconds) = outgoing.retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Events as they come.
pub(super) fn stream(events: impl Events + 'static) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Events(Box::new(events)));
    response.headers_mut().insert(CONTENT_TYPE, EVENT_STREAM);
    stream_headers(response.headers_mut());
    response
}

fn stream_headers(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, NO_CACHE);
    headers.insert(ACCEL_BUFFERING, NO);
}

/// The exchange ends before any call.
pub(super) fn refused(refusal: HttpRefusal) -> Response<AnswerBody> {
    let mut response = with_body(refusal.status, JSON, refusal.body);
    let headers = response.headers_mut();
    if let Some(allow) = refusal.allow {
        headers.insert(ALLOW, HeaderValue::from_static(allow));
    }
    if let Some(challenge) = refusal.challenge {
        headers.insert(WWW_AUTHENTICATE, challenge);
    }
    match refusal.status {
        StatusCode::SERVICE_UNAVAILABLE => {
            headers.insert(RETRY_AFTER, guesthouse_protocol::RETRY_AFTER_S.into());
        }
        // The rest of the body will not be read.
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
            headers.insert(CONNECTION, CLOSE);
        }
        _ => {}
    }
    response
}
