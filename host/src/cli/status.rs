//! `guesthouse status`: asks a running host, over its admin socket, how it and its guests are.

use super::print;
use crate::config::paths;
use anyhow::{Context, Result, bail};
use clap::Args;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::UnixStream;

/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How long the host has for its answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Arguments of `status`.
#[derive(Debug, Args)]
pub(super) struct Status {
    /// The admin socket; without it, that of the only host of this user that is running.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Print the figures for Prometheus instead.
    #[arg(long, conflicts_with = "json")]
    metrics: bool,
}

impl Status {
    pub(super) async fn run(self) -> Result<ExitCode> {
        let socket = match self.socket {
            Some(socket) => socket,
            None => only_socket()?,
        };
        if self.metrics {
            print(ask(&socket, "/metrics").await?.trim_end())?;
            return Ok(ExitCode::SUCCESS);
        }
        let answer = ask(&socket, "/status").await?;
        let status: Value = serde_json::from_str(&answer).context("the host answered something else than its status")?;
        print(&if self.json { serde_json::to_string_pretty(&status)? } else { readable(&status) })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The socket of the only host that runs.
pub(super) fn only_socket() -> Result<PathBuf> {
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

/// Asks the host behind a socket.
async fn ask(socket: &Path, path: &str) -> Result<String> {
    let answered = tokio::time::timeout(ANSWER_TIME, exchange(socket, path)).await;
    answered.context("the host did not answer in time").flatten().with_context(|| format!("at the admin socket `{}`", socket.display()))
}

async fn exchange(socket: &Path, path: &str) -> Result<String> {
    let stream = UnixStream::connect(socket).await.context("cannot connect to the host")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get(path).header("host", "guesthouse").body(Empty::<Bytes>::new())?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(|error| anyhow::anyhow!("{error}"))?;
        let text = String::from_utf8(body.to_bytes().into()).context("the answer is no text")?;
        if !status.is_success() {
            bail!("the host refused: {}", text.trim_end());
        }
        Ok(text)
    };
    tokio::select! {
        answer = exchange => answer,
        ended = connection => { ended?; bail!("the host closed the connection") }
    }
}

/// The status as lines for a person.
fn readable(status: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut lines = vec![format!(
        "guesthouse {} at http://{} (process {}), up for {} s, {} requests in flight",
        text(&status["version"]),
        text(&status["listen"]),
        status["pid"],
        status["uptime_s"],
        status["requests_in_flight"],
    )];
    for guest in status["guests"].as_array().into_iter().flatten() {
        let calls = guest["calls"].as_object().into_iter().flatten();
        let calls: Vec<String> = calls.map(|(how, count)| format!("{count} {how}")).collect();
        let digest = text(&guest["digest"]);
        lines.push(format!(
            "  {:<24} {}  {}  {} alive; ended: {}",
            text(&guest["name"]),
            digest.get(..12).unwrap_or(&digest),
            text(&guest["offers"]),
            guest["calls_alive"],
            if calls.is_empty() { "none".into() } else { calls.join(", ") },
        ));
    }
    for guest in status["not_served"].as_array().into_iter().flatten() {
        lines.push(format!("  {:<24} not served: {}", text(&guest["name"]), text(&guest["reason"])));
    }
    lines.join("\n")
}
