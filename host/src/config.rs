//! The configuration: the only reader of `guesthouse.toml` and of the process environment.
//!
//! Everything here is a plain value with a finite default. An unknown key is an error that names the key, and
//! every flag of the command line is one of these keys in kebab case.

pub mod admin;
pub mod auth;
mod check;
pub mod discover;
pub mod edit;
pub mod grants;
pub mod http;
mod limits;
pub mod paths;
pub mod seal;
pub mod storage;
pub mod streams;
pub mod swap;
pub mod tasks;
pub mod units;

use crate::guest::KEPT_INSTANCES_MAX;
use admin::AdminConfig;
use anyhow::{Context, Result, anyhow, bail};
use grants::{Grants, InstancePolicy, Secrets};
use indexmap::IndexMap;
pub use limits::GuestLimits;
use seal::SealConfig;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use units::{Size, Span};

/// Name of the configuration file.
pub const FILE_NAME: &str = "guesthouse.toml";

/// Everything that `guesthouse.toml` can say.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What clients see, and where they connect.
    pub server: ServerConfig,
    /// Bounds of the host itself.
    pub limits: Limits,
    /// Bounds of subscriptions and event streams.
    pub streams: streams::StreamLimits,
    /// When calls become tasks, and what is kept of them.
    pub tasks: tasks::TaskLimits,
    /// The keys of sealed tokens.
    pub seal: SealConfig,
    /// How guests' HTTP requests go out.
    pub http: http::HttpConfig,
    /// Who may call over HTTP.
    pub auth: auth::AuthConfig,
    /// Where what outlives a call is saved.
    pub storage: storage::StorageConfig,
    /// How the host is watched.
    pub admin: AdminConfig,
    /// What is kept of old versions of guests.
    pub swap: swap::SwapConfig,
    /// The guests, by name.
    pub guest: IndexMap<String, GuestConfig>,
    /// The folder that the configuration is of, in its canonical form, whether it has a file or not. None for a program that
    /// embeds the host and names no place. What is saved belongs to it, see [`storage::StorageConfig::space`].
    #[serde(skip)]
    pub home: Option<PathBuf>,
}

/// Table `[server]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Name in the server information of the merged endpoint; absent, the only guest's or `guesthouse`.
    pub name: Option<String>,
    /// Title there.
    pub title: Option<String>,
    /// Version there.
    pub version: Option<String>,
    /// Instructions there; the guests' own are appended under their names.
    pub instructions: Option<String>,
    /// Whether results of the modern era carry the server information in `_meta`.
    pub server_info: bool,
    /// Address and port of the HTTP transport.
    pub listen: SocketAddr,
    /// Browser origins that may call (CORS); a request with any other `Origin` is refused.
    pub origins: Vec<String>,
    /// Names that the `Host` header may have, without port; the loopback names and addresses are always in.
    pub hosts: Vec<String>,
    /// Protocol eras that are served.
    pub mode: Mode,
    /// When tools and prompts of the merged endpoint carry the guest's name.
    pub prefix: Prefix,
    /// Whether the HTTP+SSE transport of 2024-11-05 is served, too, at `/sse` and `/message`.
    pub sse: bool,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            name: None,
            title: None,
            version: None,
            instructions: None,
            server_info: true,
            listen: SocketAddr::from(([127, 0, 0, 1], 8642)),
            origins: Vec::new(),
            hosts: Vec::new(),
            mode: Mode::Both,
            prefix: Prefix::Auto,
            sse: false,
        }
    }
}

/// Protocol eras that are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Only 2026-07-28.
    Modern,
    /// Only the revisions with an `initialize` handshake.
    Handshake,
    /// Both, chosen per request.
    Both,
}

/// When tools and prompts of the merged endpoint carry the guest's name in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Prefix {
    /// When the host was started with more than one guest.
    Auto,
    /// Always.
    Always,
    /// Never; names that collide are refused.
    Never,
}

