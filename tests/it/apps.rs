//! MCP Apps: a guest's view reaches the client as the guest made it, and the extension is announced where a guest has one.

use crate::support::clients::source;
use guesthouse::host::Host;
use serde_json::{Map, Value, json};

const EXTENSION: &str = "/capabilities/extensions/io.modelcontextprotocol~1ui/mimeTypes/0";

async fn profiles(guest: &str) -> [Value; 3] {
    let host = Host::start(crate::support::config(), vec![source(guest)]).await.unwrap();
    let discovered = host.connect(None).unwrap().request("server/discover", json!({})).await.unwrap();
    let mut answers = vec![discovered["result"].clone()];
    for version in ["2025-11-25", "2025-06-18"] {
        let hello = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let Value::Object(hello) = hello else { panic!("an object") };
        let answer = host.connect(None).unwrap().request_as_is("initialize", Map::from_iter(hello)).await.unwrap();
        answers.push(answer["result"].clone());
    }
    answers.try_into().unwrap()
}

#[tokio::test]
async fn the_extension_is_announced_where_a_guest_has_a_view() {
    let [modern, newest_handshake, older] = profiles("sample-guests/rust/palette").await;
    for profile in [modern, newest_handshake] {
        assert_eq!(profile.pointer(EXTENSION), Some(&json!("text/html;profile=mcp-app")), "{profile}");
    }
    assert_eq!(older.pointer("/capabilities/extensions"), None);
    for profile in profiles("sample-guests/rust/textkit").await {
        assert_eq!(profile.pointer(EXTENSION), None, "{profile}");
    }
}

#[tokio::test]
async fn a_tool_names_its_view_and_the_view_is_read() {
    let host = Host::start(crate::support::config(), vec![source("sample-guests/rust/palette")]).await.unwrap();
    let client = host.connect(None).unwrap();
    let tools = client.request("tools/list", json!({})).await.unwrap();
    let uri = tools["result"]["tools"][0]["_meta"]["ui"]["resourceUri"].as_str().unwrap().to_owned();
    let read = client.request("resources/read", json!({ "uri": uri })).await.unwrap();
    let contents = &read["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "text/html;profile=mcp-app", "{read}");
    assert_eq!(contents["text"], include_str!("../../sample-guests/rust/palette/strip.html"));
}
