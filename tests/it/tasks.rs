//! Tasks, end to end: calls that become one, both eras' ways to follow them, and guests with jobs of their own.

mod handshake;
mod limits;

use crate::support::clients::{headers, last_message, post, serve, source};
use crate::support::schema::Schemas;
use guesthouse::config::Config;
use guesthouse::host::Host;
use guesthouse::transport::memory::Client;
use guesthouse_protocol::Revision;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

const GUEST: &str = "tests/guests/conformance";
const HOSTILE: &str = "tests/guests/hostile";
const JOBS: &str = "tests/guests/jobs";

/// Nothing here takes long; a test that hangs should say where.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls become tasks soon.
const SOON: &str = "[tasks]\nafter = \"20ms\"\npoll = \"10ms\"";

async fn host(config: &str, guest: &str) -> Host {
    Host::start(crate::support::in_memory(Config::parse(config).unwrap()), vec![source(guest)])
        .await
        .unwrap_or_else(|error| panic!("{error:#}"))
}

fn meta(capabilities: &Value) -> Value {
    json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": capabilities })
}

fn everything() -> Value {
    json!({ "elicitation": {}, "roots": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

fn checked(method: &str, revision: Revision, answer: Value) -> Value {
    let mut schemas = Schemas::new();
    let params = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": revision.as_str() } });
    let params = if revision == Revision::V2026_07_28 { params } else { json!({}) };
    schemas.sent(&json!({ "id": answer["id"], "method": method, "params": params }).to_string(), Some(revision));
    assert_eq!(schemas.answer_problem(&answer), None, "{answer}");
    answer
}

/// A request of a modern client that can follow tasks.
async fn modern(client: &Client, method: &str, params: Value) -> Value {
    modern_as(client, method, params, &everything()).await
}

async fn modern_as(client: &Client, method: &str, mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = meta(capabilities);
    let answer = timeout(PATIENCE, client.request(method, params)).await.expect("no answer comes").unwrap();
    checked(method, Revision::V2026_07_28, answer)
}

async fn call(client: &Client, tool: &str, arguments: Value) -> Value {
    modern(client, "tools/call", json!({ "name": tool, "arguments": arguments })).await
}

/// The id of the task that a call has become.
async fn begin(client: &Client, tool: &str, arguments: Value) -> String {
    let answer = call(client, tool, arguments).await;
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    answer["result"]["taskId"].as_str().unwrap().to_owned()
}

async fn get(client: &Client, id: &str) -> Value {
    modern(client, "tasks/get", json!({ "taskId": id })).await["result"].clone()
}

/// Asks until the task is as wanted.
async fn until(client: &Client, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let asking = async {
        loop {
            let task = get(client, id).await;
            if wanted(&task) {
                return task;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, asking).await.expect("the task never gets there")
}

async fn until_is(client: &Client, id: &str, status: &str) -> Value {
    until(client, id, |task| task["status"] == status).await
}

async fn update(client: &Client, id: &str, answers: Value) {
    let answer = modern(client, "tasks/update", json!({ "taskId": id, "inputResponses": answers })).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
}

fn keys(task: &Value) -> Vec<&str> {
    task["inputRequests"].as_object().unwrap_or_else(|| panic!("{task}")).keys().map(String::as_str).collect()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

fn form(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[tokio::test]
async fn a_slow_call_becomes_a_task_whose_result_is_fetched_on_another_connection() {
    let host = host(SOON, GUEST).await;
    let id = {
        let client = host.connect(None).unwrap();
        begin(&client, "slow_compute", json!({ "seconds": 0.4, "label": "x" })).await
        // The client is gone, and what runs for it stops: but this no longer does.
    };
    let other = host.connect(None).unwrap();
    let working = until(&other, &id, |task| task["statusMessage"] == "0.25 of 0.4").await;
    assert_eq!(working["status"], "working", "progress says how far it is");
    let task = until_is(&other, &id, "completed").await;
    assert_eq!(text(&task["result"]), "x: done after 0.4 s");
    assert!(task["createdAt"].as_str() < task["lastUpdatedAt"].as_str(), "{task}");
    // It runs once: the run goes on that had begun.
    let cancelled = modern(&other, "tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(cancelled["result"]["resultType"], "complete", "over or not, it is acknowledged: {cancelled}");
    assert_eq!(get(&other, &id).await["status"], "completed");
}

#[tokio::test]
async fn who_cannot_follow_a_task_gets_none() {
    let host = host(SOON, GUEST).await;
    let client = host.connect(None).unwrap();
    let without = |tool: &str, arguments| modern_as_call(tool, arguments);
    let none = json!({});
    let quick = modern_as(&client, "tools/call", without("slow_compute", json!({ "seconds": 0.1 })), &none).await;
    assert_eq!(quick["result"]["resultType"], "complete", "{quick}");
    let extension = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let id = begin(&client, "slow_compute", json!({ "seconds": 0.1 })).await;
    for (method, params) in [
        ("tools/call", without("failing_job", json!({}))),
        ("tasks/get", json!({ "taskId": id })),
        ("tasks/update", json!({ "taskId": id, "inputResponses": {} })),
        ("tasks/cancel", json!({ "taskId": id })),
    ] {
        let refused = modern_as(&client, method, params, &none).await;
        assert_eq!(
            (&refused["error"]["code"], &refused["error"]["data"]["requiredCapabilities"]),
            (&json!(-32021), &extension),
            "{refused}"
        );
    }
    // It is not cancelled, and a tool that does not run as a task never does.
    until_is(&client, &id, "completed").await;
    assert_eq!(text(&call(&client, "greet", json!({ "name": "Ada" })).await["result"]), "Hello, Ada!");
    let discovered = modern(&client, "server/discover", json!({})).await;
    assert_eq!(discovered["result"]["capabilities"]["extensions"], extension["extensions"], "{discovered}");
}

fn modern_as_call(tool: &str, arguments: Value) -> Value {
    json!({ "name": tool, "arguments": arguments })
}

#[tokio::test]
async fn failures_of_tools_and_of_the_protocol_end_tasks_differently() {
    let host = host("", GUEST).await;
    let client = host.connect(None).unwrap();
    let id = begin(&client, "failing_job", json!({})).await;
    let task = until_is(&client, &id, "completed").await;
    assert_eq!(task["result"]["isError"], true, "{task}");
    let id = begin(&client, "protocol_error_job", json!({})).await;
    let task = until_is(&client, &id, "failed").await;
    assert_eq!((&task["error"]["code"], &task["statusMessage"]), (&json!(-31000), &task["error"]["message"]), "{task}");
    for (method, params) in [
        ("tasks/get", json!({ "taskId": "task_nobody" })),
        ("tasks/update", json!({ "taskId": "task_nobody", "inputResponses": {} })),
        ("tasks/cancel", json!({ "taskId": "task_nobody" })),
    ] {
        let answer = modern(&client, method, params).await;
        assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(-32602), &json!("Task not found: task_nobody")));
    }
    // Another endpoint has other tasks.
    let elsewhere = host.connect(Some("conformance")).unwrap();
    let foreign = modern(&elsewhere, "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(foreign["error"]["message"], format!("Task not found: {id}"), "{foreign}");
}

#[tokio::test]
async fn a_task_collects_answers_and_goes_on_with_the_last() {
    let host = host("", GUEST).await;
    let client = host.connect(None).unwrap();
    let id = begin(&client, "multi_input", json!({})).await;
    let task = until_is(&client, &id, "input_required").await;
    assert_eq!(keys(&task), ["name", "confirm"]);
    assert_eq!(task["inputRequests"]["name"]["method"], "elicitation/create");
    update(&client, &id, json!({ "name": form(json!({ "name": "Ada" })), "other": form(json!({})) })).await;
    assert_eq!(keys(&get(&client, &id).await), ["confirm"]);
    // Neither an answer of the wrong shape nor one to what is answered changes anything.
    update(&client, &id, json!({ "confirm": form(json!({ "confirm": "yes" })), "name": form(json!({ "name": "Bob" })) })).await;
    assert_eq!(keys(&get(&client, &id).await), ["confirm"]);
    update(&client, &id, json!({ "confirm": form(json!({ "confirm": true })) })).await;
    let task = until_is(&client, &id, "completed").await;
    assert_eq!(text(&task["result"]), "Ada goes on");
    assert!(task.get("inputRequests").is_none());
    // Whoever cannot be asked makes a task that says so.
    let deaf = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let begun = modern_as(&client, "tools/call", modern_as_call("confirm_delete", json!({})), &deaf).await;
    let task = until_is(&client, begun["result"]["taskId"].as_str().unwrap(), "failed").await;
    assert_eq!(task["error"]["code"], -32021, "{task}");
}

#[tokio::test]
async fn what_is_asked_before_the_task_is_asked_of_the_request() {
    let host = host(SOON, GUEST).await;
    let client = host.connect(None).unwrap();
    let asks = call(&client, "test_tool_with_task", json!({})).await;
    assert_eq!(asks["result"]["resultType"], "input_required", "{asks}");
    let answers = json!({ "user_name": form(json!({ "name": "Ada" })) });
    let params = json!({
        "name": "test_tool_with_task", "arguments": {}, "inputResponses": answers, "requestState": asks["result"]["requestState"],
    });
    let begun = modern(&client, "tools/call", params).await;
    assert_eq!(begun["result"]["resultType"], "task", "{begun}");
    let task = until_is(&client, begun["result"]["taskId"].as_str().unwrap(), "completed").await;
    assert_eq!(text(&task["result"]), "Hello, Ada!");
}

#[tokio::test]
async fn over_http_a_closed_connection_is_no_end_to_a_task() {
    let config = crate::support::in_memory(Config::parse(SOON).unwrap());
    let (_host, address) = serve(vec![source(GUEST)], config).await;
    let request = async |id: i64, method: &str, mut params: Value| {
        params["_meta"] = meta(&everything());
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let (_, _, body) = post(address, "/mcp", &headers(Revision::V2026_07_28, None, &message), &message).await;
        last_message(&body)["result"].clone()
    };
    let begun = request(1, "tools/call", modern_as_call("slow_compute", json!({ "seconds": 0.3 }))).await;
    assert_eq!(begun["resultType"], "task", "{begun}");
    let asking = async {
        loop {
            // Each on a connection of its own.
            let task = request(2, "tasks/get", json!({ "taskId": begun["taskId"] })).await;
            if task["status"] != "working" {
                return task;
            }
        }
    };
    let task = timeout(PATIENCE, asking).await.expect("the task never ends");
    assert_eq!(text(&task["result"]), "result: done after 0.3 s");
}

#[tokio::test]
async fn a_subscription_tells_how_a_task_is_up_to_its_end() {
    let host = host("", GUEST).await;
    let client = host.connect(None).unwrap();
    let mut messages = client.messages();
    let id = begin(&client, "multi_input", json!({})).await;
    let listen = |id: i64, filter: Value, capabilities: &Value| {
        let params = json!({ "notifications": filter, "_meta": meta(capabilities) });
        json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params }).to_string()
    };
    let mut next = async || {
        let message = timeout(PATIENCE, messages.next()).await.expect("nothing comes").expect("the connection is closed");
        if message.get("method").is_some() {
            assert_eq!(Schemas::new().notification_problem(&message, Revision::V2026_07_28), None, "{message}");
        }
        message
    };
    client.send(listen(100, json!({ "taskIds": [id] }), &json!({}))).await.unwrap();
    assert_eq!(next().await["error"]["code"], -32021);
    client.send(listen(101, json!({ "taskIds": [id, "task_nobody"] }), &everything())).await.unwrap();
    assert_eq!(next().await["params"]["notifications"], json!({ "taskIds": [id] }));
    let mut until_is = async |status: &str| loop {
        let message = next().await;
        assert_eq!((&message["method"], &message["params"]["taskId"]), (&json!("notifications/tasks"), &json!(id)), "{message}");
        if message["params"]["status"] == status {
            return message["params"].clone();
        }
    };
    assert_eq!(keys(&until_is("input_required").await), ["name", "confirm"]);
    update(&client, &id, json!({ "name": { "action": "decline" }, "confirm": { "action": "decline" } })).await;
    let mut task = until_is("completed").await;
    assert_eq!(text(&task["result"]), "nobody stops");
    task.as_object_mut().unwrap().remove("_meta");
    let mut now = get(&client, &id).await;
    for member in ["_meta", "resultType"] {
        now.as_object_mut().unwrap().remove(member);
    }
    assert_eq!(task, now, "what is told is what would be answered");
}
