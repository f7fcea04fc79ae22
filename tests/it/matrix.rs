//! Every method in every revision over every transport, against a table that reads like the specification.

use crate::support::{Client, Transport};
use guesthouse_protocol::Revision;
use serde_json::{Value, json};

const GUEST: &str = "tests/guests/conformance";
const TABLE: &str = include_str!("matrix.txt");
const REVISIONS: [Revision; 5] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

fn params(method: &str) -> Value {
    match method {
        "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }),
        "logging/setLevel" => json!({ "level": "error" }),
        "tools/call" => json!({ "name": "test_simple_text", "arguments": {} }),
        "resources/read" => json!({ "uri": "test://static-text" }),
        "resources/subscribe" | "resources/unsubscribe" => json!({ "uri": "test://watched-resource" }),
        "prompts/get" => json!({ "name": "test_simple_prompt" }),
        "completion/complete" => {
            json!({ "ref": { "type": "ref/prompt", "name": "test_prompt_with_arguments" }, "argument": { "name": "arg1", "value": "" } })
        }
        "tasks/get" | "tasks/result" | "tasks/cancel" => json!({ "taskId": "none" }),
        "tasks/update" => json!({ "taskId": "none", "inputResponses": {} }),
        _ => json!({}),
    }
}

async fn check(transport: Transport) {
    let mut wrong = Vec::new();
    for (column, revision) in REVISIONS.into_iter().enumerate() {
        let mut client = Client::connect_as(transport, revision, GUEST).await;
        for row in TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let cells: Vec<&str> = row.split_whitespace().collect();
            let (method, expected) = (cells[0], cells[column + 1]);
            let answer = client.request(method, params(method)).await;
            let got = match answer["error"]["code"].as_i64() {
                Some(code) => code.to_string(),
                None => "ok".to_owned(),
            };
            if got != expected {
                wrong.push(format!("{method} in {revision}: {got}, not {expected}: {answer}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{transport:?}:\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn over_http() {
    check(Transport::Http).await;
}

#[tokio::test]
async fn over_stdio() {
    check(Transport::Stdio).await;
}

#[tokio::test]
async fn in_process() {
    check(Transport::Memory).await;
}
