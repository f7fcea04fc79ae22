//! The sample `forge`: a REST client that never sees the token that it works with.

use crate::support::{component, root};
use bytes::Bytes;
use guesthouse::config::Config;
use guesthouse::host::{GuestSource, Host};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use tokio::net::TcpListener;

const TOKEN: &str = "hush-hush";

/// A forge with one issue, for whoever has the token.
async fn forge() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)));
        }
    });
    address
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let known = parts.headers.get("authorization").is_some_and(|value| value == &format!("Bearer {TOKEN}"));
    let issue =
        |number: u64, title: &str| json!({ "number": number, "title": title, "html_url": format!("http://forge/{number}"), "more": 1 });
    let (status, answer) = match (known, parts.method.as_str(), parts.uri.path()) {
        (false, ..) => (401, json!({ "message": "Bad credentials" })),
        (true, "GET", "/api/repos/octocat/hello/issues") => (200, json!([issue(7, "It is broken")])),
        (true, "POST", "/api/repos/octocat/hello/issues") => {
            let posted: Value = serde_json::from_slice(&body).unwrap();
            (201, issue(8, posted["title"].as_str().unwrap()))
        }
        (true, ..) => (404, json!({ "message": "Not Found" })),
    };
    Ok(Response::builder().status(status).body(Full::new(Bytes::from(answer.to_string()))).unwrap())
}

async fn host(address: SocketAddr, secret: &str) -> Host {
    let text = format!(
        "[guest.forge]\nconfig = {{ base = \"http://{address}/api/\" }}\n[guest.forge.grants]\nhttp = [\"GET,POST http://{address}/api/repos/*\"]\n{secret}"
    );
    let config = Config::parse(&text).unwrap();
    let source = GuestSource { name: "forge".into(), file: component("sample-guests/rust/forge"), config: config.guest["forge"].clone() };
    Host::start(config, vec![source]).await.unwrap()
}

async fn call(host: &Host, tool: &str, arguments: Value) -> Value {
    let answer = host.connect(None).unwrap().request("tools/call", json!({ "name": tool, "arguments": arguments })).await.unwrap();
    assert!(!answer.to_string().contains(TOKEN), "the token reaches the client: {answer}");
    answer["result"].clone()
}

#[tokio::test]
async fn issues_are_listed_and_opened_with_a_token_that_the_guest_never_has() {
    let address = forge().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, TOKEN).unwrap();
    let secret =
        format!("[guest.forge.secrets]\n\"http://{address}\" = {{ header = \"authorization\", prefix = \"Bearer \", file = {file:?} }}\n");
    let host = host(address, &secret).await;
    let listed = call(&host, "list_issues", json!({ "repository": "octocat/hello" })).await;
    assert_eq!(listed["structuredContent"]["issues"], json!([{ "number": 7, "title": "It is broken", "html_url": "http://forge/7" }]));
    let opened = call(&host, "open_issue", json!({ "repository": "octocat/hello", "title": "A wish", "body": "x".repeat(20_000) })).await;
    assert_eq!(opened["content"][0]["text"], "Opened #8: http://forge/8");
    for (repository, said) in [("octocat/other", "status 404: Not Found"), ("octocat/../admin", "is not a repository")] {
        let failed = call(&host, "list_issues", json!({ "repository": repository })).await;
        assert!(failed["isError"] == true && failed["content"][0]["text"].as_str().unwrap().contains(said), "{failed}");
    }
}

#[tokio::test]
async fn without_the_secret_the_forge_does_not_know_it_and_without_a_grant_it_gets_nowhere() {
    let address = forge().await;
    let failed = call(&host(address, "").await, "list_issues", json!({ "repository": "octocat/hello" })).await;
    assert!(failed["content"][0]["text"].as_str().unwrap().contains("status 401: Bad credentials"), "{failed}");
    let samples = Config::read(&root().join("sample-guests/guesthouse.toml")).unwrap();
    let source = |config| GuestSource { name: "rust-forge".into(), file: component("sample-guests/rust/forge"), config };
    let mut elsewhere = samples.guest["rust-forge"].clone();
    elsewhere.config.insert("base".into(), format!("http://{address}").into());
    let host = Host::start(crate::support::config(), vec![source(elsewhere)]).await.unwrap();
    let failed = call(&host, "list_issues", json!({ "repository": "octocat/hello" })).await;
    assert!(failed["content"][0]["text"].as_str().unwrap().contains("no grant allows it"), "{failed}");
    let Err(refused) = Host::start(crate::support::config(), vec![source(Default::default())]).await else { panic!("it is served") };
    assert!(format!("{refused:#}").contains("[guest.rust-forge.grants]"), "{refused:#}");
}
