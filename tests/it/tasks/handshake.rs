//! Tasks of 2025-11-25: the client asks for one, waits for its result, lists and cancels.

use super::*;

/// A client of 2025-11-25 that answers what it is asked.
pub(super) struct Session {
    client: Client,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Session {
    pub(super) async fn connect(host: &Host) -> Self {
        let client = host.connect(None).unwrap();
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let log = asked.clone();
        client.answer_with(move |method, params| {
            log.lock().unwrap().push(params.clone());
            match method {
                "elicitation/create" if params["message"] == "What is your name?" => Ok(form(json!({ "name": "Ada" }))),
                "elicitation/create" => Ok(form(json!({ "confirm": true }))),
                _ => Err(RpcError { code: -32601, message: "not that".into(), data: None }),
            }
        });
        let session = Self { client, asked };
        let opening = json!({
            "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": { "name": "t", "version": "1" },
        });
        let opened = session.request("initialize", opening).await;
        let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
        assert_eq!(opened["result"]["capabilities"]["tasks"], tasks, "{opened}");
        session.client.notify("notifications/initialized", json!({})).await.unwrap();
        session
    }

    async fn request(&self, method: &str, params: Value) -> Value {
        let Value::Object(params) = params else { panic!("parameters are an object") };
        let answer = timeout(PATIENCE, self.client.request_as_is(method, params)).await.expect("no answer comes").unwrap();
        checked(method, Revision::V2025_11_25, answer)
    }

    /// The id of the task that a call is.
    pub(super) async fn begin(&self, tool: &str, arguments: Value, task: Value) -> String {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments, "task": task })).await;
        answer["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub(super) async fn of(&self, method: &str, id: &str) -> Value {
        self.request(method, json!({ "taskId": id })).await
    }
}

#[tokio::test]
async fn in_2025_11_25_the_client_asks_for_a_task_and_waits_for_its_result() {
    let host = host("", GUEST).await;
    let session = Session::connect(&host).await;
    let mut messages = session.client.messages();
    let listed = session.request("tools/list", json!({})).await;
    let support = |name: &str| {
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap()["execution"].clone()
    };
    assert_eq!((support("slow_compute"), support("greet")), (json!({ "taskSupport": "optional" }), Value::Null));
    let id = session.begin("slow_compute", json!({ "seconds": 0.3 }), json!({ "ttl": 60_000 })).await;
    let got = session.of("tasks/get", &id).await;
    assert_eq!((&got["result"]["status"], &got["result"]["ttl"]), (&json!("working"), &json!(60_000)), "{got}");
    let result = session.of("tasks/result", &id).await;
    assert_eq!(text(&result["result"]), "result: done after 0.3 s");
    assert_eq!(result["result"]["_meta"]["io.modelcontextprotocol/related-task"], json!({ "taskId": id }));
    let told = async {
        loop {
            let message = messages.next().await.unwrap();
            assert_eq!(message["method"], "notifications/tasks/status", "{message}");
            assert_eq!(Schemas::new().notification_problem(&message, Revision::V2025_11_25), None, "{message}");
            if message["params"]["status"] == "completed" {
                return message["params"]["taskId"].clone();
            }
        }
    };
    assert_eq!(timeout(PATIENCE, told).await.expect("nothing is told"), id);
    // On the way to its result a task asks, and says who asks.
    let id = session.begin("multi_input", json!({}), json!({})).await;
    let result = session.of("tasks/result", &id).await;
    assert_eq!(text(&result["result"]), "Ada goes on");
    let related: Vec<Value> = session.asked.lock().unwrap().iter().map(|asked| asked["_meta"].clone()).collect();
    assert_eq!(related, vec![json!({ "io.modelcontextprotocol/related-task": { "taskId": id } }); 2]);
}

#[tokio::test]
async fn in_2025_11_25_ends_and_modes_are_those_of_that_revision() {
    let host = host("", GUEST).await;
    let session = Session::connect(&host).await;
    // A tool that failed has failed its task, and its result is a result.
    let failed = session.begin("failing_job", json!({}), json!({})).await;
    assert_eq!(session.of("tasks/result", &failed).await["result"]["isError"], true);
    assert_eq!(session.of("tasks/get", &failed).await["result"]["status"], "failed");
    // An error is that error.
    let broken = session.begin("protocol_error_job", json!({}), json!({})).await;
    assert_eq!(session.of("tasks/result", &broken).await["error"]["code"], -31000);
    let slow = session.begin("slow_compute", json!({ "seconds": 60 }), json!({})).await;
    assert_eq!(session.of("tasks/cancel", &slow).await["result"]["status"], "cancelled");
    for (method, id) in [("tasks/cancel", &slow), ("tasks/cancel", &failed), ("tasks/result", &slow)] {
        assert_eq!(session.of(method, id).await["error"]["code"], -32602, "{method}");
    }
    for (tool, task, code) in [("greet", json!({}), -32601), ("failing_job", Value::Null, -32601)] {
        let mut params = json!({ "name": tool, "arguments": { "name": "Ada" } });
        if !task.is_null() {
            params["task"] = task;
        }
        assert_eq!(session.request("tools/call", params).await["error"]["code"], code, "{tool}");
    }
    let listed = session.request("tasks/list", json!({})).await;
    let ids: Vec<&str> = listed["result"]["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap()).collect();
    assert_eq!(ids, [&failed, &broken, &slow]);
    // The same tasks, in the other era's words.
    let modern_client = host.connect(None).unwrap();
    let task = get(&modern_client, &failed).await;
    assert_eq!((&task["status"], &task["result"]["isError"]), (&json!("completed"), &json!(true)), "{task}");
}

#[tokio::test]
async fn a_list_of_tasks_has_pages() {
    let host = host("[limits]\npage = 2", GUEST).await;
    let session = Session::connect(&host).await;
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(session.begin("failing_job", json!({}), json!({})).await);
    }
    let first = session.request("tasks/list", json!({})).await["result"].clone();
    let second = session.request("tasks/list", json!({ "cursor": first["nextCursor"] })).await["result"].clone();
    let ids = |page: &Value| page["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].clone()).collect::<Vec<_>>();
    assert_eq!([ids(&first), ids(&second)].concat(), made);
    assert!(second.get("nextCursor").is_none());
    assert_eq!(session.request("tasks/list", json!({ "cursor": "made up" })).await["error"]["code"], -32602);
}

#[tokio::test]
async fn before_2025_11_25_tools_that_run_as_tasks_are_called() {
    let host = host("", GUEST).await;
    let client = host.connect(None).unwrap();
    let opening = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    client.request("initialize", opening).await.unwrap();
    let Value::Object(params) = json!({ "name": "failing_job", "arguments": {}, "task": {} }) else { panic!("an object") };
    let answer = client.request_as_is("tools/call", params).await.unwrap();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
}
