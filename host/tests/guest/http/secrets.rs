//! Secrets: they reach the origin that they are for, and nobody else.

use guesthouse::guest::CallLimits;
use serde_json::json;

use super::outside::{Outside, Server};

const VALUE: &str = "hush-hush";

#[tokio::test]
async fn a_secret_is_added_on_the_way_and_only_for_its_origin() {
    let (server, other) = (Server::start().await, Server::start().await);
    let grants = [server.grant(""), other.grant(""), format!("http://same.test:{}", server.address.port())];
    let grants = grants.each_ref().map(String::as_str);
    let origin = format!("http://{}", server.authority());
    let outside = Outside::with(&grants, &[(&origin, "X-Key", VALUE)], CallLimits::default());
    outside.names.lead("same.test", &["127.0.0.1"]);

    let own = outside.send(json!({ "authority": server.authority(), "path": "/redirect?/", "headers": { "x-mine": "1" } })).await;
    assert_eq!(server.seen()[0].header("x-key"), VALUE);
    assert!(!own.to_string().contains(VALUE), "the guest sees it: {own}");
    assert_eq!(own["sent"], json!({ "x-mine": "1" }), "its request's headers are its own");

    // The server sends the guest to another, which says what it was sent.
    let redirect = format!("/redirect?http://{}/echo", other.authority());
    let stolen = outside.send(json!({ "authority": server.authority(), "path": redirect, "follow": true })).await;
    assert_eq!(stolen["status"], 200);
    assert!(!stolen.to_string().contains(VALUE) && other.seen()[0].header("x-key").is_empty(), "{stolen}");

    // The same server under another name is another origin.
    let renamed = outside.send(json!({ "authority": format!("same.test:{}", server.address.port()), "path": "/echo" })).await;
    assert_eq!(renamed["status"], 200);
    assert!(!renamed.to_string().contains(VALUE), "{renamed}");

    assert!(!format!("{:?}{:?}", outside.audit(), outside.room).contains(VALUE));
}

#[tokio::test]
async fn a_guest_can_neither_set_nor_mirror_the_header() {
    let server = Server::start().await;
    let origin = format!("http://{}", server.authority());
    let outside = Outside::with(&[&server.grant("")], &[(&origin, "Authorization", VALUE)], CallLimits::default());
    let own = outside.send(json!({ "authority": server.authority(), "headers": { "AUTHORIZATION": "mine" } })).await;
    assert_eq!(own["error"], "HttpRequestDenied");
    let mirrored = outside.send(json!({ "authority": server.authority(), "method": "TRACE" })).await;
    assert_eq!(mirrored["error"], "HttpRequestDenied");
    assert!(server.seen().is_empty());
    assert!(outside.audit()[0].ends_with("(it sets a header that the host adds)"), "{:?}", outside.audit());
    let environment = outside.version().call_tool(None, "environment".into(), "{}".into()).await;
    assert_eq!(crate::support::text(environment), "");
}

#[tokio::test]
async fn a_secret_for_https_does_not_go_in_the_clear() {
    let server = Server::start().await;
    let outside = Outside::with(
        &["http://plain.test:*", "http://127.0.0.1:*"],
        &[(&format!("https://plain.test:{}", server.address.port()), "x-key", VALUE)],
        CallLimits::default(),
    );
    outside.names.lead("plain.test", &["127.0.0.1"]);
    let answer = outside.send(json!({ "authority": format!("plain.test:{}", server.address.port()), "path": "/echo" })).await;
    assert_eq!(answer["status"], 200);
    assert_eq!(server.seen()[0].header("x-key"), "");
}
