//! What the dispatcher of the tests answers about tasks.

use guesthouse_protocol::model::questions::Asked;
use guesthouse_protocol::model::tasks::{Live, Over, Stage};
use guesthouse_protocol::model::{CallToolResult, Content, Finished, InputRequired, Question, Task, TaskPage};
use guesthouse_protocol::{Failure, Reply, Revision, RpcError};

use crate::fixtures::json;

/// A task in the state that the name ends in, as the reply that it begins with.
pub(crate) fn reply(name: &str) -> Reply {
    let (reply, state) = name.split_once('-').expect("a reply and a state");
    let task = task(state);
    match reply {
        "task" => Reply::Task(Box::new(task)),
        "task_created" => Reply::TaskCreated(Box::new(task)),
        "task_cancelled" => Reply::TaskCancelled(Box::new(task)),
        "tasks" => Reply::Tasks(TaskPage { tasks: vec![task], next_cursor: Some("next".into()) }),
        "task_result" => Reply::TaskResult(Box::new(finished()), task.id),
        "task_asks" => Reply::InputRequired(Box::new(InputRequired { questions: questions(), task: Some(task.id), ..Default::default() })),
        _ => panic!("no such reply: {reply}"),
    }
}

/// A task in this state.
pub(crate) fn task(state: &str) -> Task {
    let mut task = Task::new("task_1".into(), 1_785_200_523_004, 60_000, 500);
    let own = || Failure::Rpc(RpcError { code: 42, message: "own".into(), data: None });
    let over = match state {
        "working" => {
            assert!(task.note(1_785_200_523_504, "1 of 2".into()));
            return task;
        }
        "waiting" => {
            assert!(task.advance(1_785_200_524_004, |live| match live {
                Live::Working(working) => working.ask(questions()).into(),
                waiting @ Live::Waiting(_) => waiting.into(),
            }));
            return task;
        }
        "completed" => Over::Completed(finished()),
        "sorry" => Over::Completed(Finished::of(&CallToolResult::error("no"))),
        "failed" => Over::of(Err(own()), Revision::LATEST_MODERN),
        "cancelled" => Over::Cancelled,
        _ => panic!("no such state: {state}"),
    };
    assert!(task.advance(1_785_200_525_004, |_| Stage::Over(over)));
    task
}

fn finished() -> Finished {
    let meta = r#"{"io.modelcontextprotocol/serverInfo":{"name":"spoofed","version":"9"},"com.example/x":1}"#;
    Finished::of(&CallToolResult { content: vec![Content::text("done")], meta: Some(json(meta)), ..Default::default() })
}

fn questions() -> Vec<Asked> {
    let form = r#"{"mode":"form","message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}"#;
    let asked = |key: &str, question| Asked { key: key.into(), question };
    vec![asked("name", Question::Elicit(json(form))), asked("roots-2", Question::Roots)]
}
