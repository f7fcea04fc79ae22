//! Files that change while a program serves them: components, sources, and the configuration.

use super::{ECHO, KEEPER, PATIENCE, other_build};
use crate::support::clients::{headers, post};
use crate::support::{PROGRAM, component, root};
use guesthouse_protocol::Revision;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A program that serves, what it says, and where.
struct Program {
    _child: Child,
    said: mpsc::UnboundedReceiver<String>,
    address: SocketAddr,
}

fn program(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).env("XDG_RUNTIME_DIR", folder.join("run")).env("XDG_STATE_HOME", folder.join("state"));
    command
}

impl Program {
    async fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = program(folder);
        command.args(arguments).args(["--listen", "127.0.0.1:0"]).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (says, said) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let _ = says.send(line);
            }
        });
        let mut program = Self { _child: child, said, address: ([127, 0, 0, 1], 0).into() };
        let serving = program.says("Serving all").await;
        program.address = serving.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap().parse().unwrap();
        // Only then can it be managed.
        program.says("answers on its admin socket").await;
        program
    }

    /// The next line with that in it.
    async fn says(&mut self, part: &str) -> String {
        let mut before = Vec::new();
        let found = timeout(4 * PATIENCE, async {
            loop {
                let line = self.said.recv().await.unwrap_or_else(|| panic!("it ended without saying `{part}`: {before:#?}"));
                if line.contains(part) {
                    return line;
                }
                before.push(line);
            }
        });
        found.await.unwrap_or_else(|_| panic!("`{part}` is not said"))
    }

    async fn request(&self, guest: &str, method: &str, mut params: Value) -> Value {
        params["_meta"] =
            json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (_, _, body) = post(self.address, &format!("/mcp/{guest}"), &headers(Revision::LATEST_MODERN, None, &message), &message).await;
        serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{error}: {body:?}"))
    }

    async fn tools(&self, guest: &str) -> Vec<String> {
        let listed = self.request(guest, "tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// Puts a file in the place of another in one step, as builds do.
fn replace(file: &Path, with: &Path) {
    let new = file.with_extension("new");
    std::fs::copy(with, &new).unwrap();
    std::fs::rename(new, file).unwrap();
}

fn command(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = std::process::Command::new(PROGRAM)
        .args(arguments)
        .env("XDG_RUNTIME_DIR", folder.join("run"))
        .env("XDG_STATE_HOME", folder.join("state"))
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_is_served_and_nothing_else_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (kit, keeper) = (path.join("kit.wasm"), path.join("keeper.wasm"));
    std::fs::copy(component(ECHO), &kit).unwrap();
    std::fs::copy(component(KEEPER), &keeper).unwrap();
    let config = path.join("guesthouse.toml");
    let first =
        "[guest.kit]\nfile = \"kit.wasm\"\ntools = [\"echo\", \"trap\"]\n[guest.keeper]\nfile = \"keeper.wasm\"\ninstance = \"shared\"\n";
    std::fs::write(&config, first).unwrap();
    let mut program = Program::start(path, &["serve", "--watch"]).await;
    let count = async |program: &Program| {
        let answer = program.request("keeper", "tools/call", json!({ "name": "count", "arguments": {} })).await;
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    assert_eq!(count(&program).await, "1");

    // A component, then a broken one.
    replace(&kit, &component("tests/guests/hostile"));
    let live = program.says("(gate ").await;
    assert!(live.contains("kit: ") && live.contains("is live") && live.contains(" ms"), "{live}");
    assert!(program.tools("kit").await.contains(&"trap".to_owned()));
    std::fs::write(&kit, "broken").unwrap();
    assert!(program.says("refused, and the old one serves on").await.contains("not a WebAssembly component"));
    assert!(program.tools("kit").await.contains(&"trap".to_owned()));
    let (_, status) = command(path, &["status"]);
    assert!(status.contains("was refused at") && status.contains("not a WebAssembly component"), "{status}");
    replace(&kit, &component(ECHO));
    program.says("(gate ").await;
    assert_eq!(program.tools("kit").await, ["echo"]);

    // The configuration: one guest's table, a slip of the pen, one guest more, one less.
    std::fs::write(&config, first.replace("[\"echo\", \"trap\"]", "[\"no*\"]")).unwrap();
    program.says("(gate ").await;
    assert_eq!(program.tools("kit").await, [""; 0]);
    std::fs::write(&config, "[guest.kit\n").unwrap();
    program.says("the configuration is not taken").await;
    std::fs::write(&config, first).unwrap();
    program.says("(gate ").await;
    assert_eq!(program.tools("kit").await, ["echo"]);
    std::fs::write(&config, format!("{first}[guest.more]\nfile = \"kit.wasm\"\n")).unwrap();
    assert!(program.says("(gate ").await.contains("more: "));
    assert_eq!(program.tools("more").await, ["echo"]);
    std::fs::write(&config, first).unwrap();
    program.says("more: is served no more").await;
    assert!(program.request("more", "tools/list", json!({})).await.get("error").is_some());
    // All of this did not touch the guest that counts.
    assert_eq!(count(&program).await, "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_swap_and_go_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::copy(component(ECHO), path.join("kit.wasm")).unwrap();
    std::fs::write(path.join("guesthouse.toml"), "[guest.kit]\nfile = \"kit.wasm\"\ntools = [\"echo\", \"trap\"]\n").unwrap();
    let program = Program::start(path, &["serve"]).await;
    let other = other_build(path, "tests/guests/hostile", b'1');
    let (good, said) = command(path, &["swap", "kit", other.to_str().unwrap()]);
    assert!(good && said.contains("is live") && said.contains("the tool `trap` is new"), "{said}");
    assert!(program.tools("kit").await.contains(&"trap".to_owned()));
    let (good, said) = command(path, &["swap", "kit", path.join("guesthouse.toml").to_str().unwrap()]);
    assert!(!good && said.contains("not a WebAssembly component"), "{said}");
    let (good, said) = command(path, &["rollback", "kit", "--json"]);
    assert!(good && serde_json::from_str::<Value>(&said).unwrap()["guest"] == "kit", "{said}");
    assert_eq!(program.tools("kit").await, ["echo"]);
    let (good, said) = command(path, &["rollback", "kit"]);
    assert!(!good && said.contains("no version before"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_is_built_and_served_and_a_broken_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("kit");
    std::fs::create_dir_all(project.join("src")).unwrap();
    let manifest = std::fs::read_to_string(root().join(ECHO).join("Cargo.toml")).unwrap();
    let sdk = root().join("guest-sdk/rust");
    std::fs::write(project.join("Cargo.toml"), manifest.replace("../../../guest-sdk/rust", sdk.to_str().unwrap())).unwrap();
    std::fs::copy(root().join(ECHO).join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let source = std::fs::read_to_string(root().join(ECHO).join("src/lib.rs")).unwrap();
    let file = project.join("src/lib.rs");
    std::fs::write(&file, &source).unwrap();
    let mut program = Program::start(folder.path(), &["up"]).await;
    assert_eq!(program.tools("kit").await, ["echo"]);

    std::fs::write(&file, source.replace("fn echo(", "fn shout(")).unwrap();
    let live = program.says("(build ").await;
    assert!(live.contains("is live") && live.contains("gate "), "{live}");
    assert_eq!(program.tools("kit").await, ["shout"]);
    std::fs::write(&file, source.replace("-> String {", "-> Strin {")).unwrap();
    program.says("not built: guest `kit`").await;
    assert_eq!(program.tools("kit").await, ["shout"]);
    std::fs::write(&file, &source).unwrap();
    program.says("(build ").await;
    assert_eq!(program.tools("kit").await, ["echo"]);
}
