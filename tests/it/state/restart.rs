//! Tasks that outlive the process that began them, which is killed.

use super::*;
use crate::support::{PROGRAM, component};
use guesthouse::storage::{Backend as _, Commit, Part, Quota, Space, Sqlite};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The program over stdio, with its storage in a folder.
struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(folder: &Path) -> Self {
        let config = folder.join("guesthouse.toml");
        let text = format!(
            "[storage]\npath = \"state/state.db\"\n[tasks]\npoll = \"10ms\"\n[guest.state]\nfile = {:?}\ngrants = {{ state = true }}\n\
             limits = {{ cpu = \"1h\" }}",
            component(STATE)
        );
        std::fs::write(&config, text).unwrap();
        let mut child = Command::new(PROGRAM)
            .args(["--log", "off", "serve", "--stdio", "--config"])
            .arg(config)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn request(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
        });
        writeln!(self.input, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[tokio::test]
async fn a_task_goes_on_in_the_next_process_if_its_tool_may_be_run_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Program::start(folder.path());
    let [twice, once] = ["wait", "wait-once"].map(|tool| {
        let task = first.request("tools/call", json!({ "name": tool, "arguments": {} }));
        task["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned()
    });
    first.kill();
    let sqlite = Sqlite::open(&folder.path().join("state/state.db")).await.unwrap();
    let mut part = Part::new(Space { realm: "guest/state".into(), name: "guest".into() }, Quota::NONE);
    part.writes = vec![("ready".into(), Some("yes".into()))];
    sqlite.commit(Commit { parts: vec![part] }).await.unwrap();
    drop(sqlite);
    let mut second = Program::start(folder.path());
    let failed = second.request("tasks/get", json!({ "taskId": once }));
    assert_eq!(failed["result"]["status"], "failed", "{failed}");
    assert!(failed["result"]["statusMessage"].as_str().unwrap().contains("restarted"), "{failed}");
    let done = loop {
        let task = second.request("tasks/get", json!({ "taskId": twice }));
        if task["result"]["status"] != "working" {
            break task;
        }
    };
    assert_eq!(done["result"]["status"], "completed", "{done}");
    assert_eq!(done["result"]["result"]["content"][0]["text"], "it is ready", "{done}");
    second.kill();
    // What is over is there, too.
    let mut third = Program::start(folder.path());
    assert_eq!(third.request("tasks/get", json!({ "taskId": twice }))["result"], done["result"]);
    third.kill();
}
