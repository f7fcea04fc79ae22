//! `guesthouse swap` and `guesthouse rollback`: another version of a guest on a running host, over its admin socket.

use super::socket::{Socket, post};
use super::{print, tell};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `swap`.
#[derive(Debug, Args)]
pub(super) struct Swap {
    /// The guest.
    #[arg(value_name = "NAME")]
    guest: String,
    /// The component of its new version.
    #[arg(value_name = "FILE", required_unless_present = "all")]
    file: Option<PathBuf>,
    /// Give the new version so many of a hundred calls of tools, and no more yet.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99))]
    percent: Option<u8>,
    /// Give all calls to the version that has a share of them. (`rollback` takes the share away.)
    #[arg(long, conflicts_with_all = ["file", "percent"])]
    all: bool,
    #[command(flatten)]
    socket: Socket,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `rollback`.
#[derive(Debug, Args)]
pub(super) struct Rollback {
    /// The guest.
    #[arg(value_name = "NAME")]
    guest: String,
    /// Go back over a migration too: puts the state back as it was before it. What was written since is lost.
    #[arg(long)]
    restore_state: bool,
    #[command(flatten)]
    socket: Socket,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Swap {
    pub(super) async fn run(self) -> Result<ExitCode> {
        // The host may run in another folder.
        let open = |file: PathBuf| file.canonicalize().with_context(|| format!("cannot open `{}`", file.display()));
        let file = self.file.map(open).transpose()?;
        let answer = post(&self.socket, "/swap", &json!({ "guest": self.guest, "file": file, "percent": self.percent })).await?;
        show(&answer, self.json)
    }
}

impl Rollback {
    pub(super) async fn run(self) -> Result<ExitCode> {
        let answer = post(&self.socket, "/rollback", &json!({ "guest": self.guest, "restore_state": self.restore_state })).await?;
        show(&answer, self.json)
    }
}

fn show(answer: &str, as_json: bool) -> Result<ExitCode> {
    let answer: Value = serde_json::from_str(answer).context("the host answered something else than what it did")?;
    if as_json {
        print(&serde_json::to_string_pretty(&answer)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(answer.get("sentence").and_then(Value::as_str).unwrap_or_default())?;
    for difference in answer.get("differences").and_then(Value::as_array).into_iter().flatten() {
        tell(&format!("  {}", difference.as_str().unwrap_or_default()));
    }
    Ok(ExitCode::SUCCESS)
}
