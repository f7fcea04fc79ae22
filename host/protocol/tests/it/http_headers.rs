//! Tables of headers against bodies: where a POST goes, and why it does not.

use guesthouse_protocol::http::{Route, check_session_version, route, session_id};
use guesthouse_protocol::message::{ParseLimits, parse};
use guesthouse_protocol::{Mode, Revision};
use http::HeaderMap;
use serde_json::{Value, json};

fn headers(list: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in list {
        let name: http::HeaderName = name.parse().unwrap();
        headers.append(name, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn modern(method: &str, version: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": { "name": "x y", "uri": "a://b", "_meta": {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    } } })
}

fn plain(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": {} })
}

/// Where the message goes: `modern`, `handshake …`, or status and error code.
fn routed(list: &[(&str, &str)], body: &Value, mode: Mode) -> String {
    let text = body.to_string();
    let incoming = parse(text.as_bytes(), &ParseLimits::default()).unwrap();
    match route(&headers(list), &incoming, mode) {
        Ok(Route::Modern) => "modern".to_owned(),
        Ok(Route::Handshake { session, version, opens }) => {
            let version = version.map_or("-", Revision::as_str);
            format!("handshake {} {version} {opens}", session.unwrap_or("-"))
        }
        Err(refusal) => {
            let body: Value = serde_json::from_slice(&refusal.body).unwrap();
            format!("{} {}", refusal.status.as_u16(), body["error"]["code"])
        }
    }
}

const VERSION: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

/// Headers, body, and where that goes.
type Row<'a> = (Vec<(&'a str, &'a str)>, Value, &'a str);

#[test]
fn modern_headers_repeat_the_body() {
    let call = || modern("tools/call", "2026-07-28");
    let list = || modern("tools/list", "2026-07-28");
    let read = || modern("resources/read", "2026-07-28");
    let method = ("Mcp-Method", "tools/call");
    let name = ("Mcp-Name", "x y");
    let listing = ("Mcp-Method", "tools/list");
    let reading = ("Mcp-Method", "resources/read");
    let old = ("MCP-Protocol-Version", "2025-11-25");
    let table: Vec<Row<'_>> = vec![
        (vec![VERSION, method, name], call(), "modern"),
        (vec![("mcp-protocol-VERSION", "2026-07-28"), ("MCP-METHOD", "tools/call"), name], call(), "modern"),
        (vec![VERSION, name], call(), "400 -32020"),
        (vec![VERSION, ("Mcp-Method", "TOOLS/CALL"), name], call(), "400 -32020"),
        (vec![VERSION, listing, name], call(), "400 -32020"),
        (vec![VERSION, method, method, name], call(), "400 -32020"),
        (vec![method, name], call(), "400 -32020"),
        (vec![VERSION, VERSION, method, name], call(), "400 -32020"),
        (vec![old, method, name], call(), "400 -32020"),
        (vec![VERSION, listing], list(), "modern"),
        (vec![VERSION, listing, ("Mcp-Name", "whatever")], list(), "modern"),
        (vec![VERSION, reading, ("Mcp-Name", "a://b")], read(), "modern"),
        (vec![VERSION, reading, name], read(), "400 -32020"),
    ];
    for (headers, body, expected) in table {
        for mode in [Mode::Both, Mode::Modern] {
            assert_eq!(routed(&headers, &body, mode), expected, "{headers:?}");
        }
    }
}

#[test]
fn a_name_may_be_encoded() {
    let call = modern("tools/call", "2026-07-28");
    let table: [(&[&str], bool); 11] = [
        (&["x y"], true),
        (&["  x y\t"], true),
        (&["=?base64?eCB5?="], true),
        (&["=?base64?eCB6?="], false),
        (&["=?base64?eCB5"], false),
        (&["=?BASE64?eCB5?="], false),
        (&["=?base64?e!!5?="], false),
        (&[], false),
        (&["x y", "x y"], false),
        (&["X Y"], false),
        (&["x\u{a0}y"], false),
    ];
    for (names, fine) in table {
        let mut headers = vec![VERSION, ("Mcp-Method", "tools/call")];
        headers.extend(names.iter().map(|name| ("Mcp-Name", *name)));
        let expected = if fine { "modern" } else { "400 -32020" };
        assert_eq!(routed(&headers, &call, Mode::Both), expected, "{names:?}");
    }
}

#[test]
fn versions_decide_about_the_era() {
    let unknown = modern("tools/list", "v999.0.0");
    let method = ("Mcp-Method", "tools/list");
    // An unknown version goes to the peer, which lists those that are served.
    assert_eq!(routed(&[("MCP-Protocol-Version", "v999.0.0"), method], &unknown, Mode::Both), "modern");
    assert_eq!(routed(&[VERSION, method], &unknown, Mode::Both), "400 -32020");
    // The header says modern, the body says nothing.
    assert_eq!(routed(&[VERSION, method], &plain("tools/list"), Mode::Both), "400 -32602");
    assert_eq!(routed(&[VERSION, method], &plain("server/discover"), Mode::Both), "400 -32602");
    assert_eq!(routed(&[], &plain("server/discover"), Mode::Both), "modern");
    // A server of the modern era alone.
    assert_eq!(routed(&[], &plain("tools/list"), Mode::Modern), "400 -32020");
    assert_eq!(routed(&[], &plain("initialize"), Mode::Modern), "modern");
    assert_eq!(routed(&[("MCP-Protocol-Version", "2025-06-18")], &plain("tools/list"), Mode::Modern), "400 -32602");
    // A server of the handshake era alone does not know what a modern body is.
    let list = modern("tools/list", "2026-07-28");
    assert_eq!(routed(&[VERSION, method], &list, Mode::Handshake), "400 -32600");
    assert_eq!(routed(&[], &list, Mode::Handshake), "handshake - - false");
    // Notifications have no such headers.
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" });
    assert_eq!(routed(&[VERSION], &cancelled, Mode::Both), "modern");
}

#[test]
fn handshake_messages_go_to_their_session() {
    let session = ("Mcp-Session-Id", "abc");
    let version = ("MCP-Protocol-Version", "2025-06-18");
    let table: Vec<Row<'_>> = vec![
        (vec![], plain("initialize"), "handshake - - true"),
        (vec![session, version], plain("tools/list"), "handshake abc 2025-06-18 false"),
        (vec![session], plain("tools/list"), "handshake abc - false"),
        (vec![], plain("tools/list"), "handshake - - false"),
        (vec![session, ("MCP-Protocol-Version", "1.0")], plain("tools/list"), "400 -32600"),
        (vec![session, version, version], plain("tools/list"), "400 -32600"),
        (vec![session, session], plain("tools/list"), "400 -32600"),
        (vec![("Mcp-Session-Id", "a b")], plain("tools/list"), "400 -32600"),
        (vec![session], json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }), "handshake abc - false"),
        (vec![session], json!({ "jsonrpc": "2.0", "id": 1, "result": {} }), "handshake abc - false"),
        (vec![session], json!([plain("ping")]), "handshake abc - false"),
    ];
    for (headers, body, expected) in table {
        assert_eq!(routed(&headers, &body, Mode::Both), expected, "{headers:?}");
    }
}

#[test]
fn session_ids_are_visible_ascii_of_bounded_length() {
    let long = "x".repeat(128);
    for (id, fine) in [("!~", true), (long.as_str(), true), (&format!("{long}x"), false), ("", false), ("é", false)] {
        assert_eq!(session_id(&headers(&[("Mcp-Session-Id", id)])).is_ok(), fine, "{id}");
    }
    assert_eq!(session_id(&HeaderMap::new()), Ok(None));
}

#[test]
fn a_session_is_of_one_era_and_keeps_its_version() {
    let session = Revision::V2025_06_18;
    for named in [None, Some(Revision::V2024_11_05), Some(Revision::V2025_03_26), Some(session), Some(Revision::V2025_11_25)] {
        assert!(check_session_version(named, session).is_ok(), "{named:?}");
    }
    let refusal = check_session_version(Some(Revision::V2026_07_28), session).unwrap_err();
    assert_eq!(refusal.status, 400);
    let body: Value = serde_json::from_slice(&refusal.body).unwrap();
    assert_eq!(body["error"]["data"]["expectedVersion"], "2025-06-18");
}
