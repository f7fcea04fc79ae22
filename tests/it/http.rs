//! Outgoing HTTP through the whole host: from `guesthouse.toml` to a server on this machine.

use crate::support::clients::source;
use bytes::Bytes;
use guesthouse::config::Config;
use guesthouse::host::{GuestSource, Host};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

const SECRET: &str = "hush-hush";

/// A server, and the headers of the requests that it got.
async fn server() -> (SocketAddr, Arc<Mutex<Vec<HeaderMap>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen: Arc<Mutex<Vec<HeaderMap>>> = Arc::default();
    let shared = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let seen = shared.clone();
            let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                seen.lock().unwrap().push(request.headers().clone());
                std::future::ready(Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"welcome")))))
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, seen)
}

/// The guest with the table of this configuration.
fn guest(text: &str) -> (Config, GuestSource) {
    let config = Config::parse(text).unwrap_or_else(|error| panic!("{error:#}"));
    let mut guest = source("tests/guests/outgoing");
    guest.config = config.guest["outgoing"].clone();
    (config, guest)
}

async fn send(host: &Host, asks: Value) -> Value {
    let arguments = json!({ "name": "send", "arguments": { "requests": asks } });
    let answer = host.connect(None).unwrap().request("tools/call", arguments).await.unwrap();
    serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))).unwrap()
}

#[tokio::test]
async fn grants_and_secrets_of_the_configuration_are_in_force() {
    let (address, seen) = server().await;
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, format!("{SECRET}\n")).unwrap();
    let text = format!(
        "[guest.outgoing]\nlimits = {{ requests = 3, response = \"7B\" }}\n[guest.outgoing.grants]\nhttp = [\"GET http://{address}/v1/*\"]\n\
         [guest.outgoing.secrets]\n\"http://{address}\" = {{ header = \"authorization\", prefix = \"Bearer \", file = {key:?} }}\n"
    );
    let (config, guest) = guest(&text);
    let host = Host::start(config, vec![guest]).await.unwrap();
    let ask = |path: &str| json!({ "authority": address.to_string(), "path": path });
    let answers = send(&host, json!([ask("/v1/x"), ask("/v2/x"), ask("/v1/y"), ask("/v1/z")])).await;
    assert_eq!(answers[0]["body"], "welcome", "{answers}");
    assert_eq!(answers[1]["error"], "HttpRequestDenied");
    assert_eq!((&answers[2]["status"], &answers[3]["error"]), (&json!(200), &json!("ConnectionLimitReached")));
    assert!(!answers.to_string().contains(SECRET), "{answers}");
    let seen = seen.lock().unwrap();
    assert!(seen.len() == 2 && seen.iter().all(|headers| headers["authorization"] == format!("Bearer {SECRET}")), "{seen:?}");
}

#[tokio::test]
async fn what_cannot_work_keeps_the_host_from_starting() {
    let cases = [
        (
            "http = [\"https://a.example\"]\n[guest.outgoing.secrets]\n\"https://a.example\" = { header = \"x\", env = \"GUESTHOUSE_TEST_UNSET\" }",
            ["guest `outgoing`", "https://a.example", "GUESTHOUSE_TEST_UNSET"],
        ),
        (
            "[guest.outgoing.secrets]\n\"https://a.example\" = { header = \"x\", file = \"key\" }",
            ["guest `outgoing`", "https://a.example", "no grant"],
        ),
        ("http = [\"https://a.example\"]\n[http]\nca = \"nowhere.pem\"", ["http.ca", "nowhere.pem", "cannot read"]),
    ];
    for (text, parts) in cases {
        let (config, guest) = guest(&format!("[guest.outgoing.grants]\n{text}"));
        let Err(error) = Host::start(config, vec![guest]).await else { panic!("it started: {text}") };
        let said = format!("{error:#}");
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
    let mut wrong = source("tests/guests/outgoing");
    wrong.config.grants.http = vec!["a.example".into()];
    let Err(error) = Host::start(crate::support::config(), vec![wrong]).await else { panic!("it started") };
    let said = format!("{error:#}");
    assert!(said.contains("guest.outgoing.grants.http") && said.contains("`a.example` is not a pattern"), "{said}");
}
