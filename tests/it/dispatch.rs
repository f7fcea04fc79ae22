//! The same requests over every transport, in both eras: lists, calls, reads, prompts, completion, and their failures.

use crate::support::{Client, Era, over_all_transports};
use serde_json::{Value, json};

const TEXTKIT: &str = "sample-guests/rust/textkit";
const HOSTILE: &str = "tests/guests/hostile";

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

over_all_transports!(a_guest_is_listed_and_called, TEXTKIT, |mut client: Client| async move {
    let listed = client.request("tools/list", json!({})).await;
    assert_eq!(names(&listed["result"]["tools"]), ["word_count", "slugify", "summarize_diff"]);
    assert_eq!(listed["result"]["resultType"], if client.era == Era::Modern { json!("complete") } else { Value::Null });

    let counted = client.call("word_count", json!({ "text": "one two\nthree" })).await;
    assert_eq!(counted["result"]["structuredContent"], json!({ "words": 3, "characters": 13, "lines": 2 }), "{counted}");
    assert_eq!(counted["result"]["content"][0]["text"], "3 words");

    let failed = client.call("slugify", json!({ "text": "!!!" })).await;
    assert_eq!(failed["result"]["isError"], true, "{failed}");
});

over_all_transports!(resources_and_prompts_are_served, TEXTKIT, |mut client: Client| async move {
    let listed = client.request("resources/list", json!({})).await;
    assert_eq!(names(&listed["result"]["resources"]), ["stopwords"]);
    let templates = client.request("resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "textkit://case/{style}/{text}");
    let read = client.request("resources/read", json!({ "uri": "textkit://case/upper/a%20b" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "A B", "{read}");

    let prompts = client.request("prompts/list", json!({})).await;
    assert_eq!(names(&prompts["result"]["prompts"]), ["rewrite"]);
    let prompt = client.request("prompts/get", json!({ "name": "rewrite", "arguments": { "text": "hi", "tone": "formal" } })).await;
    assert!(prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains("formal"), "{prompt}");
    let completed = client
        .request(
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "rewrite" }, "argument": { "name": "tone", "value": "f" } }),
        )
        .await;
    assert_eq!(completed["result"]["completion"]["values"], json!(["formal", "friendly"]), "{completed}");
});

over_all_transports!(what_is_not_there_is_said_to_be_so, TEXTKIT, |mut client: Client| async move {
    let resource_code = if client.era == Era::Modern { -32602 } else { -32002 };
    for (method, params, code) in [
        ("tools/call", json!({ "name": "nothing", "arguments": {} }), -32602),
        ("prompts/get", json!({ "name": "nothing" }), -32602),
        ("prompts/get", json!({ "name": "rewrite", "arguments": {} }), -32602),
        ("resources/read", json!({ "uri": "textkit://nothing" }), resource_code),
        ("completion/complete", json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "" } }), -32602),
        ("tools/list", json!({ "cursor": "made up" }), -32602),
        ("no/such/method", json!({}), -32601),
    ] {
        let answer = client.request(method, params.clone()).await;
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
    }
});

over_all_transports!(arguments_that_fail_the_schema_are_named_by_their_pointer, TEXTKIT, |mut client: Client| async move {
    for (arguments, part) in [(json!({ "text": 5 }), "/text"), (json!({}), "text"), (json!({ "text": "a", "more": 1 }), "more")] {
        let answer = client.call("word_count", arguments).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains(part), "{answer}");
    }
});

over_all_transports!(a_guest_fails_its_own_call_with_the_right_words, HOSTILE, |mut client: Client| async move {
    for (tool, kind) in [
        ("trap", "handler_crash"),
        ("panic", "handler_crash"),
        ("recurse", "handler_crash"),
        ("grow", "handler_memory"),
        ("huge", "output_too_large"),
        ("alias", "output_too_large"),
        ("internal", "handler_error"),
        ("bad-json", "invalid_output"),
        ("wrong-output", "invalid_output"),
        ("without-output", "invalid_output"),
    ] {
        let answer = client.call(tool, json!({})).await;
        assert_eq!(answer["error"]["code"], -32603, "{tool}: {answer}");
        assert_eq!(answer["error"]["data"]["type"], kind, "{tool}: {answer}");
        let next = client.call("echo", json!({ "still": "here" })).await;
        assert_eq!(next["result"]["content"][0]["text"], "{\"still\":\"here\"}", "after {tool}: {next}");
    }
    let own_code = client.call("rpc", json!({})).await;
    assert_eq!(own_code["error"]["code"], 7, "{own_code}");
    let params = client.call("invalid-params", json!({ "a": 1 })).await;
    assert_eq!(params["result"]["isError"], true, "{params}");
    let capability = client.call("missing-capability", json!({})).await;
    match client.era {
        Era::Modern => assert_eq!(capability["error"]["data"]["requiredCapabilities"], json!({ "roots": {} }), "{capability}"),
        Era::Handshake => assert_eq!(capability["result"]["isError"], true, "{capability}"),
    }
});

over_all_transports!(a_tool_with_an_unusable_schema_is_left_out_and_the_rest_served, HOSTILE, |mut client: Client| async move {
    let listed = client.request("tools/list", json!({})).await;
    let names = names(&listed["result"]["tools"]);
    for left_out in ["schema-no-json", "schema-no-object", "schema-invalid", "schema-far-reference", "header-invalid"] {
        assert!(!names.contains(&left_out), "{left_out} is listed");
        let answer = client.call(left_out, json!({})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert!(names.contains(&"echo"));
});
