//! WASI 0.2 for guests: clocks and randomness are real, stdout and stderr go to the log, folders and variables are those
//! that were granted, all else is empty.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use wasmtime::component::Linker;
use wasmtime_wasi::WasiCtx;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::config::grants::Environment;
use crate::guest::State;
use crate::guest::log::{CallLog, Lines};

/// Random bytes that a guest may draw in one call of `get-random-bytes`.
const RANDOM_BYTES_MAX: u64 = 1 << 20;
/// Bytes that a guest may write to stdout or stderr at once.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// The context of a guest with these variables. The absence of a line here is what keeps arguments, standard input and the
/// network empty: wasmtime-wasi grants nothing by default. Folders are `super::filesystem`'s.
pub(crate) fn context(log: &Arc<CallLog>, env: &Environment) -> WasiCtx {
    WasiCtx::builder()
        .stdout(LogStream::new(log, "stdout"))
        .stderr(LogStream::new(log, "stderr"))
        .envs(env.pairs())
        // Allowed but without addresses, sockets would still take file descriptors of the host.
        .allow_tcp(false)
        .allow_udp(false)
        .max_random_size(RANDOM_BYTES_MAX)
        .build()
}

/// Links all of WASI 0.2's command-line world, which guests built on a standard library expect to find.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)
}

/// A standard stream whose lines go to the log. All streams cloned from it share one unfinished line.
#[derive(Clone)]
struct LogStream(Arc<Mutex<Lines>>);

impl LogStream {
    fn new(log: &Arc<CallLog>, origin: &'static str) -> LogStream {
        LogStream(Arc::new(Mutex::new(Lines::new(log, origin))))
    }

    fn feed(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).feed(bytes);
    }
}

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LogStream {
    async fn ready(&mut self) {}
}

#[wasmtime_wasi::async_trait]
impl OutputStream for LogStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.feed(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES_MAX)
    }
}

impl tokio::io::AsyncWrite for LogStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.feed(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
