//! `guesthouse call`: calls one tool of a component, through the whole host, and prints the result.

use super::grants::GrantFlags;
use super::print;
use super::run::single;
use crate::config::Mode;
use crate::host::Host;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `call`.
#[derive(Debug, Args)]
pub(super) struct Call {
    /// The component.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The tool's name.
    #[arg(value_name = "TOOL")]
    tool: String,
    /// The arguments, a JSON object.
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
    #[command(flatten)]
    grants: GrantFlags,
}

impl Call {
    pub(super) async fn run(self) -> Result<ExitCode> {
        let arguments: Value =
            serde_json::from_str(&self.arguments).with_context(|| format!("the arguments `{}` are not JSON", self.arguments))?;
        if !arguments.is_object() {
            bail!("the arguments must be a JSON object such as {{\"text\": \"hello\"}}, not `{}`", self.arguments);
        }
        let (mut config, guest) = single(&self.file, self.grants)?;
        // The client in this process speaks the modern era, whatever the operator serves to others.
        config.server.mode = Mode::Both;
        let name = guest.name.clone();
        let host = Host::start(config, vec![guest]).await?;
        let answer =
            host.connect(Some(&name))?.request("tools/call", serde_json::json!({ "name": self.tool, "arguments": arguments })).await?;
        if let Some(error) = answer.get("error") {
            bail!("the call of `{}` failed: {error}", self.tool);
        }
        let result = answer.get("result").unwrap_or(&Value::Null);
        print(&serde_json::to_string_pretty(result)?)?;
        let failed = result.get("isError") == Some(&Value::Bool(true));
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
