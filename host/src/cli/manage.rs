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
    #[arg(value_name = "FILE")]
    file: PathBuf,
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
        let file = self.file.canonicalize().with_context(|| format!("cannot open `{}`", self.file.display()))?;
        let answer = post(&self.socket, "/swap", &json!({ "guest": self.guest, "file": file })).await?;
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
