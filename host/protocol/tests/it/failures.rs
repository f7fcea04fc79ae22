//! The failure table: every kind of failure, for a tool and for something else, in both eras.

use std::sync::Arc;

use guesthouse_protocol::effect::{Effect, PeerConfig, TransportKind};
use guesthouse_protocol::{Failure, InternalKind, Mode, NotFound, Peer, Reply, RpcError};
use serde_json::{Value, json};

use crate::fixtures::json as raw;

/// What the client gets, and the HTTP status.
fn answer(modern: bool, method: &str, failure: Failure) -> (u16, Value) {
    let mut peer = Peer::new(Arc::new(PeerConfig::new(Mode::Both, TransportKind::Memory, None)));
    let mut params = json!({ "name": "x", "uri": "a://b" });
    if modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    } else {
        let client = json!({ "name": "c", "version": "1" });
        let opening = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let opening = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening });
        let effects = peer.receive(opening.to_string().as_bytes());
        let [Effect::Run(call)] = effects.as_slice() else { panic!("{effects:?}") };
        peer.finish(call.id, Ok(Reply::Profile(Box::default())));
    }
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let effects = peer.receive(request.to_string().as_bytes());
    let [Effect::Run(call)] = effects.as_slice() else { panic!("{effects:?}") };
    match peer.finish(call.id, Err(failure)).as_slice() {
        [Effect::Send(sent)] => (sent.status, serde_json::from_slice(&sent.message).unwrap()),
        [Effect::End(ended)] if *ended == call.id => (202, Value::Null),
        effects => panic!("{effects:?}"),
    }
}

/// The code and `data.type` of an error.
fn error(answer: &(u16, Value)) -> (u16, i64, &str) {
    let error = &answer.1["error"];
    (answer.0, error["code"].as_i64().unwrap_or_default(), error["data"]["type"].as_str().unwrap_or_default())
}

fn is_tool_error(answer: &(u16, Value), text: &str) -> bool {
    let result = &answer.1["result"];
    answer.0 == 200 && result["isError"] == true && result["content"][0]["text"].as_str().is_some_and(|shown| shown.contains(text))
}

#[test]
fn internal_failures_say_their_type_and_only_the_given_text() {
    let kinds = [
        (InternalKind::HandlerError, "handler_error"),
        (InternalKind::HandlerCrash, "handler_crash"),
        (InternalKind::HandlerTimeout, "handler_timeout"),
        (InternalKind::HandlerMemory, "handler_memory"),
        (InternalKind::OutputTooLarge, "output_too_large"),
        (InternalKind::HandlerStartFailed, "handler_start_failed"),
        (InternalKind::InvalidOutput, "invalid_output"),
        (InternalKind::TooManyRounds, "too_many_rounds"),
        (InternalKind::StateConflict, "state_conflict"),
    ];
    for (kind, word) in kinds {
        for modern in [true, false] {
            for method in ["tools/call", "resources/read", "prompts/get", "tools/list"] {
                let text = "Tool echo of guest textkit failed".to_owned();
                let answer = answer(modern, method, Failure::Internal { kind, text });
                assert_eq!(error(&answer), (200, -32603, word), "{method}");
                assert_eq!(answer.1["error"]["message"], "Tool echo of guest textkit failed");
            }
        }
    }
}

#[test]
fn what_is_not_found_has_the_code_of_its_era() {
    let table = [
        (NotFound::Tool, "tools/call", -32602, -32602, "name"),
        (NotFound::Prompt, "prompts/get", -32602, -32602, "name"),
        (NotFound::Resource, "resources/read", -32602, -32002, "uri"),
        (NotFound::Template, "resources/read", -32602, -32602, "uri"),
        (NotFound::Task, "tools/call", -32602, -32602, "taskId"),
    ];
    for (kind, method, modern_code, handshake_code, member) in table {
        for (modern, code) in [(true, modern_code), (false, handshake_code)] {
            let answer = answer(modern, method, Failure::NotFound { kind, name: "a://nope".into() });
            assert_eq!(error(&answer), (200, code, "not_found"), "{kind:?}");
            assert_eq!(answer.1["error"]["data"][member], "a://nope");
        }
    }
}

#[test]
fn a_model_reads_what_it_can_correct() {
    for modern in [true, false] {
        let arguments = || Failure::InvalidArguments { pointer: "/text".into(), message: "is missing".into() };
        assert!(is_tool_error(&answer(modern, "tools/call", arguments()), "/text"));
        assert_eq!(error(&answer(modern, "prompts/get", arguments())), (200, -32602, "invalid_params"));
        let params = || Failure::InvalidParams("no such city".into());
        assert!(is_tool_error(&answer(modern, "tools/call", params()), "no such city"));
        assert_eq!(error(&answer(modern, "resources/read", params())), (200, -32602, "invalid_params"));
        let root = Failure::InvalidArguments { pointer: String::new(), message: "is missing".into() };
        assert!(is_tool_error(&answer(modern, "tools/call", root), "the top level"));
    }
}

#[test]
fn a_missing_capability_is_named() {
    let failure = || Failure::MissingClientCapability(raw(r#"{"sampling":{}}"#));
    for method in ["tools/call", "prompts/get"] {
        let modern = answer(true, method, failure());
        assert_eq!(modern.0, 400);
        assert_eq!(modern.1["error"]["code"], -32021);
        assert_eq!(modern.1["error"]["data"], json!({ "requiredCapabilities": { "sampling": {} } }));
    }
    assert!(is_tool_error(&answer(false, "tools/call", failure()), "sampling"));
    assert_eq!(error(&answer(false, "prompts/get", failure())), (200, -32602, "missing_client_capability"));
    let nonsense = answer(true, "tools/call", Failure::MissingClientCapability(raw("[1]")));
    assert_eq!(nonsense.1["error"]["data"], json!({ "requiredCapabilities": {} }));
}

#[test]
fn a_guest_may_choose_codes_that_nobody_reserves() {
    let own = |code| Failure::Rpc(RpcError { code, message: "secret".into(), data: None });
    for code in [-31999, -32769, 0, 1, i32::MAX, i32::MIN] {
        let answer = answer(true, "tools/call", own(code));
        assert_eq!((answer.0, &answer.1["error"]["code"]), (200, &json!(code)));
        assert_eq!(answer.1["error"]["message"], "secret");
    }
    for code in [-32768, -32700, -32603, -32602, -32042, -32020, -32002, -32001, -32000] {
        let answer = answer(true, "tools/call", own(code));
        assert_eq!(error(&answer), (200, -32603, "handler_error"), "{code}");
        assert!(!answer.1.to_string().contains("secret"));
    }
}

#[test]
fn the_others() {
    assert_eq!(error(&answer(true, "tools/list", Failure::MethodNotFound)), (404, -32601, "method_not_found"));
    assert_eq!(error(&answer(false, "tools/list", Failure::MethodNotFound)), (200, -32601, "method_not_found"));
    for modern in [true, false] {
        let busy = answer(modern, "tools/call", Failure::Busy { retry_after_s: 7 });
        assert_eq!(error(&busy), (503, -32000, "busy"));
        let too_many = answer(modern, "tools/call", Failure::TooMany { retry_after_s: 7 });
        assert_eq!(error(&too_many), (429, -32000, "too_many_calls"));
        assert_eq!(answer(modern, "tools/call", Failure::Cancelled), (202, Value::Null));
    }
}
