//! Two principals at one host: what is one's own does not cross over to the other.

use crate::support::PROGRAM;
use crate::support::clients::{headers, last_message, post, serve, source};
use guesthouse::auth::authenticator;
use guesthouse::config::Config;
use guesthouse::config::auth::TokenHash;
use guesthouse::config::grants::InstancePolicy;
use guesthouse_protocol::Revision;
use http::HeaderMap;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::Command;

const CONFORMANCE: &str = "tests/guests/conformance";
const HOSTILE: &str = "tests/guests/hostile";

/// Alice has two tokens, Bob one, and there is another Alice elsewhere.
fn config(more: &str) -> Config {
    let tokens: Vec<String> =
        [("alice", "alice", "acme"), ("phone", "alice", "acme"), ("bob", "bob", "acme"), ("other", "alice", "elsewhere")]
            .iter()
            .map(|(token, principal, tenant)| {
                let hash = TokenHash::of(token);
                format!("{{ name = \"{token}\", hash = \"{hash}\", principal = \"{principal}\", tenant = \"{tenant}\" }}")
            })
            .collect();
    crate::support::in_memory(Config::parse(&format!("[auth]\nkind = \"tokens\"\ntokens = [{}]\n{more}", tokens.join(", "))).unwrap())
}

/// What a modern client with that token is answered, and with which status.
async fn ask(address: SocketAddr, token: &str, method: &str, mut params: Value) -> (u16, HeaderMap, Value) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut headers = headers(Revision::LATEST_MODERN, None, &message);
    headers.push(("authorization".into(), format!("Bearer {token}")));
    let (status, answered, body) = post(address, "/mcp", &headers, &message).await;
    (status, answered, last_message(&body))
}

async fn call(address: SocketAddr, token: &str, tool: &str, arguments: Value) -> Value {
    ask(address, token, "tools/call", json!({ "name": tool, "arguments": arguments })).await.2
}