/// Table `[limits]`: bounds of the host, whichever guest is called.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Largest message of a client: an HTTP body or a line on stdio.
    pub message: Size,
    /// Deepest nesting of a client's JSON.
    pub depth: usize,
    /// Most messages in a batch.
    pub batch: usize,
    /// Largest header section of an HTTP request.
    pub headers: Size,
    /// Most open HTTP connections.
    pub connections: usize,
    /// Most requests in flight, over all connections.
    pub requests: usize,
    /// Most requests in flight on one stdio or in-process connection, or in one session.
    pub requests_per_peer: usize,
    /// Most requests in flight of one principal, over all its connections; see [`auth::AuthConfig::cap`] where the key is absent.
    pub requests_per_principal: Option<usize>,
    /// How long a client may take to send an HTTP request's header section, counted from the end of the one before: so
    /// also how long a connection may be idle. Clients that keep connections for later rely on more than a minute.
    pub header_time: Span,
    /// How long a client may take to send an HTTP body.
    pub body_time: Span,
    /// How long a client may take to accept the next piece of an answer.
    pub write_time: Span,
    /// Most sessions of the handshake era.
    pub sessions: usize,
    /// How long a session may be idle.
    pub session_idle: Span,
    /// How many request ids of one session are remembered, to refuse duplicates.
    pub request_ids: usize,
    /// Most entries on one page of a list.
    pub page: usize,
    /// Most tools, resources, templates or prompts of one guest, each.
    pub entries: usize,
    /// Largest JSON Schema of a tool.
    pub schema: Size,
    /// Responses, and as many frames (progress, log messages), that may wait for one slow client.
    pub queue: usize,
    /// The same in bytes. One that is larger waits alone.
    pub queue_bytes: Size,
    /// How long a client may take to answer the questions of one round, in the handshake era.
    pub question_time: Span,
    /// Most rounds of questions of one call.
    pub question_rounds: u32,
    /// Most calls of one peer that wait for answers at the same time, in the handshake era.
    pub questions_per_peer: usize,
    /// Most instances that are kept between calls, of all guests together.
    pub instances: usize,
    /// How long calls in flight may take to finish once the host is asked to stop.
    pub stop_time: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: Size(4 << 20),
            depth: 64,
            batch: 64,
            headers: Size(32 << 10),
            connections: 4_096,
            requests: 4_096,
            requests_per_peer: 256,
            requests_per_principal: None,
            header_time: Span(75_000),
            body_time: Span(30_000),
            write_time: Span(60_000),
            sessions: 10_000,
            session_idle: Span(3_600_000),
            request_ids: 10_000,
            page: 500,
            entries: 10_000,
            schema: Size(256 << 10),
            queue: 64,
            queue_bytes: Size(8 << 20),
            question_time: Span(600_000),
            question_rounds: 8,
            questions_per_peer: 64,
            instances: KEPT_INSTANCES_MAX,
            stop_time: Span(10_000),
        }
    }
}

/// Table `[guest.<name>]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuestConfig {
    /// The component, relative to the configuration file. `up` and `run` know it already.
    pub file: Option<PathBuf>,
    /// Given to the guest's `init`, as JSON.
    pub config: toml::Table,
    /// Which of its tools are served, by name; `*` at the end stands for any ending. All, where the key is absent.
    pub tools: Option<Vec<String>>,
    /// How long its instances live.
    pub instance: InstancePolicy,
    /// What it may reach.
    pub grants: Grants,
    /// What the host adds to its HTTP requests.
    pub secrets: Secrets,
    /// Bounds of its calls.
    pub limits: GuestLimits,
}

impl Config {
    /// Whether anything but the guests' tables is another than in `other`.
    pub fn differs_beside_guests(&self, other: &Config) -> bool {
        let rest = |config: &Config| format!("{:?}", Config { guest: IndexMap::new(), ..config.clone() });
        rest(self) != rest(other)
    }

