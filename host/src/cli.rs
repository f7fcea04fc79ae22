//! The command line: one file per command.
//!
//! Standard output belongs to results and to the stdio transport; everything said to a person goes to standard error.

mod add;
mod build;
mod call;
mod follow;
mod grants;
mod inspect;
mod manage;
mod remove;
mod run;
mod serve;
mod socket;
mod status;
mod token;
mod up;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

use crate::config::{Config, Mode, Prefix};

/// An MCP server host in which every handler is a sandboxed WebAssembly component.
#[derive(Debug, Parser)]
#[command(name = "guesthouse", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Log filter, such as `info`, `debug` or `guesthouse::guest=trace`.
    #[arg(long, global = true, value_name = "FILTER", default_value = "info")]
    log: String,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the guests found in DIR and serve them over HTTP.
    Up(up::Up),
    /// Serve the guests of a guesthouse.toml, over HTTP or on standard input and output.
    Serve(serve::Serve),
    /// Serve one component on standard input and output, for a desktop client.
    Run(run::Run),
    /// Build a Cargo, Go or npm project into a component.
    Build(build::Build),
    /// Add a component to a guesthouse.toml, with what it wants to be granted.
    Add(add::Add),
    /// Take a guest out of a guesthouse.toml.
    Remove(remove::Remove),
    /// Tell what a component exports, imports and offers, without running its handlers.
    Inspect(inspect::Inspect),
    /// Tell how a running host and its guests are.
    Status(status::Status),
    /// Put another version of a guest in force on a running host.
    Swap(manage::Swap),
    /// Go back to the version of a guest that a running host served before.
    Rollback(manage::Rollback),
    /// Call one tool of a component and print the result.
    Call(call::Call),
    /// Make a bearer token for a caller, and the entry by which the host knows it.
    Token(token::Token),
}

/// Keys of `[server]` that can be given as flags.
#[derive(Clone, Debug, Args)]
struct ServerFlags {
    /// Address and port to listen on.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Protocol eras to serve.
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Whether tools and prompts at /mcp carry their guest's name in front.
    #[arg(long, value_enum)]
    prefix: Option<Prefix>,
    /// A browser origin that may call, such as `https://app.example.com`; may be repeated.
    #[arg(long, value_name = "ORIGIN")]
    origins: Vec<String>,
    /// A further name that the Host header may have; may be repeated.
    #[arg(long, value_name = "NAME")]
    hosts: Vec<String>,
}

impl ServerFlags {
    /// Puts what was given as a flag over what the file says.
    fn apply(self, config: &mut Config) {
        let server = &mut config.server;
        server.listen = self.listen.unwrap_or(server.listen);
        server.mode = self.mode.unwrap_or(server.mode);
        server.prefix = self.prefix.unwrap_or(server.prefix);
        server.origins.extend(self.origins);
        server.hosts.extend(self.hosts);
    }
}

/// Runs the program and turns its outcome into an exit code: 0 done, 1 failed, 2 wrong usage.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            tell(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode> {
    let filter = EnvFilter::try_new(&cli.log).with_context(|| format!("`--log {}` is no log filter; try `info` or `debug`", cli.log))?;
    // A file or a collector that the log goes to has no use for colours.
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours).with_target(false).init();
    match cli.command {
        Command::Up(command) => block_on(command.run()),
        Command::Serve(command) => block_on(command.run()),
        Command::Run(command) => block_on(command.run()),
        Command::Build(command) => command.run(),
        Command::Token(command) => command.run(),
        Command::Add(command) => command.run(),
        Command::Remove(command) => command.run(),
        Command::Inspect(command) => block_on(command.run()),
        Command::Status(command) => block_on(command.run()),
        Command::Swap(command) => block_on(command.run()),
        Command::Rollback(command) => block_on(command.run()),
        Command::Call(command) => block_on(command.run()),
    }
}

/// Runs a command on the main runtime. Threads blocked on standard input must not hold the exit up.
fn block_on(command: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_background();
    outcome
}

/// Says a line to the person at the terminal. A closed standard error is no reason to fail.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints a result.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).context("cannot write to standard output")
}
