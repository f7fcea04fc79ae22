//! Tasks that outlive the process that began them, which is killed.

use super::*;
use crate::support::{PROGRAM, component};
use guesthouse::storage::{Backend as _, Commit, Part, Quota, Space, Sqlite};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The storage in the program's folder, in a space whose realms the tests can name.
const IN_FOLDER: &str = "path = \"state/state.db\"\nspace = \"tests\"";

/// The program over stdio, with its storage in a folder.
struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// One that serves one guest.
    fn start(folder: &Path) -> Self {
        Self::serving(folder, IN_FOLDER, &[("state", "*")])
    }

    /// One that serves these guests, each with the tools that it is to have.
    fn serving(folder: &Path, storage: &str, guests: &[(&str, &str)]) -> Self {
        let config = folder.join("guesthouse.toml");
        let mut text = format!("[storage]\n{storage}\n[tasks]\npoll = \"10ms\"\n[server]\nprefix = \"never\"\n");
        for (name, tools) in guests {
            text.push_str(&format!(
                "[guest.{name}]\nfile = {:?}\ntools = [{tools:?}]\ngrants = {{ state = true }}\nlimits = {{ cpu = \"1h\" }}\n",
                component(STATE)
            ));
        }
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

    /// A task once it is worked on no more.
    fn until_over(&mut self, task: &str) -> Value {
        loop {
            let now = self.request("tasks/get", json!({ "taskId": task }));
            if now["result"]["status"] != "working" {
                return now;
            }
        }
    }

    /// Begins a task that waits.
    fn begin(&mut self) -> String {
        let begun = self.request("tools/call", json!({ "name": "wait", "arguments": {} }));
        begun["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Lets the guest that has this realm end its waiting.
async fn be_ready(file: &Path, realm: &str) {
    let sqlite = Sqlite::open(file).await.unwrap();
    let mut part = Part::new(Space { realm: realm.into(), name: "guest".into() }, Quota::NONE);
    part.writes = vec![("ready".into(), Some("yes".into()))];
    sqlite.commit(Commit { parts: vec![part] }).await.unwrap();
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
    be_ready(&folder.path().join("state/state.db"), "guest/tests/state").await;
    let mut second = Program::start(folder.path());
    let failed = second.request("tasks/get", json!({ "taskId": once }));
    assert_eq!(failed["result"]["status"], "failed", "{failed}");
    assert!(failed["result"]["statusMessage"].as_str().unwrap().contains("restarted"), "{failed}");
    let done = second.until_over(&twice);
    assert_eq!(done["result"]["status"], "completed", "{done}");
    assert_eq!(done["result"]["result"]["content"][0]["text"], "it is ready", "{done}");
    second.kill();
    // What is over is there, too.
    let mut third = Program::start(folder.path());
    assert_eq!(third.request("tasks/get", json!({ "taskId": twice }))["result"], done["result"]);
    third.kill();
}

#[tokio::test]
async fn a_task_is_left_to_the_configuration_and_the_guest_that_it_is_of() {
    let folders = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| folders.path().join(name));
    [&here, &there].into_iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    let shared = format!("path = {:?}", folders.path().join("state/state.db"));
    let joined = format!("{shared}\nspace = \"tests\"");
    let mut first = Program::serving(&here, &joined, &[("state", "*")]);
    let task = first.begin();
    first.kill();
    // Another project's, with the same guest under the same name; another guest of this one, with the same tools.
    let others = [Program::serving(&there, &shared, &[("state", "*")]), Program::serving(&here, &joined, &[("other", "*")])];
    for mut other in others {
        let found = other.request("tasks/get", json!({ "taskId": task }));
        assert!(found.get("error").is_some(), "{found}");
        other.kill();
    }
    be_ready(&folders.path().join("state/state.db"), "guest/tests/state").await;
    let mut again = Program::serving(&there, &joined, &[("state", "*")]);
    let done = again.until_over(&task);
    assert_eq!(done["result"]["result"]["content"][0]["text"], "it is ready", "{done}");
    again.kill();
}

#[tokio::test]
async fn a_task_does_not_go_on_in_a_guest_that_took_its_tools_name_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Program::start(folder.path());
    let task = first.begin();
    first.kill();
    for guest in ["state", "other"] {
        be_ready(&folder.path().join("state/state.db"), &format!("guest/tests/{guest}")).await;
    }
    let mut second = Program::serving(folder.path(), IN_FOLDER, &[("state", "run"), ("other", "wait")]);
    let failed = second.until_over(&task);
    assert_eq!(failed["result"]["status"], "failed", "{failed}");
    assert!(failed["result"]["statusMessage"].as_str().unwrap().contains("no tool of the guest `state`"), "{failed}");
    // The other's own do.
    let own = second.begin();
    assert_eq!(second.until_over(&own)["result"]["status"], "completed");
    second.kill();
}
