//! The official Rust client against a running host that serves the textkit samples.
//!
//! `guesthouse-rmcp-check --guest rust-textkit [--guest …] [--prefixed] [--verbose] --revision 2026-07-28 [--revision …] --url http://…`, or
//! `-- command argument…` in place of the address for stdio. One connection per revision: `2026-07-28` starts with
//! `server/discover`, `auto` lets the client find the era, a revision of the handshake era is the one that `initialize` offers.
//! What a textkit answers is in `../textkit.json`, which the TypeScript client shares.

mod checks;
mod table;

use anyhow::{Context, Result, bail};
use checks::{Connection, Report};
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, RoleClient, service::RunningService};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};
use table::Table;

const REVISION_MODERN: &str = "2026-07-28";
const CONNECT_S_MAX: u64 = 120;
/// The client itself waits three seconds for its child before it sends a signal: a child that ends by itself is much faster.
const CHILD_END_MS_MAX: u64 = 2_000;
const USAGE: &str =
    "usage: guesthouse-rmcp-check --guest NAME… [--prefixed] [--verbose] --revision REVISION… (--url URL | -- COMMAND ARGUMENT…)";

/// What the command line asked for.
#[derive(Default)]
struct Options {
    guests: Vec<String>,
    revisions: Vec<String>,
    prefixed: bool,
    /// Lets the server's standard error through.
    verbose: bool,
    url: Option<String>,
    command: Vec<String>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("`{argument}` needs a value; {USAGE}"));
            match argument.as_str() {
                "--guest" => options.guests.push(value()?),
                "--revision" => options.revisions.push(value()?),
                "--url" => options.url = Some(value()?),
                "--prefixed" => options.prefixed = true,
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

    fn target(&self) -> String {
        self.url.clone().unwrap_or_else(|| self.command.join(" "))
    }
}

type Client = RunningService<RoleClient, ClientConfig>;

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let options = Options::parse(std::env::args().skip(1))?;
    let table = Table::read()?;
    let mut report = Report::default();
    for revision in &options.revisions {
        println!("--    {}, {revision}", options.target());
        let connecting = tokio::time::timeout(Duration::from_secs(CONNECT_S_MAX), connect(&options, revision));
        let connected = match connecting.await {
            Ok(connected) => connected,
            Err(_) => Err(anyhow::anyhow!("no answer within {CONNECT_S_MAX} s")),
        };
        match connected {
            Err(error) => report.say("connects", Err(error)),
            Ok(client) => one_connection(&options, &table, revision, client, &mut report).await,
        }
    }
    Ok(report.finish())
}

async fn one_connection(options: &Options, table: &Table, asked: &str, mut client: Client, report: &mut Report) {
    let expected = if asked == "auto" { REVISION_MODERN } else { asked };
    let spoken = client.peer_info().map(|info| info.protocol_version.as_str().to_owned()).unwrap_or_default();
    report.say("connects", table::equal("the revision", &spoken.clone().into(), &expected.into()));
    let connection =
        Connection { peer: client.peer().clone(), table, guests: &options.guests, prefixed: options.prefixed, revision: &spoken };
    connection.run(report).await;
    let started = Instant::now();
    let closed = client.close().await.map(drop).map_err(anyhow::Error::from);
    let elapsed = started.elapsed();
    report.say("closes without an error", closed);
    if options.url.is_none() {
        let ended = if elapsed < Duration::from_millis(CHILD_END_MS_MAX) { Ok(()) } else { Err(anyhow::anyhow!("it took {elapsed:?}")) };
        report.say("ends when its input ends", ended);
    }
}

async fn connect(options: &Options, revision: &str) -> Result<Client> {
    let modern = || vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match revision {
        "auto" => ClientLifecycleMode::Auto { preferred_versions: modern(), legacy_version: None },
        REVISION_MODERN => ClientLifecycleMode::Discover { preferred_versions: modern() },
        _ => ClientLifecycleMode::Initialize,
    };
    let mut config = ClientConfig::new(ClientCapabilities::default(), Implementation::new("guesthouse-rmcp-check", "0.0.0"));
    if lifecycle == ClientLifecycleMode::Initialize {
        config = config.with_protocol_version(serde_json::from_value(revision.into())?);
    }
    let client = match (&options.url, options.command.as_slice()) {
        (Some(url), _) => config.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url.as_str()), lifecycle).await?,
        (None, [program, arguments @ ..]) => {
            let mut command = tokio::process::Command::new(program);
            command.args(arguments);
            let said = if options.verbose { Stdio::inherit() } else { Stdio::null() };
            let (child, _) =
                TokioChildProcess::builder(command).stderr(said).spawn().with_context(|| format!("cannot start `{program}`"))?;
            config.serve_with_lifecycle(child, lifecycle).await?
        }
        (None, []) => bail!(USAGE),
    };
    Ok(client)
}
