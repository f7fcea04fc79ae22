//! Whose a bucket is.

use super::*;

#[tokio::test]
async fn every_function_works_on_what_the_callback_wrote_and_on_what_is_saved() {
    let host = host(in_memory(), granted()).await;
    let steps = json!([
        { "bucket": "guest", "do": "get", "key": "a" },
        { "bucket": "guest", "do": "set", "key": "a", "value": "1" },
        { "bucket": "guest", "do": "get", "key": "a" },
        { "bucket": "guest", "do": "set-many", "entries": [["b", "2"], ["c", "3"]] },
        { "bucket": "guest", "do": "delete", "key": "b" },
        { "bucket": "guest", "do": "exists", "key": "b" },
        { "bucket": "guest", "do": "exists", "key": "c" },
        { "bucket": "guest", "do": "add", "key": "c", "delta": 4 },
        { "bucket": "guest", "do": "list" },
        { "bucket": "guest", "do": "get-many", "keys": ["a", "b", "c"] },
    ]);
    let pairs = json!([["a", "1"], null, ["c", "7"]]);
    let keys = json!({ "keys": ["a", "c"], "cursor": null });
    assert_eq!(run(&host, steps).await, json!([null, null, "1", null, null, false, true, 7, keys, pairs]));
    let steps = json!([
        { "bucket": "guest", "do": "get-many", "keys": ["a", "b", "c"] },
        { "bucket": "guest", "do": "list" },
        { "bucket": "guest", "do": "delete-many", "keys": ["a", "b"] },
        { "bucket": "guest", "do": "list" },
        { "bucket": "guest", "do": "list", "cursor": 7 },
        { "bucket": "guest", "do": "add", "key": "", "delta": 1 },
    ]);
    let seen = run(&host, steps).await;
    assert_eq!(seen[0], pairs);
    assert_eq!((&seen[1], &seen[3]["keys"]), (&keys, &json!(["c"])));
    assert!(seen[4]["error"].as_str().unwrap().contains("cursor"), "{seen}");
    assert!(seen[5]["error"].as_str().unwrap().contains("512 bytes"), "{seen}");
}

#[tokio::test]
async fn no_guest_reaches_the_keys_of_another() {
    let guests = ["one", "two"].map(|name| GuestSource { name: name.into(), ..granted() });
    let host = Host::start(in_memory(), guests.into()).await.unwrap();
    let on = async |guest: &str, steps: Value| {
        let params = json!({ "name": "run", "arguments": { "steps": steps } });
        saw(&host.connect(Some(guest)).unwrap().request("tools/call", params).await.unwrap())
    };
    for bucket in ["guest", "principal"] {
        on("one", json!([{ "bucket": bucket, "do": "set", "key": "secret", "value": "1" }])).await;
        let looks = json!([{ "bucket": bucket, "do": "get", "key": "secret" }, { "bucket": bucket, "do": "list" }]);
        assert_eq!(on("two", looks).await, json!([null, { "keys": [], "cursor": null }]), "{bucket}");
    }
    for bucket in ["", "one", "guest/one", "guest/one/guest", "../one/guest", "principal/-/local", "session/x", "GUEST"] {
        let seen = on("two", json!([{ "bucket": bucket, "do": "get", "key": "secret" }])).await;
        assert_eq!(seen, json!([{ "error": "no-such-store" }]), "{bucket}");
    }
    for key in ["/secret", "../secret", "one/secret", "guest/one/guest/secret", "%2e%2e/secret"] {
        assert_eq!(on("two", json!([{ "bucket": "guest", "do": "get", "key": key }])).await, json!([null]), "{key}");
    }
}

#[tokio::test]
async fn a_configuration_in_another_folder_shares_nothing_that_it_does_not_mean_to() {
    let folder = tempfile::tempdir().unwrap();
    let at = |home: Option<&str>, space: Option<&str>| {
        let mut config = in_file(&folder.path().join("state/state.db"));
        (config.home, config.storage.space) = (home.map(Into::into), space.map(str::to_owned));
        config
    };
    let look = |bucket| json!([{ "bucket": bucket, "do": "count", "key": "n" }]);
    let counts = [
        (Some("/one"), None, 1),
        (Some("/two"), None, 1),
        (Some("/one"), None, 2),
        (Some("/one"), Some("both"), 1),
        (Some("/two"), Some("both"), 2),
        (None, None, 1),
        (None, None, 2),
    ];
    for (home, space, count) in counts {
        let host = host(at(home, space), granted()).await;
        for bucket in ["guest", "principal"] {
            assert_eq!(run(&host, look(bucket)).await, json!([count]), "{home:?} {space:?} {bucket}");
        }
    }
}

