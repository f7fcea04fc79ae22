//! A guest's HTTP requests: where they get to, and what it learns. No test needs a network beyond this machine.

mod limits;
mod outside;
mod proxy;
mod secrets;
mod ssrf;
mod tls;

use serde_json::json;

use self::outside::{Outside, Server};

#[tokio::test]
async fn what_is_granted_arrives_and_its_answer_comes_back() {
    let server = Server::start().await;
    let outside = Outside::new(&[&format!("{}/*", server.grant("POST"))]);
    let ask = json!({ "method": "POST", "authority": server.authority(), "path": "/echo?q=1", "headers": { "x-mine": "yes" }, "body_bytes": 10_000 });
    let answer = outside.send(ask).await;
    assert_eq!(answer["status"], 200, "{answer}");
    assert_eq!(answer["headers"]["x-server"], "here");
    let [seen] = server.seen().try_into().unwrap();
    assert_eq!((seen.line.as_str(), seen.body_bytes), ("POST /echo?q=1", 10_000));
    assert_eq!((seen.header("x-mine"), seen.header("host")), ("yes", server.authority().as_str()));
    assert_eq!(outside.audit(), [format!("Granted outgoing http POST http://{}", server.authority())]);
}

#[tokio::test]
async fn without_a_grant_each_request_fails_and_is_noted() {
    let server = Server::start().await;
    // One that could do without, and so is served.
    let outside = Outside { declared: Some(vec!["http://*:*"]), ..Outside::new(&[]) };
    let refused = format!("Refused outgoing http GET http://{}/echo (nothing is granted)", server.authority());
    for room in [outside.room.clone(), None] {
        let outside = Outside { room, declared: outside.declared.clone(), ..Outside::new(&[]) };
        let answer = outside.send(json!({ "authority": server.authority(), "path": "/echo?token=hush" })).await;
        assert_eq!(answer["error"], "HttpRequestDenied");
        assert_eq!(outside.audit(), std::slice::from_ref(&refused));
    }
    assert!(server.seen().is_empty());
    let refused = Outside::new(&[]).load().unwrap_err().to_string();
    assert!(refused.contains("imports wasi:http/") && refused.contains("add `http ="), "{refused}");
}

#[tokio::test]
async fn a_component_gets_no_further_than_it_declares() {
    let server = Server::start().await;
    let outside =
        Outside { declared: Some(vec!["GET http://*:*/echo/*", "http://127.0.0.1:*/echo"]), ..Outside::new(&[&server.grant("")]) };
    for (path, error) in [("/echo", None), ("/echo/x", Some("HttpRequestDenied")), ("/other", Some("HttpRequestDenied"))] {
        let answer = outside.send(json!({ "authority": server.authority(), "path": path })).await;
        assert_eq!(answer["error"].as_str(), error, "{path}");
    }
    assert!(outside.audit().last().unwrap().ends_with("/other (the component does not declare it)"), "{:?}", outside.audit());
    // It need not declare the addresses that its names lead to.
    let named = Outside { declared: Some(vec!["http://*:*/echo/*"]), ..Outside::new(&["http://*.test:*", "http://127.0.0.1:*"]) };
    named.names.lead("inside.test", &["127.0.0.1"]);
    let answer = named.send(json!({ "authority": format!("inside.test:{}", server.address.port()), "path": "/echo/x" })).await;
    assert_eq!(answer["status"], 200, "{answer}");
    let unreadable = Outside { declared: Some(vec!["example.com"]), ..Outside::new(&[&server.grant("")]) };
    assert!(unreadable.load().unwrap_err().to_string().contains("`example.com` is not a pattern"));
}

#[tokio::test]
async fn patterns_hold() {
    let server = Server::start().await;
    let at = server.authority();
    let outside = Outside::new(&[&format!("GET http://{at}/echo/*")]);
    for (ask, error) in [
        (json!({ "authority": at, "path": "/echo/x" }), None),
        (json!({ "authority": at, "path": "/echo/x", "method": "POST" }), Some("HttpRequestDenied")),
        (json!({ "authority": at, "path": "/echo/x", "method": "TRACE" }), Some("HttpRequestDenied")),
        (json!({ "authority": at, "path": "/echo/x", "method": "CONNECT" }), Some("HttpRequestDenied")),
        (json!({ "authority": at, "path": "/echo/x", "scheme": "https" }), Some("HttpRequestDenied")),
        (json!({ "authority": at, "path": "/echo/x", "scheme": "gopher" }), Some("HttpRequestDenied")),
        (json!({ "authority": at, "path": "/other" }), Some("HttpRequestDenied")),
        (json!({ "authority": at, "path": "/echo/../other" }), Some("HttpRequestDenied")),
        (json!({ "authority": at, "path": "/echo/%2e%2e/other" }), Some("HttpRequestDenied")),
        (json!({ "authority": at, "path": "/echo/..%2fother" }), Some("HttpRequestDenied")),
        (json!({ "authority": at, "path": format!("/echo/{}", "x".repeat(20_000)) }), Some("HttpRequestUriTooLong")),
    ] {
        let answer = outside.send(ask.clone()).await;
        assert_eq!(answer["error"].as_str(), error, "{ask}");
    }
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn headers_that_make_the_framing_are_the_hosts() {
    let server = Server::start().await;
    let outside = Outside::new(&[&server.grant("")]);
    for name in ["host", "connection", "transfer-encoding", "proxy-authorization", "upgrade", "keep-alive"] {
        let ask = json!({ "authority": server.authority(), "headers": { name: "x" } });
        let answer = outside.send(ask).await;
        assert_eq!(answer["error"], "header: HeaderError::Forbidden", "{name}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_what_follows_is_a_new_request() {
    let (server, other) = (Server::start().await, Server::start().await);
    let to = |target: &str| json!({ "authority": server.authority(), "path": format!("/redirect?{target}"), "follow": true });
    let outside = Outside::new(&[&server.grant("")]);
    let answer = outside.send(to("/echo")).await;
    assert_eq!((&answer["status"], server.seen().len()), (&json!(200), 2), "{answer}");
    let answer = outside.send(to(&format!("http://{}/echo", other.authority()))).await;
    assert_eq!(answer["error"], "HttpRequestDenied");
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn a_guest_that_has_moved_to_the_threads_for_long_calls_goes_out_as_well() {
    use guesthouse::guest::{EngineLimits, Engines};
    let server = Server::start().await;
    // Moves with its first turn; the threads that it moves to cannot do any input or output.
    let engines = Engines::new(EngineLimits { interactive_cpu_ms: 0, ..EngineLimits::default() }).unwrap();
    let outside = Outside { engines, ..Outside::new(&[&server.grant("")]) };
    let ask = json!({ "authority": server.authority(), "path": "/big?3000000", "method": "POST", "body_bytes": 100_000 });
    let answer = outside.send(ask).await;
    assert_eq!((&answer["error"], &answer["body_bytes"]), (&json!(null), &json!(3_000_000)));
    assert_eq!(server.seen()[0].body_bytes, 100_000);
}
