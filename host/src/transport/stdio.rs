//! One client on standard input and output: newline-delimited JSON.
//!
//! Reading and writing each have a thread of their own, which may block. They are no threads of the runtime, so the
//! process can exit while the client neither writes nor reads.

use super::Service;
use super::driver::{Connection, Sink, Source, Writer};
use crate::host::Shared;
use crate::registry::Endpoint;
use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use guesthouse_protocol::framing::Lines;
use guesthouse_protocol::{ParseLimits, Peer, Refusal, TransportKind};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// How long calls may still deliver their answers once the input has ended. A client expects the process to be gone
/// 100 ms after it closed the input.
const GRACE: Duration = Duration::from_millis(80);

/// What one read takes.
const READ_BYTES_MAX: usize = 64 << 10;

/// Reads that may wait to be taken in.
const READ_QUEUE_LEN: usize = 2;

/// Serves one client on standard input and output until the input ends, the output is closed, or `stop` resolves.
pub async fn serve(shared: Arc<Shared>, endpoint: Endpoint, stop: impl Future<Output = ()> + Send) -> Result<()> {
    // Nothing else writes to standard output while this runs, so its lock and its line buffer are only in the way.
    let output = std::fs::File::from(rustix_dup_stdout()?);
    serve_on(shared, endpoint, io::stdin(), output, stop).await
}

/// The same on any pair of byte streams.
async fn serve_on<S: Service>(
    service: Arc<S>,
    endpoint: Endpoint,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stop: impl Future<Output = ()> + Send,
) -> Result<()> {
    let config = service.peer_config(&endpoint, TransportKind::Stdio).ok_or_else(|| anyhow!("nothing is served at {}", endpoint.path()))?;
    let limits = config.limits.parse.clone();
    let (connection, writer) = Connection::new(service, endpoint, Peer::new(config));
    let (chunks, queue) = mpsc::channel(READ_QUEUE_LEN);
    spawn("stdin", move || read(input, &chunks))?;
    let runtime = Handle::current();
    spawn("stdout", move || runtime.block_on(write(writer, output)))?;
    let source = LineSource { lines: Lines::new(limits.message_bytes_max), chunks: queue, limits, ended: false };
    connection.run(source, stop, GRACE).await;
    Ok(())
}

/// A file of its own on standard output, without a buffer.
fn rustix_dup_stdout() -> Result<std::os::fd::OwnedFd> {
    use std::os::fd::AsFd;
    io::stdout().as_fd().try_clone_to_owned().context("cannot use the standard output")
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new().name(name.into()).spawn(work).map(drop).with_context(|| format!("cannot start a thread for {name}"))
}

/// Reads until the input ends or nobody wants it any more.
fn read(mut input: impl Read, chunks: &mpsc::Sender<Bytes>) {
    let mut buffer = vec![0; READ_BYTES_MAX];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(len) => {
                let chunk = Bytes::copy_from_slice(buffer.get(..len).unwrap_or_default());
                if chunks.blocking_send(chunk).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                tracing::warn!("cannot read the input any more: {error}");
                return;
            }
        }
    }
}

async fn write(writer: Writer, output: impl Write + Send) {
    if let Err(error) = writer.run(LineSink { output, buffer: Vec::new() }).await {
        tracing::debug!("the client does not take answers any more: {error}");
    }
}

/// Lines out of what was read.
struct LineSource {
    lines: Lines,
    chunks: mpsc::Receiver<Bytes>,
    limits: ParseLimits,
    ended: bool,
}

impl Source for LineSource {
    async fn next(&mut self) -> Option<Result<Bytes, Refusal>> {
        loop {
            let line = if self.ended { self.lines.finish() } else { self.lines.next_line() };
            match line {
                Some(line) => return Some(line.map_err(|_| Refusal::too_long(&self.limits))),
                None if self.ended => return None,
                None => match self.chunks.recv().await {
                    Some(chunk) => self.lines.push(&chunk),
                    None => self.ended = true,
                },
            }
        }
    }
}

/// Lines into the output. It blocks, in a thread that has nothing else to do.
struct LineSink<W> {
    output: W,
    buffer: Vec<u8>,
}

impl<W: Write + Send> Sink for LineSink<W> {
    async fn write(&mut self, messages: &[Bytes]) -> io::Result<()> {
        self.buffer.clear();
        for message in messages {
            self.buffer.extend_from_slice(message);
            self.buffer.push(b'\n');
        }
        self.output.write_all(&self.buffer)?;
        self.output.flush()?;
        // One large answer must not hold memory for ever.
        self.buffer.shrink_to(READ_BYTES_MAX);
        Ok(())
    }
}