#[tokio::test]
async fn a_guest_is_told_who_calls() {
    let (_host, address) = serve(vec![source(HOSTILE)], config("")).await;
    for (token, told) in
        [("alice", r#"Some((Some("alice"), Some("acme"), false))"#), ("other", r#"Some((Some("alice"), Some("elsewhere"), false))"#)]
    {
        let answer = call(address, token, "who", json!({})).await;
        assert_eq!(answer["result"]["content"][0]["text"], told, "{answer}");
    }
    let (status, headers, _) = ask(address, "carol", "tools/list", json!({})).await;
    assert_eq!((status, headers["www-authenticate"].to_str().unwrap()), (401, "Bearer error=\"invalid_token\""));
}

/// Between callbacks nothing of the last one is left to be asked: an instance that many share speaks of each call's own caller.
#[tokio::test]
async fn a_shared_instance_is_told_of_the_caller_of_each_call_alone() {
    let mut guest = source(HOSTILE);
    guest.config.instance = InstancePolicy::Shared;
    let (_host, address) = serve(vec![guest], config("")).await;
    for (count, (token, told)) in [
        ("alice", r#"Some((Some("alice"), Some("acme"), false))"#),
        ("bob", r#"Some((Some("bob"), Some("acme"), false))"#),
        ("other", r#"Some((Some("alice"), Some("elsewhere"), false))"#),
        ("alice", r#"Some((Some("alice"), Some("acme"), false))"#),
    ]
    .into_iter()
    .enumerate()
    {
        let counted = call(address, token, "count", json!({})).await;
        assert_eq!(counted["result"]["content"][0]["text"], (count + 1).to_string(), "it is one instance: {counted}");
        let answer = call(address, token, "who", json!({})).await;
        assert_eq!(answer["result"]["content"][0]["text"], told, "{answer}");
    }
}

#[tokio::test]
async fn tasks_states_and_cursors_are_their_owners_alone() {
    let (_host, address) = serve(vec![source(CONFORMANCE)], config("[limits]\npage = 2")).await;
    let task = call(address, "alice", "confirm_delete", json!({ "filename": "x" })).await;
    let id = task["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned();
    let asked = call(address, "alice", "test_input_required_result_request_state", json!({})).await;
    let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned();
    let (_, _, page) = ask(address, "alice", "tools/list", json!({})).await;
    let cursor = page["result"]["nextCursor"].as_str().unwrap_or_else(|| panic!("{page}")).to_owned();
    let answers = json!({ "confirm": { "action": "accept", "content": { "ok": true } } });
    for (token, own) in [("bob", false), ("other", false), ("phone", true)] {
        let (_, _, task) = ask(address, token, "tasks/get", json!({ "taskId": id })).await;
        assert_eq!(task.get("result").is_some(), own, "{token}: {task}");
        let (_, _, page) = ask(address, token, "tools/list", json!({ "cursor": cursor })).await;
        assert_eq!(page.get("result").is_some(), own, "{token}: {page}");
        let retry = json!({
            "name": "test_input_required_result_request_state", "arguments": {}, "requestState": state, "inputResponses": answers,
        });
        let (_, _, answer) = ask(address, token, "tools/call", retry).await;
        assert_eq!(answer.get("result").is_some(), own, "{token}: {answer}");
        if !own {
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            // What is not one's own looks like what is not there.
            let (_, _, missing) = ask(address, token, "tasks/get", json!({ "taskId": "made-up" })).await;
            assert_eq!(task["error"]["code"], missing["error"]["code"], "{task}");
            let (_, _, cancelled) = ask(address, token, "tasks/cancel", json!({ "taskId": id })).await;
            assert!(cancelled.get("error").is_some(), "{cancelled}");
        }
    }
}

/// Names that would be one, were they only put together.
#[tokio::test]
async fn no_principal_has_a_name_that_leads_to_the_state_of_another() {
    let people = [
        ("a", None),
        ("a", Some("-")),
        ("a", Some("+")),
        ("b/a", None),
        ("a", Some("b")),
        ("c/a", Some("b")),
        ("a", Some("b/c")),
        ("a%2Fb", None),
        ("a/b", None),
        ("../guest", None),
        ("A", None),
        ("a ", None),
        ("local", None),
        ("ä", None),
        ("a\u{308}", None),
    ];
    let tokens: Vec<String> = people
        .iter()
        .enumerate()
        .map(|(token, (principal, tenant))| {
            let tenant = tenant.map(|tenant| format!(", tenant = {tenant:?}")).unwrap_or_default();
            let hash = TokenHash::of(&format!("token-{token}"));
            format!("{{ name = \"t{token}\", hash = \"{hash}\", principal = \"{}\"{tenant} }}", principal)
        })
        .collect();
    let config = Config::parse(&format!("[auth]\nkind = \"tokens\"\ntokens = [{}]", tokens.join(", "))).unwrap();
    let mut guest = source("tests/guests/state");
    guest.config.grants.state = Some(true);
    let (_host, address) = serve(vec![guest], crate::support::in_memory(config)).await;
    let count = json!({ "steps": [{ "bucket": "principal", "do": "count", "key": "n" }] });
    for round in 1..=2 {
        for (token, person) in people.iter().enumerate() {
            let answer = call(address, &format!("token-{token}"), "run", count.clone()).await;
            assert_eq!(answer["result"]["content"][0]["text"], format!("[{round}]"), "{person:?}: {answer}");
        }
    }
}

#[tokio::test]
async fn one_principal_does_not_take_all_places_of_a_guest() {
    let mut guest = source(HOSTILE);
    guest.config = Config::parse("[guest.a.limits]\nconcurrency = 4\nper_principal = 1\nwall = \"4s\"").unwrap().guest["a"].clone();
    let (_host, address) = serve(vec![guest], config("")).await;
    let looping = |token: &'static str| tokio::spawn(ask(address, token, "tools/call", json!({ "name": "loop", "arguments": {} })));
    // Whichever comes second is told so while the first one loops on.
    let (mut one, mut two) = (looping("alice"), looping("phone"));
    let (refused, runs) = tokio::select! {
        refused = &mut one => (refused.unwrap(), two),
        refused = &mut two => (refused.unwrap(), one),
    };
    let (status, headers, answer) = refused;
    assert_eq!((status, headers["retry-after"].to_str().unwrap(), &answer["error"]["code"]), (429, "1", &json!(-32000)), "{answer}");
    for token in ["bob", "other"] {
        let (status, _, answer) = ask(address, token, "tools/call", json!({ "name": "echo", "arguments": {} })).await;
        assert_eq!((status, answer["result"]["content"][0]["text"].as_str()), (200, Some("{}")), "{token}: {answer}");
    }
    let (status, _, answer) = runs.await.unwrap();
    assert_eq!((status, &answer["error"]["data"]["type"]), (200, &json!("handler_timeout")), "{answer}");
}

#[test]
fn a_token_is_made_and_known_by_its_entry() {
    let made = || {
        let output = Command::new(PROGRAM)
            .env("XDG_STATE_HOME", crate::support::state_home())
            .args(["token", "alice-laptop", "--principal", "alice", "--tenant", "acme"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let (said, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        let (token, entry) = said.trim_end().split_once('\n').map(|(token, entry)| (token.to_owned(), entry.to_owned())).unwrap();
        assert!(!told.contains(&token) && !entry.contains(&token), "the token is shown once");
        (token, entry)
    };
    let ((token, entry), (other, _)) = (made(), made());
    let config = Config::parse(&format!("[auth]\nkind = \"tokens\"\ntokens = [\n{entry}\n]")).unwrap();
    let auth = authenticator(&config.auth).unwrap();
    let identify =
        |token: &str| auth.identify(&HeaderMap::from_iter([(http::header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap())]));
    let identity = identify(&token).unwrap();
    assert_eq!((identity.principal.as_deref(), identity.tenant.as_deref()), (Some("alice"), Some("acme")));
    assert!(identify(&other).is_err());
    let refused = Command::new(PROGRAM).env("XDG_STATE_HOME", crate::support::state_home()).args(["token", ""]).output().unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{refused:?}");
}
