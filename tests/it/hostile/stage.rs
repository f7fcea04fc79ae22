//! A host with guests that do their worst beside one that does its work, and a client that calls both at once.

use crate::support::clients::{headers, messages, post, serve};
use crate::support::{PROGRAM, component, state_home};
use guesthouse::config::Config;
use guesthouse::host::{GuestSource, Host};
use guesthouse_protocol::Revision;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

pub use crate::support::{Era, Transport};

/// How long the other guest's call may take from the moment at which the attack begins.
const SAME_SECOND: Duration = Duration::from_secs(1);
/// How often a row is tried on a machine that is too busy for that.
const TRIES: usize = 3;
const WELL: &str = "alive and well";

/// A guest's table for `guesthouse.toml`.
pub fn guest(name: &str, folder: &str, table: &str) -> String {
    format!("[guest.{name}]\nfile = {:?}\n{table}\n", component(folder).display().to_string())
}

/// The host's configuration with these guests, and the one beside them.
pub fn beside_echo(guests: &str) -> String {
    format!("[storage]\nkind = \"memory\"\n{guests}{}", guest("echo", "tests/guests/echo", ""))
}

/// The guests of a configuration.
pub fn sources(config: &Config) -> Vec<GuestSource> {
    let source = |(name, guest): (&String, &guesthouse::config::GuestConfig)| GuestSource {
        name: name.clone(),
        file: guest.file.clone().unwrap(),
        config: guest.clone(),
    };
    config.guest.iter().map(source).collect()
}

/// One request, and what came of it while another guest was called.
#[derive(Debug)]
pub struct Ran {
    pub answer: Value,
    /// Notifications that came before the answer.
    pub noise: usize,
    /// Whether the other guest's answer came first.
    pub other_first: bool,
}

/// A host, and a client of it.
pub struct Stage {
    pub era: Era,
    line: Line,
    last_id: i64,
    /// The configuration of a program lives as long as the stage.
    _folder: tempfile::TempDir,
}

enum Line {
    Http { address: SocketAddr, session: Option<String>, host: Host },
    Stdio { input: ChildStdin, output: Box<Lines<BufReader<ChildStdout>>>, _child: Box<Child> },
}

impl Stage {
    /// Serves by that configuration, all guests under names with a prefix, and connects.
    pub async fn open(transport: Transport, era: Era, toml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let line = match transport {
            Transport::Stdio => {
                let file = folder.path().join("guesthouse.toml");
                std::fs::write(&file, toml).unwrap();
                let mut command = Command::new(PROGRAM);
                command.args(["--log", "off", "serve", "--stdio", "--config"]).arg(&file).env("XDG_STATE_HOME", state_home());
                let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
                let output = Box::new(BufReader::new(child.stdout.take().unwrap()).lines());
                Line::Stdio { input: child.stdin.take().unwrap(), output, _child: Box::new(child) }
            }
            Transport::Http | Transport::Memory => {
                let config = Config::parse(toml).unwrap();
                let (host, address) = serve(sources(&config), config).await;
                Line::Http { address, session: None, host }
            }
        };
        let mut stage = Self { era, line, last_id: 0, _folder: folder };
        if era == Era::Handshake {
            let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
            let answer = stage.ask("initialize", params).await;
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
            stage.tell("notifications/initialized").await;
            stage.ask("logging/setLevel", json!({ "level": "debug" })).await;
        }
        stage
    }

    /// The host, where it is in this process.
    pub fn host(&self) -> &Host {
        match &self.line {
            Line::Http { host, .. } => host,
            Line::Stdio { .. } => panic!("the host is another process"),
        }
    }

    fn message(&mut self, method: &str, mut params: Value) -> Value {
        self.last_id += 1;
        if self.era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/logLevel": "debug",
                "io.modelcontextprotocol/clientCapabilities":
                    { "elicitation": {}, "roots": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } },
            });
        }
        if method == "tools/call" {
            params["_meta"]["progressToken"] = self.last_id.into();
        }
        json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params })
    }

    /// One request, and its answer.
    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        let message = self.message(method, params);
        self.exchange(&[message]).await.remove(0).0
    }

    /// Calls a tool.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    async fn tell(&mut self, method: &str) {
        let message = json!({ "jsonrpc": "2.0", "method": method });
        match &mut self.line {
            Line::Http { address, session, .. } => {
                let headers = headers(Revision::LATEST_HANDSHAKE, session.as_deref(), &message);
                assert_eq!(post(*address, "/mcp", &headers, &message).await.0, 202);
            }
            Line::Stdio { input, .. } => write(input, &[message]).await,
        }
    }

    /// Sends a request, and while it runs a call of the other guest, which has to succeed in the same second.
    pub async fn attack(&mut self, method: &str, params: Value) -> Ran {
        for _ in 0..TRIES {
            let began = Instant::now();
            let bad = self.message(method, params.clone());
            let good = self.message("tools/call", json!({ "name": "echo_echo", "arguments": { "message": WELL } }));
            let answers: [(Value, usize, Instant); 2] = self.exchange(&[bad, good]).await.try_into().unwrap();
            let [(answer, noise, bad_ended), (other, _, good_ended)] = answers;
            assert_eq!(other["result"]["content"][0]["text"], WELL, "beside {method} {params}: {other}");
            if good_ended - began < SAME_SECOND {
                return Ran { answer, noise, other_first: good_ended < bad_ended };
            }
        }
        panic!("beside {method} {params} another guest's call took more than a second, {TRIES} times");
    }

    /// Sends messages together: each one's answer, what was told before it, and when it came.
    async fn exchange(&mut self, sent: &[Value]) -> Vec<(Value, usize, Instant)> {
        let revision = match self.era {
            Era::Modern => Revision::LATEST_MODERN,
            Era::Handshake => Revision::LATEST_HANDSHAKE,
        };
        match &mut self.line {
            Line::Http { address, session, .. } => {
                let (address, mut under_way) = (*address, Vec::new());
                for message in sent {
                    let (message, headers) = (message.clone(), headers(revision, session.as_deref(), message));
                    under_way.push(tokio::spawn(async move {
                        let (_, answered, body) = post(address, "/mcp", &headers, &message).await;
                        (answered, body, Instant::now())
                    }));
                }
                let mut answers = Vec::new();
                for exchange in under_way {
                    let (answered, body, ended) = exchange.await.unwrap();
                    if let Some(id) = answered.get("mcp-session-id") {
                        *session = Some(id.to_str().unwrap().to_owned());
                    }
                    let mut messages = messages(&body);
                    let answer = messages.pop().expect("an answer");
                    answers.push((answer, messages.len(), ended));
                }
                answers
            }
            Line::Stdio { input, output, .. } => {
                write(input, sent).await;
                let mut answers: Vec<Option<(Value, usize, Instant)>> = vec![None; sent.len()];
                let mut noise = 0;
                while answers.iter().any(Option::is_none) {
                    let line = output.next_line().await.unwrap().expect("the program ended");
                    let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:.1000}"));
                    match sent.iter().position(|message| answer.get("method").is_none() && message["id"] == answer["id"]) {
                        Some(at) => answers[at] = Some((answer, noise, Instant::now())),
                        None => noise += 1,
                    }
                }
                answers.into_iter().flatten().collect()
            }
        }
    }
}

async fn write(input: &mut ChildStdin, messages: &[Value]) {
    let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
    input.write_all(lines.as_bytes()).await.unwrap();
    input.flush().await.unwrap();
}
