//! A client that cancels a call gets the processor back: measured in what the program's guests still use of it.

use crate::support::{PROGRAM, component};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(120);
/// What a guest may use of the processor after its call was cancelled.
const AFTERWARDS_MAX: Duration = Duration::from_millis(100);

/// Processor time so far of the threads on which a program runs long calls.
fn used(pid: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|thread| thread.unwrap().path());
    let nanoseconds = threads.filter_map(|thread| {
        let name = std::fs::read_to_string(thread.join("comm")).ok()?;
        let times = std::fs::read_to_string(thread.join("schedstat")).ok()?;
        let first = times.split_whitespace().next()?.to_owned();
        (name.trim() == "guest-batch").then(|| first.parse::<u64>().unwrap())
    });
    Duration::from_nanos(nanoseconds.sum())
}

#[tokio::test]
async fn a_call_that_is_cancelled_over_stdio_frees_the_processor() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hostile.wasm");
    std::fs::copy(component("tests/guests/hostile"), &file).unwrap();
    // Only one call at a time: when another one is answered, the one before is gone.
    let limits = "[guest.hostile]\nlimits = { cpu = \"10m\", wall = \"10m\", concurrency = 1 }\n";
    std::fs::write(folder.path().join("guesthouse.toml"), limits).unwrap();
    let mut program = Command::new(PROGRAM)
        .args(["--log", "off", "run"])
        .arg(&file)
        .env("XDG_STATE_HOME", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pid = program.id().unwrap();
    let (mut input, output) = (program.stdin.take().unwrap(), program.stdout.take().unwrap());
    let mut output = BufReader::new(output).lines();
    let call = |id: u32, tool: &str| {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
        let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
    };
    let mut id = 0;
    for _ in 0..5 {
        id += 1;
        let (start, before) = (Instant::now(), used(pid));
        input.write_all(call(id, "loop").as_bytes()).await.unwrap();
        while used(pid) - before < Duration::from_millis(50) {
            assert!(start.elapsed() < PATIENCE, "the loop does not run");
            tokio::task::yield_now().await;
        }
        let cancelled = used(pid);
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        input.write_all(format!("{cancel}\n").as_bytes()).await.unwrap();
        // It may still be there for a moment, and the host says then that it is busy.
        loop {
            id += 1;
            input.write_all(call(id, "echo").as_bytes()).await.unwrap();
            let line = timeout(PATIENCE, output.next_line()).await.expect("nothing comes").unwrap().unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(answer["id"], id, "the cancelled call has no answer: {answer}");
            if answer.get("result").is_some() {
                break;
            }
            assert_eq!(answer["error"]["data"]["type"], "busy", "{answer}");
        }
        let afterwards = used(pid) - cancelled;
        assert!(afterwards < AFTERWARDS_MAX, "the guest used {afterwards:?} after the cancellation");
    }
}
