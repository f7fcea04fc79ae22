//! The same guest in three languages: a client cannot tell which one it talks to.

use crate::support::root;
use guesthouse::build::{self, BuildContext, MissingTool, Project};
use guesthouse::config::{GuestConfig, paths};
use guesthouse::host::{GuestSource, Host};
use serde_json::Value;
use std::io::Write as _;

/// Requests, one a line, whose whole answers must be equal.
const REQUESTS: &str = include_str!("samples.jsonl");

/// Serves the sample of one language; `None`, said visibly, if its toolchain is not on this machine.
async fn sample(language: &str) -> Option<Host> {
    let project = Project::detect(&root().join("sample-guests").join(language).join("textkit")).unwrap().unwrap();
    let mut context = BuildContext::new(paths::cache().unwrap(), true);
    let file = match build::build(&project, &mut context) {
        Ok(built) => built.component,
        Err(error) if error.downcast_ref::<MissingTool>().is_some() => {
            // Past the capture of the test runner: a skipped check must be seen.
            let _ = writeln!(std::io::stderr().lock(), "skipped: the sample in {language}: {error:#}");
            return None;
        }
        Err(error) => panic!("{language}: {error:#}"),
    };
    let source = GuestSource { name: "textkit".into(), file, config: GuestConfig::default() };
    Some(Host::start(crate::support::config(), vec![source]).await.unwrap_or_else(|error| panic!("{language}: {error:#}")))
}

async fn compare_with_rust(language: &str) {
    let rust = sample("rust").await.expect("Rust is here, or this test would not run");
    let Some(other) = sample(language).await else { return };
    let (expected, got) = (rust.connect(None).unwrap(), other.connect(None).unwrap());
    for line in REQUESTS.lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        let method = request["method"].as_str().unwrap();
        let mut answers = Vec::new();
        for client in [&expected, &got] {
            let mut answer = client.request(method, request["params"].clone()).await.unwrap();
            answer["id"] = Value::Null;
            answers.push(answer);
        }
        assert_eq!(answers[1], answers[0], "{language} answers {line} otherwise than Rust");
        // The order of members is part of what a client sees.
        assert_eq!(answers[1].to_string(), answers[0].to_string(), "{language}: {line}");
    }
}

#[tokio::test]
async fn go_answers_as_rust_does() {
    compare_with_rust("go").await;
}

#[tokio::test]
async fn javascript_answers_as_rust_does() {
    compare_with_rust("js").await;
}