#[tokio::test]
async fn a_task_is_of_no_session_which_it_outlives() {
    let (_host, address) = serve(vec![granted()], in_memory()).await;
    let mut client = Client::connect_to(address, Era::Handshake, "/mcp/state").await;
    let write = |bucket| json!([{ "bucket": bucket, "do": "set", "key": "ready", "value": "yes" }]);
    assert_eq!(saw(&client.call("run", json!({ "steps": write("guest") })).await), json!([null]));
    assert_eq!(saw(&client.call("run", json!({ "steps": write("session") })).await), json!([null]));
    let params = json!({ "name": "wait", "arguments": { "steps": write("session") }, "task": {} });
    let begun = client.request("tools/call", params).await;
    let task = begun["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}"));
    let done = client.request("tasks/result", json!({ "taskId": task })).await;
    assert_eq!(saw(&done), json!([{ "error": "no-such-store" }]));
}

#[tokio::test]
async fn sessions_have_a_bucket_each_and_the_modern_era_has_none() {
    let (_host, address) = serve(vec![granted()], in_memory()).await;
    let mut modern = Client::connect_to(address, Era::Modern, "/mcp/state").await;
    let mut first = Client::connect_to(address, Era::Handshake, "/mcp/state").await;
    let mut second = Client::connect_to(address, Era::Handshake, "/mcp/state").await;
    let count = |bucket| json!({ "steps": [{ "bucket": bucket, "do": "count", "key": "n" }] });
    assert_eq!(saw(&modern.call("run", count("session")).await), json!([{ "error": "no-such-store" }]));
    for (session, person) in [(1, 1), (2, 3)] {
        assert_eq!(saw(&first.call("run", count("session")).await), json!([session]));
        assert_eq!(saw(&second.call("run", count("session")).await), json!([session]));
        // All of them are the person at this machine.
        assert_eq!(saw(&first.call("run", count("principal")).await), json!([person]));
        assert_eq!(saw(&modern.call("run", count("principal")).await), json!([person + 1]));
    }
}

#[tokio::test]
async fn over_stdio_the_process_is_the_session() {
    let mut client = Client::connect(Transport::Stdio, Era::Handshake, STATE).await;
    for number in [1, 2] {
        let steps = json!({ "steps": [{ "bucket": "session", "do": "count", "key": "n" }] });
        assert_eq!(saw(&client.call("run", steps).await), json!([number]));
    }
}

#[tokio::test]
async fn who_is_granted_nothing_gets_nothing() {
    let host = host(in_memory(), source(STATE)).await;
    let steps = json!([
        { "bucket": "guest", "do": "open" },
        { "bucket": "principal", "do": "set", "key": "a", "value": "1" },
        { "bucket": "session", "do": "open" },
        { "bucket": "nothing", "do": "open" },
    ]);
    let denied = json!({ "error": "access-denied" });
    assert_eq!(run(&host, steps).await, json!([denied, denied, denied, denied]));
}

#[tokio::test]
async fn init_and_lists_look_into_the_guests_bucket_and_their_writes_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let config = in_file(&folder.path().join("state/state.db"));
    let first = host(config.clone(), granted()).await;
    run(&first, json!([{ "bucket": "guest", "do": "set", "key": "unit", "value": "metre" }])).await;
    drop(first);
    let steps = r#"[
        { bucket = "guest", do = "get", key = "unit" }, { bucket = "guest", do = "set", key = "unit", value = "mile" },
        { bucket = "guest", do = "get", key = "unit" }, { bucket = "principal", do = "open" }, { bucket = "session", do = "open" },
    ]"#;
    let mut guest = granted();
    guest.config.config = toml::from_str(&format!("init = {steps}\nlist = {steps}")).unwrap();
    let second = host(config, guest).await;
    let client = second.connect(None).unwrap();
    let nobody = json!(["metre", null, "mile", { "error": "access-denied" }, { "error": "no-such-store" }]);
    let listed = client.request("tools/list", json!({})).await.unwrap();
    let described = listed["result"]["tools"][0]["description"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(described).unwrap(), nobody);
    let answer = client.request("tools/call", json!({ "name": "init-saw", "arguments": {} })).await.unwrap();
    assert_eq!(saw(&answer), nobody);
    assert_eq!(run(&second, json!([{ "bucket": "guest", "do": "get", "key": "unit" }])).await, json!(["metre"]));
}
