//! A list entry with every member, in every revision: what the schema knows is there, and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use guesthouse_protocol::effect::{CallId, Effect, PeerConfig, TransportKind};
use guesthouse_protocol::{Mode, Peer, Revision};
use serde_json::{Value, json};

use crate::fixtures;
use crate::schema::{definitions, document};

/// The result of a method, in the form of the revision.
pub(crate) fn result(revision: Revision, method: &str, outcome: &str) -> Value {
    let config = PeerConfig::new(Mode::Both, TransportKind::Memory, Some(&fixtures::server_info()));
    let mut peer = Peer::new(Arc::new(config));
    let mut params = json!({ "name": "x", "uri": "a://b" });
    if revision == Revision::V2026_07_28 {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision.as_str(),
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    } else {
        let client = json!({ "name": "c", "version": "1" });
        let opening = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client });
        let opening = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening });
        peer.receive(opening.to_string().as_bytes());
        let answer = sent(peer.finish(CallId(1), fixtures::outcome("profile")));
        if method == "initialize" {
            return answer["result"].clone();
        }
    }
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let effects = peer.receive(request.to_string().as_bytes());
    let [Effect::Run(call)] = effects.as_slice() else { panic!("{effects:?}") };
    sent(peer.finish(call.id, fixtures::outcome(outcome)))["result"].clone()
}

fn sent(effects: Vec<Effect>) -> Value {
    let [Effect::Send(outgoing)] = effects.as_slice() else { panic!("{effects:?}") };
    serde_json::from_slice(&outgoing.message).unwrap()
}

/// Members that the package never writes, by definition.
fn left_out(definition: &str) -> BTreeSet<&'static str> {
    match definition {
        "ServerCapabilities" => BTreeSet::from(["experimental", "extensions", "tasks"]),
        _ => BTreeSet::new(),
    }
}

fn check(revision: Revision, definition: &str, value: &Value) {
    let document = document(revision);
    let Some(known) = definitions(&document).get(definition) else {
        return;
    };
    let known: BTreeSet<&str> = known["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let expected: BTreeSet<&str> = known.difference(&left_out(definition)).copied().collect();
    let written: BTreeSet<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(written, expected, "{definition} in {revision}");
}

#[test]
fn an_entry_has_exactly_the_members_of_its_revision() {
    for revision in Revision::ALL {
        let tools = result(revision, "tools/list", "tools");
        let tool = &tools["tools"][1];
        check(revision, "Tool", tool);
        if revision >= Revision::V2025_03_26 {
            check(revision, "ToolAnnotations", &tool["annotations"]);
        }
        if revision >= Revision::V2025_11_25 {
            check(revision, "Icon", &tool["icons"][0]);
        }
        check(revision, "ListToolsResult", &with_meta(tools));
        let resource = &result(revision, "resources/list", "resources")["resources"][1];
        check(revision, "Resource", resource);
        check(revision, "Annotations", &resource["annotations"]);
        check(revision, "ResourceTemplate", &result(revision, "resources/templates/list", "templates")["resourceTemplates"][0]);
        let prompt = &result(revision, "prompts/list", "prompts")["prompts"][0];
        check(revision, "Prompt", prompt);
        check(revision, "PromptArgument", &prompt["arguments"][0]);
        let contents = &result(revision, "resources/read", "resource")["contents"];
        check(revision, "TextResourceContents", &contents[0]);
    }
}

/// Lists have no `_meta` of their own before the modern era; the schemas allow one.
fn with_meta(mut value: Value) -> Value {
    value["_meta"] = json!({});
    value
}

#[test]
fn the_server_describes_itself_in_the_words_of_the_revision() {
    for revision in Revision::ALL {
        let modern = revision == Revision::V2026_07_28;
        let answer = result(revision, if modern { "server/discover" } else { "initialize" }, "profile");
        check(revision, "ServerCapabilities", &answer["capabilities"]);
        if !modern {
            check(revision, "Implementation", &answer["serverInfo"]);
        }
    }
}

#[test]
fn content_that_a_revision_lacks_becomes_text() {
    for revision in Revision::ALL {
        let answer = result(revision, "tools/call", "tool");
        let kinds: Vec<&str> = answer["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
        let audio = if revision >= Revision::V2025_03_26 { "audio" } else { "text" };
        let link = if revision >= Revision::V2025_06_18 { "resource_link" } else { "text" };
        let mut expected = vec!["text", "image", audio, link, "resource"];
        if revision < Revision::V2025_06_18 {
            // The structured content, as text.
            expected.push("text");
        }
        assert_eq!(kinds, expected, "{revision}");
        let definitions = ["TextContent", "ImageContent", "AudioContent", "ResourceLink", "EmbeddedResource"];
        for (block, definition) in answer["content"].as_array().unwrap().iter().zip(definitions) {
            let replaced = block["type"] == "text" && definition != "TextContent";
            if !replaced {
                check(revision, definition, block);
            }
        }
    }
}

#[test]
fn structured_content_is_never_lost() {
    for revision in Revision::ALL {
        let object = result(revision, "tools/call", "structured");
        let text = object["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json!({ "words": 2 }), "{revision}");
        assert_eq!(object.get("structuredContent").is_some(), revision >= Revision::V2025_06_18, "{revision}");
        let list = result(revision, "tools/call", "structured-list");
        let carried = list.get("structuredContent").is_some();
        assert_eq!(carried, revision >= Revision::V2026_07_28, "{revision}");
        assert_eq!(list["content"].as_array().unwrap().len(), if carried { 1 } else { 2 }, "{revision}");
    }
}