    /// Reads a configuration file. Paths of guests in it are made relative to the file's folder.
    pub fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read the configuration `{}`", file.display()))?;
        let mut config = Self::parse(&text).with_context(|| format!("in `{}`", file.display()))?;
        let folder = file.parent().unwrap_or(Path::new("."));
        for path in config.guest.values_mut().filter_map(|guest| guest.file.as_mut()) {
            *path = folder.join(&*path);
        }
        for path in config.guest.values_mut().flat_map(|guest| guest.secrets.values_mut()).filter_map(|secret| secret.file.as_mut()) {
            *path = folder.join(&*path);
        }
        config.guest.values_mut().for_each(|guest| guest.grants.resolve_paths(folder));
        config.seal.resolve_paths(folder);
        config.http.resolve_paths(folder);
        config.storage.resolve_paths(folder);
        config.admin.resolve_paths(folder);
        config.swap.resolve_paths(folder);
        config.home = Some(canonical(folder));
        Ok(config)
    }

    /// The file of that name in `folder`, or the defaults where there is none.
    pub fn read_in(folder: &Path) -> Result<Self> {
        let file = folder.join(FILE_NAME);
        if file.is_file() { Self::read(&file) } else { Ok(Self { home: Some(canonical(folder)), ..Self::default() }) }
    }

    /// Reads the text of a configuration file and checks what the syntax alone cannot.
    pub fn parse(text: &str) -> Result<Self> {
        let config: Self = toml::from_str(text).map_err(|error| anyhow!(seal::describe(text, &error)))?;
        for name in config.guest.keys() {
            if !discover::is_guest_name(name) {
                bail!(
                    "guest name `{name}` is not allowed: a name starts with a lower-case letter, followed by at most 31 lower-case letters, digits and hyphens"
                );
            }
        }
        config.limits.check()?;
        config.guest.iter().try_for_each(|(name, guest)| guest.limits.check(name).and_then(|()| guest.grants.check(name)))?;
        config.guest.iter().try_for_each(|(name, guest)| http::check(name, guest))?;
        config.streams.check()?;
        config.seal.check()?;
        config.auth.check()?;
        config.tasks.check()?;
        config.storage.check()?;
        config.admin.check()?;
        config.swap.check()?;
        Ok(config)
    }
}

/// A folder in the form that it has however it is named. What cannot be found has at least one name for all working directories.
fn canonical(folder: &Path) -> PathBuf {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or_else(|_| folder.to_owned())
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_configuration_is_of_its_folder_however_that_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (there, link) = (folder.path().join("there"), folder.path().join("link"));
        std::fs::create_dir(&there).unwrap();
        std::os::unix::fs::symlink(&there, &link).unwrap();
        let home = Some(there.canonicalize().unwrap());
        assert_eq!(Config::read_in(&link).unwrap().home, home, "without a file");
        std::fs::write(there.join(FILE_NAME), "").unwrap();
        assert_eq!(Config::read_in(&there).unwrap().home, home);
        assert_eq!(Config::read(&link.join(FILE_NAME)).unwrap().home, home);
        assert_eq!(Config::parse("").unwrap().home, None);
        assert_eq!(canonical(Path::new("")), std::env::current_dir().unwrap().canonicalize().unwrap());
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_the_key() {
        for (text, key) in [
            ("[server]\nlisten_on = \"x\"", "listen_on"),
            ("[limits]\nmesage = 3", "mesage"),
            ("[guest.a.limits]\nmemry = 1", "memry"),
            ("[guest.a]\nfil = \"a.wasm\"", "fil"),
            ("[auht]\n", "auht"),
            ("[streams]\nrety = \"1s\"", "rety"),
        ] {
            let error = format!("{:#}", Config::parse(text).unwrap_err());
            assert!(error.contains(key), "{error}");
        }
    }

    #[test]
    fn the_example_of_the_readme_is_read() {
        let config = Config::parse(
            "[server]\nlisten = \"127.0.0.1:9000\"\nmode = \"both\"\nprefix = \"never\"\n[limits]\nmessage = \"1MiB\"\n\
             [guest.weather]\nfile = \"weather.wasm\"\nconfig = { units = \"metric\" }\ntools = [\"get_*\"]\n\
             limits = { memory = \"32MiB\", cpu = \"500ms\", wall = \"5s\", output = \"1MiB\", concurrency = 8 }\n",
        )
        .unwrap();
        let weather = &config.guest["weather"];
        assert_eq!(config.limits.message, Size(1 << 20));
        assert_eq!(weather.limits.cpu, Span(500));
        assert_eq!(weather.config["units"].as_str(), Some("metric"));
        assert_eq!(config.server.prefix, Prefix::Never);
    }

    #[test]
    fn bad_values_are_refused_with_the_key_or_the_value() {
        for (text, part) in [
            ("[guest.Weather]\nfile = \"a.wasm\"", "Weather"),
            ("[limits]\nrequests = 0", "limits.requests"),
            ("[streams]\nqueue = 0", "streams.queue"),
            ("[guest.a.limits]\nwall = \"soon\"", "soon"),
            ("[server]\nmode = \"old\"", "old"),
            ("[server]\nlisten = \"localhost\"", "listen"),
        ] {
            let error = format!("{:#}", Config::parse(text).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
    }
}
