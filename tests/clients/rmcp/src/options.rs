//! What the command line asks for.

use anyhow::{Context as _, Result, bail};

const USAGE: &str = "usage: guesthouse-rmcp-check --guest NAME… [--prefixed] [--notifications] [--verbose] --revision REVISION… \
                     (--url URL | -- COMMAND ARGUMENT…)";

/// The arguments, with either an address or a command.
#[derive(Default)]
pub struct Options {
    /// The guests behind the endpoint, in its order.
    pub guests: Vec<String>,
    /// One connection each.
    pub revisions: Vec<String>,
    /// Tools and prompts have their guest's name in front.
    pub prefixed: bool,
    /// The guest is the conformance guest, and only what it notifies of is checked.
    pub notifications: bool,
    /// Lets the server's standard error through.
    pub verbose: bool,
    /// The endpoint, for HTTP.
    pub url: Option<String>,
    /// The server, for stdio.
    pub command: Vec<String>,
}

impl Options {
    /// Reads the arguments, or says how they look.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("`{argument}` needs a value; {USAGE}"));
            match argument.as_str() {
                "--guest" => options.guests.push(value()?),
                "--revision" => options.revisions.push(value()?),
                "--url" => options.url = Some(value()?),
                "--prefixed" => options.prefixed = true,
                "--notifications" => options.notifications = true,
                "--verbose" => options.verbose = true,
                "--" => {
                    options.command = arguments.collect();
                    break;
                }
                _ => bail!("unknown argument `{argument}`; {USAGE}"),
            }
        }
        if options.guests.is_empty() || options.revisions.is_empty() || options.url.is_some() != options.command.is_empty() {
            bail!(USAGE);
        }
        Ok(options)
    }

    /// What is connected to, for a person to read.
    pub fn target(&self) -> String {
        self.url.clone().unwrap_or_else(|| self.command.join(" "))
    }
}
