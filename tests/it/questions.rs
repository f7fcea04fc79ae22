//! Asking the client, end to end: one guest, both eras, and what becomes of state that is not what it was.

use crate::support::schema::Schemas;
use crate::support::{clients::source, root};
use guesthouse::config::Config;
use guesthouse::host::Host;
use guesthouse::transport::memory::Client;
use guesthouse_protocol::{Revision, RpcError};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const GUEST: &str = "tests/guests/conformance";
const THREE: &str = "test_input_required_result_multiple_inputs";
const TWO_ROUNDS: &str = "test_input_required_result_multi_round";
const WITH_STATE: &str = "test_input_required_result_request_state";
const HELLO: &str = "test_input_required_result_elicitation";
const PROMPT: &str = "test_input_required_result_prompt";

async fn host(config: &str) -> Host {
    assert!(root().join(GUEST).is_dir());
    Host::start(crate::support::in_memory(Config::parse(config).unwrap()), vec![source(GUEST)]).await.unwrap()
}

fn all() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {} })
}

fn form(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// A modern request whose client can answer everything.
async fn modern(client: &Client, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": all(),
    });
    let answer = client.request(method, params).await.unwrap();
    let mut schemas = Schemas::new();
    schemas.sent(&json!({ "id": answer["id"], "method": method }).to_string(), Some(Revision::LATEST_MODERN));
    if answer["error"].is_null() {
        assert_eq!(schemas.answer_problem(&answer), None, "{answer}");
    }
    answer
}

/// A modern call of a tool with answers and state, where there are any.
async fn call(client: &Client, tool: &str, answers: Value, state: &Value) -> Value {
    let mut params = json!({ "name": tool, "arguments": {} });
    if !answers.is_null() {
        params["inputResponses"] = answers;
    }
    if !state.is_null() {
        params["requestState"] = state.clone();
    }
    modern(client, "tools/call", params).await
}

fn asked(answer: &Value) -> Vec<&str> {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    answer["result"]["inputRequests"].as_object().unwrap().keys().map(String::as_str).collect()
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn reason(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    (error["code"].as_i64().unwrap_or_default(), error["data"]["reason"].as_str().unwrap_or_else(|| panic!("{answer}")))
}

fn greeting() -> Value {
    json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "Welcome" } })
}

#[tokio::test]
async fn a_modern_client_answers_with_another_request() {
    let client = host("").await.connect(None).unwrap();
    let first = call(&client, THREE, Value::Null, &Value::Null).await;
    assert_eq!(asked(&first), ["user_name", "greeting", "client_roots"]);
    // One answer is missing, one has the wrong kind, one is not wanted: what is open is asked again, what is there is kept.
    let some = json!({ "user_name": form(json!({ "name": "Jo" })), "greeting": { "roots": [] }, "other": greeting() });
    let second = call(&client, THREE, some, &first["result"]["requestState"]).await;
    assert_eq!(asked(&second), ["greeting", "client_roots"]);
    let rest = json!({ "greeting": greeting(), "client_roots": { "roots": [{ "uri": "file:///a" }] } });
    let third = call(&client, THREE, rest, &second["result"]["requestState"]).await;
    assert_eq!(text(&third), "Jo: Welcome (1 roots)");
    // State without answers is a legal retry.
    let again = call(&client, THREE, Value::Null, &second["result"]["requestState"]).await;
    assert_eq!(asked(&again), ["greeting", "client_roots"]);
}

#[tokio::test]
async fn answers_of_all_rounds_are_kept() {
    let client = host("").await.connect(None).unwrap();
    let first = call(&client, TWO_ROUNDS, Value::Null, &Value::Null).await;
    assert_eq!(asked(&first), ["step1"]);
    let second = call(&client, TWO_ROUNDS, json!({ "step1": form(json!({ "name": "Jo" })) }), &first["result"]["requestState"]).await;
    assert_eq!(asked(&second), ["step2"]);
    let third = call(&client, TWO_ROUNDS, json!({ "step2": form(json!({ "color": "blue" })) }), &second["result"]["requestState"]).await;
    assert!(text(&third).contains("Jo") && text(&third).contains("blue"), "{third}");
}

