//! One client on standard input and output: newline-delimited JSON.
//!
//! Reading and writing each have a thread of their own, which may block. They are no threads of the runtime, so the
//! process can exit while the client neither writes nor reads.

use super::Service;
use super::driver::{Connection, Sink, Source, Writer};
use crate::host::Shared;
use crate::identity::local_session;
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
    let output = std::fs::File::from(own_stdout()?);
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
    let (connection, writer) = Connection::new(service, endpoint, Peer::new(config), local_session()?);
    let (chunks, queue) = mpsc::channel(READ_QUEUE_LEN);
    spawn("stdin", move || read(input, &chunks))?;
    let runtime = Handle::current();
    spawn("stdout", move || runtime.block_on(write(writer, output)))?;
    let source = LineSource { lines: Lines::new(limits.message_bytes_max), chunks: queue, limits, ended: false };
    connection.run(source, stop, GRACE).await;
    Ok(())
}

/// A file of its own on standard output, without a buffer.
fn own_stdout() -> Result<std::os::fd::OwnedFd> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::units::Size;
    use crate::transport::testing::{Fake, call, reaches};
    use std::io::{BufRead, BufReader, PipeReader, PipeWriter, pipe};
    use std::time::Instant;
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;

    struct Process {
        fake: Arc<Fake>,
        input: PipeWriter,
        output: BufReader<PipeReader>,
        stop: oneshot::Sender<()>,
        task: JoinHandle<Result<()>>,
    }

    fn start(change: impl FnOnce(&mut Config)) -> Process {
        let mut config = Config::default();
        change(&mut config);
        let fake = Fake::new(config);
        let ((stdin, input), (output, stdout)) = (pipe().unwrap(), pipe().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let service = fake.clone();
        let task = tokio::spawn(async move { serve_on(service, Endpoint::Merged, stdin, stdout, async { drop(stopped.await) }).await });
        Process { fake, input, output: BufReader::new(output), stop, task }
    }

    /// The next line, read by a thread that may block.
    async fn line(output: BufReader<PipeReader>) -> (String, BufReader<PipeReader>) {
        let read = move || {
            let (mut line, mut output) = (String::new(), output);
            output.read_line(&mut line).unwrap();
            (line, output)
        };
        tokio::task::spawn_blocking(read).await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_was_asked_before_the_end_of_input_is_answered() {
        let Process { mut input, mut output, task, stop, .. } = start(|config| config.limits.message = Size(1_000));
        let long = "x".repeat(5_000);
        // The last line has no line break, as `printf` without one writes it.
        let lines = [call(1, "echo", ""), long, "{".into(), call(2, "echo", "")].join("\n");
        input.write_all(lines.as_bytes()).unwrap();
        drop(input);
        let mut answers = Vec::new();
        loop {
            let (answer, rest) = line(output).await;
            output = rest;
            if answer.is_empty() {
                break;
            }
            answers.push(answer);
        }
        task.await.unwrap().unwrap();
        drop(stop);
        assert_eq!(answers.len(), 4, "{answers:?}");
        for part in ["\"id\":1,\"result\"", "\"id\":2,\"result\"", "message_too_long", "-32700"] {
            assert_eq!(answers.iter().filter(|answer| answer.contains(part)).count(), 1, "{part}: {answers:?}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_client_that_does_not_wait_for_its_session_is_answered_as_if_it_had() {
        let opens = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let asks = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}"#;
        let lines = [opens, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, asks].join("\n");
        for _ in 0..50 {
            let Process { mut input, output, task, stop, .. } = start(|_| {});
            writeln!(input, "{lines}").unwrap();
            let (first, output) = line(output).await;
            let (second, _) = line(output).await;
            assert!(first.contains("\"id\":1,\"result\"") && second.contains("\"id\":2,\"result\""), "{first}{second}");
            drop(input);
            task.await.unwrap().unwrap();
            drop(stop);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_call_that_does_not_end_is_stopped_soon_after_the_input() {
        let Process { fake, mut input, output, task, stop } = start(|_| {});
        writeln!(input, "{}", call(1, "wait", "")).unwrap();
        reaches(&fake.begun, 1).await;
        let ended = Instant::now();
        drop(input);
        task.await.unwrap().unwrap();
        let took = ended.elapsed();
        assert!(took >= GRACE && took < GRACE * 10, "{took:?}");
        reaches(&fake.stopped, 1).await;
        assert_eq!(line(output).await.0, "");
        drop(stop);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn requests_run_side_by_side_and_can_be_cancelled() {
        let Process { fake, mut input, output, task, stop } = start(|_| {});
        writeln!(input, "{}\n{}", call(1, "wait", ""), call(2, "echo", "")).unwrap();
        let (answer, output) = line(output).await;
        assert!(answer.contains("\"id\":2"), "{answer}");
        // A call that is cancelled before it began is never seen to stop.
        reaches(&fake.begun, 2).await;
        writeln!(input, r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1}}}}"#).unwrap();
        reaches(&fake.stopped, 1).await;
        stop.send(()).unwrap();
        task.await.unwrap().unwrap();
        assert_eq!(line(output).await.0, "");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_report_is_written_before_the_call_goes_on() {
        let Process { fake, mut input, mut output, stop, .. } = start(|_| {});
        writeln!(input, "{}", call(1, "report", "\"progressToken\":\"t\",")).unwrap();
        for step in 1..=2 {
            let (report, rest) = line(output).await;
            output = rest;
            assert!(report.contains("notifications/progress") && report.contains(&format!("\"progress\":{step}")), "{report}");
            reaches(&fake.reported, step).await;
            fake.release.add_permits(1);
        }
        assert!(line(output).await.0.contains("reported"));
        drop(stop);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_client_that_closes_the_output_ends_it() {
        let Process { mut input, output, task, stop, .. } = start(|_| {});
        drop(output);
        writeln!(input, "{}", call(1, "echo", "")).unwrap();
        task.await.unwrap().unwrap();
        drop((input, stop));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn garbage_is_answered_or_skipped_and_what_follows_is_served() {
        let Process { input, mut output, stop, task, .. } = start(|config| config.limits.message = Size(1_000));
        let long = vec![b'x'; 3 << 20];
        let mut dice = 1_u32;
        let noise: Vec<u8> = (0..5_000)
            .map(|_| {
                dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                dice.to_be_bytes()[0]
            })
            .collect();
        let garbage: [&[u8]; 8] = [b"\0\0\0", b"\xff\xfe{\0}\0", b"null", b"\r\r", b"[[[[[[", b"{\"jsonrpc\":\"2.0\"", &noise, &long];
        for (id, garbage) in (1..).zip(garbage) {
            // The program answers while this is still being written.
            let text = [garbage, b"\n", call(id, "echo", "").as_bytes(), b"\n"].concat();
            let mut copy = input.try_clone().unwrap();
            let writing = tokio::task::spawn_blocking(move || copy.write_all(&text).unwrap());
            loop {
                let (answer, rest) = line(output).await;
                output = rest;
                if answer.contains(&format!("\"id\":{id},\"result\"")) {
                    break;
                }
                assert!(answer.contains("\"error\"") && !answer.contains("\"id\""), "{answer}");
            }
            writing.await.unwrap();
        }
        drop((input, stop));
        task.await.unwrap().unwrap();
    }
}
