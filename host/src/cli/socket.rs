//! The other end of a host's admin socket, for the commands that speak to a running host.

use crate::config::paths;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::UnixStream;

/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How long the host has for its answer: a large component has to be compiled.
const ANSWER_TIME: Duration = Duration::from_secs(600);

/// Which host to speak to.
#[derive(Debug, Args)]
pub(super) struct Socket {
    /// The admin socket; without it, that of the only host of this user that is running.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl Socket {
    fn path(&self) -> Result<PathBuf> {
        self.socket.clone().map_or_else(only_socket, Ok)
    }
}

/// Asks the host behind a socket for something.
pub(super) async fn get(socket: &Socket, path: &str) -> Result<String> {
    ask(socket, Request::get(path), Bytes::new()).await
}

/// Asks the host behind a socket to do something.
pub(super) async fn post(socket: &Socket, path: &str, message: &Value) -> Result<String> {
    ask(socket, Request::post(path).header(CONTENT_TYPE, "application/json"), message.to_string().into()).await
}

async fn ask(socket: &Socket, request: hyper::http::request::Builder, body: Bytes) -> Result<String> {
    let path = socket.path()?;
    let request = request.header(HOST, "guesthouse").body(Full::new(body))?;
    let exchange = async {
        let stream =
            UnixStream::connect(&path).await.with_context(|| format!("cannot connect to the admin socket `{}`", path.display()))?;
        exchange(stream, request).await
    };
    tokio::time::timeout(ANSWER_TIME, exchange).await.map_err(|_| anyhow!("the host did not answer in time"))?
}

/// The socket of the only host that runs.
fn only_socket() -> Result<PathBuf> {
    let folder = paths::runtime()?;
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_live =
        |path: &PathBuf| path.extension().is_some_and(|end| end == "sock") && std::os::unix::net::UnixStream::connect(path).is_ok();
    let mut live: Vec<PathBuf> = entries.filter(is_live).collect();
    live.sort();
    match live.as_slice() {
        [] => bail!(
            "no host is running that has an admin socket in `{}`; start one with `up` or `serve`, or name it with --socket",
            folder.display()
        ),
        [socket] => Ok(socket.clone()),
        several => {
            let names: Vec<String> = several.iter().map(|path| format!("--socket {}", path.display())).collect();
            bail!("several hosts are running; choose one: {}", names.join(", "))
        }
    }
}

async fn exchange(stream: UnixStream, request: Request<Full<Bytes>>) -> Result<String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(|error| anyhow!("{error}"))?;
        let text = String::from_utf8(body.to_bytes().into()).context("the answer is no text")?;
        if !status.is_success() {
            bail!("{}", text.trim_end());
        }
        Ok(text)
    };
    tokio::select! {
        answer = exchange => answer,
        ended = connection => { ended?; bail!("the host closed the connection") }
    }
}
