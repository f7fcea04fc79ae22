//! The admin socket, the figures and the audit trail of a running program.

use crate::support::clients::{headers, post};
use crate::support::{PROGRAM, component};
use guesthouse_protocol::Revision;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

const HOSTILE: &str = "tests/guests/hostile";
const TOKEN: &str = "a-token-that-only-the-test-knows";

/// A program that serves the hostile guest, and says so.
struct Program {
    child: Child,
    address: SocketAddr,
    admin: Option<SocketAddr>,
    folder: tempfile::TempDir,
}

fn program(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).env("XDG_RUNTIME_DIR", folder.join("run")).env("XDG_STATE_HOME", folder.join("state"));
    command
}

async fn start(admin: &str) -> Program {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("[server]\nlisten = \"127.0.0.1:0\"\n{admin}\n[guest.hostile]\nfile = \"{}\"\n", component(HOSTILE).display());
    std::fs::write(folder.path().join("guesthouse.toml"), config).unwrap();
    let mut child = program(folder.path()).arg("serve").stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (mut address, mut admin) = (None, None);
    let at = |line: &str| line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).and_then(|at| at.parse().ok());
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.starts_with("Serving all") {
            address = at(&line);
        }
        if line.starts_with("Status and figures") {
            admin = at(&line);
        }
        if line.contains("answers on its admin socket") || (address.is_some() && admin.is_some()) {
            break;
        }
    }
    // What is said later must not fill the pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Program { child, address: address.expect("an address"), admin, folder }
}

impl Program {
    async fn call(&self, tool: &str) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} } } });
        let (_, _, body) = post(self.address, "/mcp", &headers(Revision::LATEST_MODERN, None, &message), &message).await;
        serde_json::from_slice(&body).unwrap()
    }

    async fn run(&self, arguments: &[&str]) -> String {
        let output = program(self.folder.path()).args(arguments).output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Asks the process to stop, and waits until it has.
    async fn stop(mut self) -> tempfile::TempDir {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
        assert!(self.child.wait().await.unwrap().success());
        self.folder
    }
}

#[tokio::test]
async fn a_host_tells_how_it_is_what_it_counted_and_what_went_wrong() {
    let program = start("[admin]\naudit = \"audit.jsonl\"").await;
    let answer = program.call("trap").await;
    assert_eq!(answer["error"]["data"]["type"], "handler_crash", "{answer}");

    let status: Value = serde_json::from_str(&program.run(&["status", "--json"]).await).unwrap();
    let guest = &status["guests"][0];
    assert_eq!((&guest["name"], &guest["calls"]["crash"], &guest["calls_alive"]), (&json!("hostile"), &json!(1), &json!(0)), "{status}");
    assert_eq!(guest["digest"].as_str().map(str::len), Some(64));
    let said = program.run(&["status"]).await;
    assert!(said.contains("hostile") && said.contains("1 crash"), "{said}");

    let figures = program.run(&["status", "--metrics"]).await;
    for line in [
        "guesthouse_calls_total{guest=\"hostile\",outcome=\"crash\"} 1",
        "guesthouse_requests_in_flight 0",
        "guesthouse_calls_alive{guest=\"hostile\"} 0",
        "guesthouse_guest_memory_bytes{guest=\"hostile\"} 0",
        "guesthouse_sessions 0",
    ] {
        assert!(figures.contains(line), "{line} is missing in\n{figures}");
    }

    let sockets: Vec<_> =
        std::fs::read_dir(program.folder.path().join("run/guesthouse")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [socket] = sockets.as_slice() else { panic!("{sockets:?}") };
    assert_eq!(std::fs::metadata(socket).unwrap().permissions().mode() & 0o777, 0o600);
    let folder = program.stop().await;
    assert!(!socket.exists(), "the socket goes with its host");

    let trail = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    let events: Vec<Value> = trail.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let loaded = events.iter().find(|event| event["event"] == "loaded").expect("what was loaded");
    assert_eq!((&loaded["guest"], &loaded["value"]), (&json!("hostile"), &guest["digest"]));
    let failed = events.iter().find(|event| event["event"] == "failed").expect("what failed");
    assert_eq!(
        (&failed["guest"], &failed["subject"], &failed["value"], &failed["principal"]),
        (&json!("hostile"), &json!("call"), &json!("crash"), &json!("local"))
    );
}

/// The status line of an answer to a GET on the admin's TCP socket.
async fn get(address: SocketAddr, path: &str, authorization: Option<&str>) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let authorization = authorization.map(|value| format!("authorization: {value}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn on_tcp_only_whoever_has_the_token_is_answered_and_clients_of_the_protocol_never() {
    let hash: String = Sha256::digest(TOKEN).iter().map(|byte| format!("{byte:02x}")).collect();
    let program = start(&format!("[admin]\nsocket = \"off\"\nlisten = \"127.0.0.1:0\"\ntoken_hash = \"sha256:{hash}\"")).await;
    let admin = program.admin.expect("an address");
    let right = format!("Bearer {TOKEN}");
    for (path, authorization, status) in [
        ("/metrics", Some(right.as_str()), "200"),
        ("/status", Some(right.as_str()), "200"),
        ("/swap", Some(right.as_str()), "405"),
        ("/swap", None, "401"),
        ("/metrics", None, "401"),
        ("/metrics", Some("Bearer"), "401"),
        ("/metrics", Some("Bearer wrong"), "401"),
        ("/metrics", Some(&format!("Basic {TOKEN}")), "401"),
        ("/nothing", None, "401"),
    ] {
        let answer = get(admin, path, authorization).await;
        assert!(answer.contains(status), "{path} {authorization:?}: {answer}");
    }
    for path in ["/metrics", "/status", "/swap", "/rollback"] {
        assert!(get(program.address, path, Some(&right)).await.contains("404"), "{path} is no part of the protocol's listener");
    }
    assert!(!program.folder.path().join("run/guesthouse").exists());
}

#[tokio::test]
async fn without_a_host_status_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let output = program(folder.path()).arg("status").output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("no host is running"), "{said}");
}
