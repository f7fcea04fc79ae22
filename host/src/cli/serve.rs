//! `guesthouse serve`: serves the guests of a configuration file.

use super::follow::Follow;
use super::{ServerFlags, tell};
use crate::admin;
use crate::config::discover::Source;
use crate::config::{Config, FILE_NAME};
use crate::host::{GuestSource, Host};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::timeout;

/// How long the end may take before a person is told what it waits for.
const QUIET_END: Duration = Duration::from_millis(500);
/// Exit code of a process that was stopped twice, as shells have it for Ctrl-C.
const STOPPED_AT_ONCE: i32 = 130;

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = FILE_NAME)]
    config: PathBuf,
    /// Serve all guests on standard input and output instead of HTTP.
    #[arg(long)]
    stdio: bool,
    /// Serve components anew when their files change, and apply changes of the configuration's guests.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    server: ServerFlags,
}

impl Serve {
    pub(super) async fn run(self) -> Result<ExitCode> {
        let mut config = Config::read(&self.config)?;
        self.server.clone().apply(&mut config);
        let guests = sources(&config).with_context(|| format!("in `{}`", self.config.display()))?;
        let listener = if self.stdio { None } else { Some(bind(config.server.listen)?) };
        // What changes from here on is not missed.
        let follow = if self.watch { Some(self.follow(&config)?) } else { None };
        let host = Host::start(config, guests).await?;
        if !self.stdio {
            announce(&host, listener.as_ref());
        }
        until_stopped(host, listener, follow).await
    }
}

impl Serve {
    fn follow(&self, config: &Config) -> Result<Follow> {
        let files = config.guest.iter().filter_map(|(name, guest)| Some((name.clone(), Source::File(guest.file.clone()?)))).collect();
        let (server, file) = (self.server.clone(), self.config.clone());
        Follow::new(files, self.config.clone(), config.clone(), move |_| {
            let mut config = Config::read(&file)?;
            server.clone().apply(&mut config);
            Ok(config)
        })
    }
}

fn sources(config: &Config) -> Result<Vec<GuestSource>> {
    if config.guest.is_empty() {
        bail!("there is no guest to serve; add a table such as [guest.hello] with file = \"hello.wasm\"");
    }
    config
        .guest
        .iter()
        .map(|(name, guest)| {
            let file =
                guest.file.clone().ok_or_else(|| anyhow!("guest `{name}` has no `file`; add file = \"{name}.wasm\" to [guest.{name}]"))?;
            Ok(GuestSource { name: name.clone(), file, config: guest.clone() })
        })
        .collect()
}

/// Opens the listening socket, or says what to do about a port that is taken.
pub(super) fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::AddrInUse => "; another program uses that port: stop it, or choose another with --listen ADDR:PORT",
            std::io::ErrorKind::PermissionDenied => "; choose a port above 1023 with --listen ADDR:PORT",
            _ => "; choose another address with --listen ADDR:PORT",
        };
        anyhow!("cannot listen on {address}: {error}{remedy}")
    })
}

/// Tells the person at the terminal what is served and where.
pub(super) fn announce(host: &Host, listener: Option<&TcpListener>) {
    let base = listener.and_then(|listener| listener.local_addr().ok()).map(|address| format!("http://{address}"));
    for guest in host.summaries() {
        let at = base.as_ref().map(|base| format!("  {base}/mcp/{}", guest.name)).unwrap_or_default();
        tell(&format!("  {:<24} {}{at}", guest.name, guest.offers));
    }
    if let Some(base) = base {
        tell(&format!("Serving all of them at {base}/mcp (stop with Ctrl-C)"));
    }
}

/// Serves over HTTP where there is a listener, else on standard input and output, until told to stop. A host that serves over
/// HTTP can be watched meanwhile.
pub(super) async fn until_stopped(host: Host, listener: Option<TcpListener>, follow: Option<Follow>) -> Result<ExitCode> {
    let following = follow.map(|follow| tokio::spawn(follow.run(host.clone())));
    let _following = following.map(AbortOnDrop);
    match listener {
        Some(listener) => {
            let address = listener.local_addr().context("cannot use the listening socket")?;
            let watched = admin::Listeners::open(host.admin_config(), address)?;
            if let Some(path) = watched.path() {
                tracing::info!("the host answers on its admin socket {}", path.display());
            }
            if let Some(address) = watched.tcp_address() {
                tell(&format!("Status and figures, for whoever has the token: http://{address}/status and /metrics"));
            }
            host.keep_versions().await;
            tokio::select! {
                served = host.serve_http(listener, stop_signal()?) => served?,
                () = admin::serve(host.clone(), watched) => {}
            }
        }
        None => host.serve_stdio(None, stop_signal()?).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends a task with what it belongs to.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Resolves when the process is asked to stop: Ctrl-C or a termination signal. Calls in flight then have their time, unless it
/// is asked a second time.
pub(super) fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for the termination signal")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tokio::spawn(async move {
            let noted = timeout(QUIET_END, interrupt.recv()).await;
            if noted.is_err() {
                tell("Waiting for calls in flight; press Ctrl-C once more to stop at once");
                interrupt.recv().await;
            }
            tell("Stopped at once");
            std::process::exit(STOPPED_AT_ONCE);
        });
    })
}
