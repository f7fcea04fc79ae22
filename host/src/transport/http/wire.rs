//! The byte stream under one connection: it gives up on a client that does not read, and knows when all is written.

use futures_util::task::AtomicWaker;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// What a response knows of the connection under it.
///
/// hyper flushes the stream only when everything it had buffered is written. So what was handed to it before a flush
/// is on the wire after it.
#[derive(Debug, Default)]
pub(super) struct Wire {
    flushes: AtomicU64,
    waiting: AtomicWaker,
}

impl Wire {
    /// How often all was written so far.
    pub(super) fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Acquire)
    }

    /// Whether all was written since that count was taken.
    pub(super) fn poll_flushed(&self, since: u64, context: &mut Context<'_>) -> Poll<()> {
        self.waiting.register(context.waker());
        if self.flushes() == since { Poll::Pending } else { Poll::Ready(()) }
    }

    fn flushed(&self) {
        self.flushes.fetch_add(1, Ordering::AcqRel);
        self.waiting.wake();
    }
}

/// A TCP stream whose writes fail when the client takes nothing for some time.
pub(super) struct WireStream {
    stream: TcpStream,
    wire: Arc<Wire>,
    write_time: Duration,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl WireStream {
    pub(super) fn new(stream: TcpStream, wire: Arc<Wire>, write_time: Duration) -> Self {
        Self { stream, wire, write_time, stalled: None }
    }

    /// Passes a write's outcome on, and keeps the time while there is none.
    fn timed(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let write_time = self.write_time;
        let timer = self.stalled.get_or_insert_with(|| Box::pin(sleep(write_time)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl AsyncRead for WireStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for WireStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, written)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, slices: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.timed(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.wire.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
