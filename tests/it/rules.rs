//! Rules of the protocol that take a whole host to show: cursors, trace context, modes, identity, schemas.

use crate::support::clients::{headers, last_message, post, serve, source};
use crate::support::{Client, Era, PROGRAM, Transport, component};
use guesthouse::config::Mode;
use guesthouse::host::Host;
use guesthouse_protocol::Revision;
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const HOSTILE: &str = "tests/guests/hostile";
const TEXTKIT: &str = "sample-guests/rust/textkit";

async fn listed(host: &Host, guest: Option<&str>, list: &str, cursor: Option<&str>) -> Value {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
    host.connect(guest).unwrap().request(list, params).await.unwrap()
}

#[tokio::test]
async fn a_cursor_leads_through_its_own_list_and_through_no_other() {
    let mut config = crate::support::config();
    config.limits.page = 4;
    let guests = || vec![source(HOSTILE), source(TEXTKIT)];
    let host = Host::start(config.clone(), guests()).await.unwrap();
    let mut names = Vec::new();
    let mut cursors: Vec<String> = Vec::new();
    loop {
        let page = listed(&host, None, "tools/list", cursors.last().map(String::as_str)).await;
        let tools = page["result"]["tools"].as_array().unwrap();
        assert!(tools.len() <= 4);
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        let Some(next) = page["result"]["nextCursor"].as_str() else { break };
        assert!(!cursors.iter().any(|known| known == next), "a cursor comes again");
        cursors.push(next.to_owned());
    }
    config.limits.page = 1_000;
    let at_once = Host::start(config.clone(), guests()).await.unwrap();
    let all = listed(&at_once, None, "tools/list", None).await;
    let all: Vec<&str> = all["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, all);
    assert!(names.contains(&"textkit_slugify".to_owned()) && names.contains(&"hostile_echo".to_owned()), "{names:?}");

    let cursor = cursors.first().unwrap();
    let changed = format!("{}{}", if cursor.starts_with('A') { "B" } else { "A" }, cursor.get(1..).unwrap());
    for (host, guest, list, cursor) in [
        (&host, None, "prompts/list", cursor),
        (&host, None, "resources/list", cursor),
        (&host, None, "resources/templates/list", cursor),
        (&host, Some("hostile"), "tools/list", cursor),
        (&host, Some("textkit"), "tools/list", cursor),
        (&at_once, None, "tools/list", cursor),
        (&host, None, "tools/list", &changed),
        (&host, None, "tools/list", &"4".to_owned()),
    ] {
        let answer = listed(host, guest, list, Some(cursor)).await;
        let code = &answer["error"]["code"];
        assert_eq!(code, -32602, "{list} of {guest:?}: {answer}");
    }
}

#[tokio::test]
async fn a_guests_own_page_is_cut_and_nothing_of_it_is_lost() {
    let guests = || vec![source("tests/guests/changing"), source("tests/guests/conformance"), source(TEXTKIT)];
    for (page, guest) in [(1, None), (2, None), (4, None), (7, None), (500, None), (2, Some("conformance")), (3, Some("changing"))] {
        let mut config = crate::support::config();
        config.limits.page = page;
        let host = Host::start(config, guests()).await.unwrap();
        let (mut uris, mut cursor, mut pages) = (Vec::new(), None::<String>, 0);
        loop {
            let answer = listed(&host, guest, "resources/list", cursor.as_deref()).await;
            let resources = answer["result"]["resources"].as_array().unwrap();
            assert!(resources.len() <= page && !resources.is_empty(), "{page}: {answer}");
            uris.extend(resources.iter().map(|resource| resource["uri"].as_str().unwrap().to_owned()));
            pages += 1;
            cursor = answer["result"]["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        let all = uris.len();
        assert_eq!((all, pages), (if guest.is_some() { 3 } else { 7 }, all.div_ceil(page)), "{uris:?}");
        uris.sort();
        uris.dedup();
        assert_eq!(uris.len(), all, "a resource comes again");
    }
}

#[test]
fn a_guest_and_the_log_call_a_call_by_the_same_id() {
    let mut child = Command::new(PROGRAM)
        .env("XDG_STATE_HOME", crate::support::state_home())
        .arg("run")
        .arg(component(HOSTILE))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for (id, tool) in [(1, "context"), (2, "internal"), (3, "context")] {
        let mut message = modern("tools/call");
        message["id"] = id.into();
        message["params"]["name"] = tool.into();
        message["params"]["arguments"] = json!({});
        writeln!(input, "{message}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    let line = log.lines().find(|line| line.contains("internal")).unwrap_or_else(|| panic!("{log}"));
    let id = line.split_once("call{id=").and_then(|(_, rest)| rest.split_once(" tool=\"internal\" guest=\"")).map(|(id, _)| id);
    let id = id.unwrap_or_else(|| panic!("{line}"));
    let answers = String::from_utf8_lossy(&output.stdout);
    let told: Vec<&str> = answers.split("Some(\\\"").skip(1).filter_map(|rest| rest.split_once('\\')).map(|(id, _)| id).collect();
    assert_eq!(told.len(), 2, "{answers}");
    assert!(told[0] != told[1] && !told.contains(&id), "{id} {told:?}");
}

#[tokio::test]
async fn trace_context_reaches_the_guest() {
    let sound = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    for era in [Era::Modern, Era::Handshake] {
        let mut client = Client::connect(Transport::Memory, era, HOSTILE).await;
        for (traceparent, passes) in [(sound, true), ("00-0-0-01", false)] {
            let meta = json!({ "traceparent": traceparent, "tracestate": "a=1", "baggage": "b=2", "com.example/own": [3] });
            let answer = client.call_with_meta("trace", meta).await;
            let told = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert_eq!(told.contains(traceparent), passes, "{told}");
            for part in ["tracestate", "a=1", "com.example/own"] {
                assert!(told.contains(part), "{era:?}: {told}");
            }
            assert!(!told.contains("protocolVersion") && !told.contains("baggage"), "{told}");
        }
    }
}

#[tokio::test]
async fn the_identity_can_be_withheld_where_the_protocol_allows_it() {
    for shown in [true, false] {
        let mut config = crate::support::config();
        config.server.server_info = shown;
        let (host, address) = serve(vec![source(TEXTKIT)], config).await;
        let key = "io.modelcontextprotocol/serverInfo";
        for method in ["server/discover", "tools/list", "prompts/list"] {
            let answer = listed(&host, None, method, None).await;
            let identity = &answer["result"]["_meta"][key];
            assert_eq!(identity["name"] == "textkit", shown, "{answer}");
            assert!(shown || !answer.to_string().contains("serverInfo"), "{answer}");
        }
        // `initialize` has to say who answers.
        let (_, _, body) = post(address, "/mcp", &headers(Revision::LATEST_HANDSHAKE, None, &initialize()), &initialize()).await;
        assert_eq!(last_message(&body)["result"]["serverInfo"]["name"], "textkit");
    }
}

fn initialize() -> Value {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

fn modern(method: &str) -> Value {
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "_meta": meta } })
}

/// What a host answers that was started in each mode: its first request, by HTTP and by stdio.
///
/// mode, message, then HTTP status, and the code of the error or 0 on either transport.
const MODES: [(&str, &str, u16, i64); 9] = [
    ("modern", "initialize", 400, -32022),
    ("modern", "tools/list", 200, 0),
    ("modern", "server/discover", 200, 0),
    ("handshake", "initialize", 200, 0),
    ("handshake", "tools/list", 400, -32600),
    ("handshake", "server/discover", 400, -32600),
    ("both", "initialize", 200, 0),
    ("both", "tools/list", 200, 0),
    ("both", "server/discover", 200, 0),
];

#[tokio::test]
async fn a_mode_serves_its_eras_and_refuses_the_others_in_their_own_words() {
    for (mode, method, status, code) in MODES {
        let message = if method == "initialize" { initialize() } else { modern(method) };
        let mut config = crate::support::config();
        config.server.mode = match mode {
            "modern" => Mode::Modern,
            "handshake" => Mode::Handshake,
            _ => Mode::Both,
        };
        let revision = if method == "initialize" { Revision::LATEST_HANDSHAKE } else { Revision::LATEST_MODERN };
        let (_host, address) = serve(vec![source(TEXTKIT)], config).await;
        let (found, _, body) = post(address, "/mcp", &headers(revision, None, &message), &message).await;
        let over_http = last_message(&body);
        let over_stdio = stdio(mode, &message);
        assert_eq!(found, status, "{mode} {method}: {over_http}");
        for answer in [over_http, over_stdio] {
            assert_eq!(answer["error"]["code"].as_i64().unwrap_or_default(), code, "{mode} {method}: {answer}");
            if code == -32022 {
                assert_eq!(answer["error"]["data"]["supported"], json!(["2026-07-28"]), "{answer}");
            }
        }
    }
}

/// The first answer of a program that is started in this mode and told one thing.
fn stdio(mode: &str, message: &Value) -> Value {
    let mut child = Command::new(PROGRAM)
        .env("XDG_STATE_HOME", crate::support::state_home())
        .args(["--log", "off", "run", "--mode", mode])
        .arg(component(TEXTKIT))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{message}").unwrap();
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{mode} {message}: {error}"))
}

#[tokio::test]
async fn a_schema_reaches_the_client_as_the_guest_wrote_it() {
    let written = r#"{"x":12345678901234567890.00,"type":"object","properties":{"b":{},"a":{"\u0064efault":1e2}}}"#;
    let (_host, address) = serve(vec![source(HOSTILE)], crate::support::config()).await;
    let message = modern("tools/list");
    let (_, _, body) = post(address, "/mcp", &headers(Revision::LATEST_MODERN, None, &message), &message).await;
    assert!(String::from_utf8_lossy(&body).contains(&format!("\"inputSchema\":{written}")), "it is not there as written");
}

#[tokio::test]
async fn a_schema_that_multiplies_work_fails_its_own_calls_alone() {
    let host = Host::start(crate::support::config(), vec![source(HOSTILE)]).await.unwrap();
    let client = host.connect(None).unwrap();
    let deep = (0..40).fold(json!({}), |inner, _| json!({ "a": inner }));
    let begun = Instant::now();
    let answer = client.request("tools/call", json!({ "name": "schema-slow", "arguments": deep })).await.unwrap();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    // Without a bound this would take longer than there is time.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let next = client.request("tools/call", json!({ "name": "echo", "arguments": {} })).await.unwrap();
    assert_eq!(next["result"]["content"][0]["text"], "{}");
}
