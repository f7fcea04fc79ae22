//! Table `[streams]`: what is sent without being asked for each time, and streams that can be taken up again.

use super::check::{count, or_none, size, span, within};
use super::units::{Size, Span};
use anyhow::Result;
use serde::Deserialize;

/// Table `[streams]`: bounds of subscriptions and of the event streams of HTTP.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamLimits {
    /// Most subscriptions (`subscriptions/listen`) at a time.
    pub listeners: usize,
    /// Most of them on one stdio or in-process connection.
    pub listeners_per_peer: usize,
    /// How long a subscription may last; the client then opens another.
    pub listen_time: Span,
    /// Most resources that one subscription, or one session, watches.
    pub uris: usize,
    /// Bytes that their URIs may have in all.
    pub uri_bytes: Size,
    /// Most changes that wait for one slow client. The same change never waits twice.
    pub queue: usize,
    /// Bytes that these changes may have in all.
    pub queue_bytes: Size,
    /// Time between two comments that keep an idle event stream open.
    pub keep_alive: Span,
    /// How long a call of a session may run before its answer becomes a stream that can be taken up again (2025-11-25).
    pub stream_after: Span,
    /// How long the connection of such a stream stays open before the client has to come back for the rest (2025-11-25).
    pub stream_time: Span,
    /// When a client may come back to a stream, at the earliest.
    pub retry: Span,
    /// Most events of one session that are kept for clients that come back.
    pub replay: usize,
    /// Bytes that these events may have in all.
    pub replay_bytes: Size,
    /// Bytes that the events of all sessions may have together.
    pub replay_total: Size,
    /// How long the events of a stream that has ended are kept.
    pub replay_time: Span,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            listeners: 1_000,
            listeners_per_peer: 32,
            listen_time: Span(3_600_000),
            uris: 256,
            uri_bytes: Size(64 << 10),
            queue: 512,
            queue_bytes: Size(1 << 20),
            keep_alive: Span(15_000),
            stream_after: Span(1_000),
            stream_time: Span(300_000),
            retry: Span(1_000),
            replay: 1_000,
            replay_bytes: Size(8 << 20),
            replay_total: Size(256 << 20),
            replay_time: Span(300_000),
        }
    }
}

impl StreamLimits {
    /// Times of zero would make the host busy with nothing, and a queue of zero would lose every change.
    pub(super) fn check(&self) -> Result<()> {
        let bounds = [
            or_none(count("listeners", self.listeners)),
            or_none(count("listeners_per_peer", self.listeners_per_peer)),
            span("listen_time", self.listen_time),
            or_none(count("uris", self.uris)),
            or_none(size("uri_bytes", self.uri_bytes)),
            count("queue", self.queue),
            size("queue_bytes", self.queue_bytes),
            span("keep_alive", self.keep_alive),
            or_none(span("stream_after", self.stream_after)),
            span("stream_time", self.stream_time),
            or_none(span("retry", self.retry)),
            or_none(count("replay", self.replay)),
            or_none(size("replay_bytes", self.replay_bytes)),
            or_none(size("replay_total", self.replay_total)),
            or_none(span("replay_time", self.replay_time)),
        ];
        within("streams", &bounds)
    }
}
