//! `guesthouse status`: asks a running host, over its admin socket, how it and its guests are.

use super::print;
use super::socket::{Socket, get};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;
use std::process::ExitCode;

/// Arguments of `status`.
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    socket: Socket,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Print the figures for Prometheus instead.
    #[arg(long, conflicts_with = "json")]
    metrics: bool,
}

impl Status {
    pub(super) async fn run(self) -> Result<ExitCode> {
        if self.metrics {
            print(get(&self.socket, "/metrics").await?.trim_end())?;
            return Ok(ExitCode::SUCCESS);
        }
        let answer = get(&self.socket, "/status").await?;
        let status: Value = serde_json::from_str(&answer).context("the host answered something else than its status")?;
        print(&if self.json { serde_json::to_string_pretty(&status)? } else { readable(&status) })?;
        Ok(ExitCode::SUCCESS)
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
        if let Some(tried) = guest["tried"].as_object() {
            let digest = text(&tried["digest"]);
            lines.push(format!("  {:<24} {}  has {} of 100 calls of tools", "", digest.get(..12).unwrap_or(&digest), tried["percent"]));
        }
        let refused = |key| guest.pointer(key).and_then(Value::as_str);
        if let (Some(reason), Some(at)) = (refused("/refused/reason"), refused("/refused/at")) {
            lines.push(format!("  {:<24} the last new version was refused at {at}: {reason}", ""));
        }
    }
    for guest in status["not_served"].as_array().into_iter().flatten() {
        lines.push(format!("  {:<24} not served: {}", text(&guest["name"]), text(&guest["reason"])));
    }
    lines.join("\n")
}