#[tokio::test]
async fn answers_without_state_are_those_of_one_round() {
    let client = host("").await.connect(None).unwrap();
    let answers = json!({ "user_name": form(json!({ "name": "Jo" })), "more": 1 });
    assert_eq!(text(&call(&client, HELLO, answers, &Value::Null).await), "Hello, Jo!");
    let wrong = call(&client, HELLO, json!({ "user_name": 12345 }), &Value::Null).await;
    assert_eq!(asked(&wrong), ["user_name"]);
    // A form whose content does not fit is asked again, too.
    let wrong = call(&client, HELLO, json!({ "user_name": form(json!({ "name": 5 })) }), &wrong["result"]["requestState"]).await;
    assert_eq!(asked(&wrong), ["user_name"]);
}

#[tokio::test]
async fn a_prompt_asks_too() {
    let client = host("").await.connect(None).unwrap();
    let first = modern(&client, "prompts/get", json!({ "name": PROMPT })).await;
    assert_eq!(asked(&first), ["user_context"]);
    let params = json!({
        "name": PROMPT,
        "inputResponses": { "user_context": form(json!({ "context": "tests" })) },
        "requestState": first["result"]["requestState"],
    });
    let second = modern(&client, "prompts/get", params).await;
    assert!(second["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains("tests"), "{second}");
}

#[tokio::test]
async fn state_that_is_not_what_it_was_is_refused() {
    let host = host("").await;
    let client = host.connect(None).unwrap();
    let first = call(&client, WITH_STATE, Value::Null, &Value::Null).await;
    let state = first["result"]["requestState"].as_str().unwrap();
    let yes = json!({ "confirm": form(json!({ "ok": true })) });
    let mut segments: Vec<&str> = state.split('.').collect();
    segments[1] = "other";
    let tampered = format!("{}A{}", &state[..40], &state[41..]);
    let cut = &state[..state.len() - 4];
    for (state, expected) in [
        (tampered.as_str(), "invalid_request_state"),
        (cut, "invalid_request_state"),
        ("", "invalid_request_state"),
        (&segments.join("."), "request_state_key_unknown"),
        (&"x".repeat(2 << 20), "request_state_too_large"),
    ] {
        assert_eq!(reason(&call(&client, WITH_STATE, yes.clone(), &json!(state)).await), (-32602, expected));
    }
    let state = json!(state);
    assert_eq!(reason(&call(&client, HELLO, yes.clone(), &state).await), (-32602, "request_state_binding_mismatch"));
    let other = json!({ "name": WITH_STATE, "arguments": { "more": 1 }, "inputResponses": yes, "requestState": state });
    assert_eq!(reason(&modern(&client, "tools/call", other).await), (-32602, "request_state_binding_mismatch"));
    let elsewhere = host.connect(Some("conformance")).unwrap();
    assert_eq!(reason(&call(&elsewhere, WITH_STATE, yes.clone(), &state).await), (-32602, "request_state_binding_mismatch"));
    // It is still good where it belongs, and by default more than once.
    for _ in 0..2 {
        assert_eq!(text(&call(&client, WITH_STATE, yes.clone(), &state).await), "Confirmed, state-ok");
    }
}

#[tokio::test]
async fn state_may_be_for_one_use() {
    let host = host("[seal]\nsingle_use = true").await;
    let client = Arc::new(host.connect(None).unwrap());
    let first = call(&client, WITH_STATE, Value::Null, &Value::Null).await;
    let state = first["result"]["requestState"].clone();
    let tries: Vec<_> = (0..20)
        .map(|_| {
            let (client, state) = (client.clone(), state.clone());
            tokio::spawn(async move { call(&client, WITH_STATE, json!({ "confirm": form(json!({ "ok": true })) }), &state).await })
        })
        .collect();
    let mut won = 0;
    for attempt in tries {
        let answer = attempt.await.unwrap();
        match answer["result"].is_object() {
            true => won += 1,
            false => assert_eq!(reason(&answer), (-32602, "request_state_replayed")),
        }
    }
    assert_eq!(won, 1);
}

#[tokio::test]
async fn nobody_is_asked_for_ever() {
    let host = host("[limits]\nquestion_rounds = 2").await;
    let client = host.connect(None).unwrap();
    let mut answer = call(&client, HELLO, Value::Null, &Value::Null).await;
    assert_eq!(asked(&answer), ["user_name"]);
    answer = call(&client, HELLO, json!({}), &answer["result"]["requestState"]).await;
    assert_eq!(asked(&answer), ["user_name"]);
    answer = call(&client, HELLO, json!({}), &answer["result"]["requestState"]).await;
    assert_eq!(answer["error"]["data"]["type"], "too_many_rounds", "{answer}");

    let client = handshake(&host, "2025-11-25", all(), |_, _| Ok(json!({}))).await.0;
    let answer = client.request_as_is("tools/call", params(HELLO)).await.unwrap();
    assert_eq!(answer["error"]["data"]["type"], "too_many_rounds", "{answer}");
}

fn params(tool: &str) -> serde_json::Map<String, Value> {
    json!({ "name": tool, "arguments": {} }).as_object().unwrap().clone()
}

/// A session whose client answers like this, and what it was asked.
async fn handshake(
    host: &Host,
    version: &'static str,
    capabilities: Value,
    answer: fn(&str, &Value) -> Result<Value, RpcError>,
) -> (Client, Arc<Mutex<Vec<String>>>) {
    let client = host.connect(None).unwrap();
    let methods = Arc::<Mutex<Vec<String>>>::default();
    let seen = methods.clone();
    let schemas = Mutex::new(Schemas::new());
    client.answer_with(move |method, params| {
        seen.lock().unwrap().push(method.into());
        let mut request = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
        if !params.is_null() {
            request["params"] = params.clone();
        }
        let mut schemas = schemas.lock().unwrap();
        schemas.sent("{}", version.parse::<Revision>().ok());
        assert_eq!(schemas.asked_problem(&request), None, "{request}");
        answer(method, params)
    });
    let hello = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": { "name": "t", "version": "1" } });
    client.request("initialize", hello).await.unwrap();
    client.notify("notifications/initialized", json!({})).await.unwrap();
    (client, methods)
}

#[tokio::test]
async fn a_handshake_client_is_asked_while_it_waits() {
    let host = host("").await;
    let answer = |method: &str, params: &Value| {
        let fields = params["requestedSchema"]["properties"].as_object();
        Ok(match method {
            "elicitation/create" if fields.is_some_and(|fields| fields.contains_key("name")) => form(json!({ "name": "Jo" })),
            "elicitation/create" => form(json!({ "color": "blue", "context": "blue" })),
            "sampling/createMessage" => greeting(),
            _ => json!({ "roots": [] }),
        })
    };
    for version in ["2025-06-18", "2025-11-25"] {
        let (client, methods) = handshake(&host, version, all(), answer).await;
        let three = client.request_as_is("tools/call", params(THREE)).await.unwrap();
        assert_eq!(text(&three), "Jo: Welcome (0 roots)");
        let rounds = client.request_as_is("tools/call", params(TWO_ROUNDS)).await.unwrap();
        assert!(text(&rounds).contains("Jo") && text(&rounds).contains("blue"), "{rounds}");
        let prompt = client.request_as_is("prompts/get", json!({ "name": PROMPT }).as_object().unwrap().clone()).await.unwrap();
        assert!(prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains("blue"), "{prompt}");
        let mut methods = methods.lock().unwrap().clone();
        methods.sort();
        let elicited = ["elicitation/create"; 4];
        assert_eq!(methods, [&elicited[..], &["roots/list", "sampling/createMessage"]].concat());
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told_so() {
    let host = host("").await;
    for (version, capabilities) in [("2025-11-25", json!({})), ("2024-11-05", all())] {
        let (client, methods) = handshake(&host, version, capabilities, |_, _| Ok(json!({}))).await;
        let answer = client.request_as_is("tools/call", params(HELLO)).await.unwrap();
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(text(&answer).contains("elicitation"), "{answer}");
        assert!(methods.lock().unwrap().is_empty());
    }
    let client = host.connect(None).unwrap();
    let answer = client.request("tools/call", json!({ "name": HELLO, "arguments": {} })).await.unwrap();
    assert_eq!(answer["error"]["code"], -32021, "{answer}");
    assert_eq!(answer["error"]["data"]["requiredCapabilities"], json!({ "elicitation": { "form": {} } }));
}
