//! Guests with a job system of their own: the host keeps the list, and asks the guest.

use super::handshake::Session;
use super::*;

#[tokio::test]
async fn a_guests_own_jobs_are_asked_about_answered_and_cancelled() {
    let host = host("", JOBS).await;
    let client = host.connect(None).unwrap();
    let id = begin(&client, "done", json!({})).await;
    assert!(id.starts_with("task_"), "the guest's own name for it stays inside: {id}");
    assert_eq!(text(&until_is(&client, &id, "completed").await["result"]), "all done");
    let id = begin(&client, "fails", json!({})).await;
    assert_eq!(until_is(&client, &id, "failed").await["error"]["code"], 9);
    let id = begin(&client, "runs", json!({})).await;
    let task = until(&client, &id, |task| task["statusMessage"] == "1 of 2").await;
    assert_eq!((&task["status"], &task["pollIntervalMs"]), (&json!("working"), &json!(20)));
    modern(&client, "tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(get(&client, &id).await["status"], "cancelled");
    let id = begin(&client, "asks", json!({})).await;
    let task = until_is(&client, &id, "input_required").await;
    assert_eq!(task["inputRequests"], json!({ "where": { "method": "roots/list", "params": {} } }));
    update(&client, &id, json!({ "where": { "roots": [{ "uri": "file:///a" }] } })).await;
    assert!(text(&until_is(&client, &id, "completed").await["result"]).contains("file:///a"));
    // A job of which the guest knows nothing is an error of the question, not of the task.
    let id = begin(&client, "lost", json!({})).await;
    let asked = modern(&client, "tasks/get", json!({ "taskId": id })).await;
    assert!(asked["error"].is_object(), "{asked}");
    for (tool, capabilities) in [("forbidden", everything()), ("done", json!({}))] {
        let refused = modern_as(&client, "tools/call", modern_as_call(tool, json!({})), &capabilities).await;
        assert_eq!(refused["error"]["code"], if tool == "done" { -32021 } else { -32603 }, "{refused}");
    }
    let session = Session::connect(&host).await;
    let id = session.begin("done", json!({}), json!({})).await;
    assert_eq!(text(&session.of("tasks/result", &id).await["result"]), "all done");
}
