//! The official Rust client against a running host that serves the textkit samples.
//!
//! `guesthouse-rmcp-check --guest rust-textkit [--guest …] [--prefixed] --revision 2026-07-28 [--revision …] --url http://…`, or
//! `-- command argument…` in place of the address for stdio. One connection per revision: `2026-07-28` starts with
//! `server/discover`, `auto` lets the client find the era, a revision of the handshake era is the one that `initialize` offers.
//! What a textkit answers is in `../textkit.json`, which the TypeScript client shares. With `--notifications` the host serves
//! the conformance guest, and only progress and log messages are checked.

mod checks;
mod notifications;
mod options;
mod table;

use anyhow::{Context as _, Result, anyhow, bail};
use checks::{Connection, Report};
use notifications::{Listener, Notifications};
use options::Options;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, RoleClient, service::RunningService};
use serde_json::Value;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};
use table::Table;
use tokio::sync::mpsc;

const REVISION_MODERN: &str = "2026-07-28";
/// The client itself waits for an answer without end.
const CONNECTION_S_MAX: u64 = 300;
/// The client itself waits three seconds for its child before it sends a signal: a child that ends by itself is much faster.
const CHILD_END_MS_MAX: u64 = 2_000;

/// A connected client, and what it is told.
struct Client {
    service: RunningService<RoleClient, Listener>,
    heard: mpsc::Receiver<Value>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn run() -> Result<ExitCode> {
    let options = Options::parse(std::env::args().skip(1))?;
    let table = Table::read()?;
    let mut report = Report::default();
    for revision in &options.revisions {
        println!("--    {}, {revision}", options.target());
        let connection = one_connection(&options, &table, revision, &mut report);
        if tokio::time::timeout(Duration::from_secs(CONNECTION_S_MAX), connection).await.is_err() {
            report.say("answers everything", Err(anyhow!("something had no answer within {CONNECTION_S_MAX} s")));
        }
    }
    Ok(report.finish())
}

async fn one_connection(options: &Options, table: &Table, asked: &str, report: &mut Report) {
    let Client { mut service, heard } = match connect(options, asked).await {
        Ok(client) => client,
        Err(error) => return report.say("connects", Err(error)),
    };
    let expected = if asked == "auto" { REVISION_MODERN } else { asked };
    let revision = service.peer_info().map(|info| info.protocol_version.as_str().to_owned()).unwrap_or_default();
    report.say("connects", table::equal("the revision", &revision.as_str().into(), &expected.into()));
    let peer = service.peer().clone();
    if options.notifications {
        Notifications { peer, heard, revision: &revision }.run(report).await;
    } else {
        Connection { peer, table, guests: &options.guests, prefixed: options.prefixed, revision: &revision }.run(report).await;
    }
    let started = Instant::now();
    let closed = service.close().await.map(drop).map_err(anyhow::Error::from);
    let elapsed = started.elapsed();
    report.say("closes without an error", closed);
    if options.url.is_none() {
        let ended = if elapsed < Duration::from_millis(CHILD_END_MS_MAX) { Ok(()) } else { Err(anyhow!("it took {elapsed:?}")) };
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
    let (listener, heard) = Listener::new(config);
    let service = match (&options.url, options.command.as_slice()) {
        (Some(url), _) => listener.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url.as_str()), lifecycle).await?,
        (None, [program, arguments @ ..]) => {
            let mut command = tokio::process::Command::new(program);
            command.args(arguments);
            let said = if options.verbose { Stdio::inherit() } else { Stdio::null() };
            let started = TokioChildProcess::builder(command).stderr(said).spawn();
            let (child, _) = started.with_context(|| format!("cannot start `{program}`"))?;
            listener.serve_with_lifecycle(child, lifecycle).await?
        }
        (None, []) => bail!("there is nothing to connect to"),
    };
    Ok(Client { service, heard })
}
