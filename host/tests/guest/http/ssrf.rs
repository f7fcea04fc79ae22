//! Requests that try to get into the network of the host.

use serde_json::json;

use super::outside::{Outside, Server};

#[tokio::test]
async fn no_spelling_of_an_address_is_a_name() {
    let server = Server::start().await;
    let port = server.address.port();
    // Everything that has a name, on every port.
    let outside = Outside::new(&["http://*:*"]);
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "169.254.169.254",
        "0",
        "0.0.0.0",
        "name.test@127.0.0.1",
        "127.0.0.1@name.test",
        "１２７.0.0.1",
        "%31%32%37.0.0.1",
    ] {
        let answer = outside.send(json!({ "authority": format!("{host}:{port}"), "path": "/echo" })).await;
        let error = answer["error"].as_str().unwrap_or_default();
        // What is no authority at all does not even become a request.
        assert!(error == "HttpRequestDenied" || error == "authority", "{host}: {answer}");
    }
    assert!(server.seen().is_empty());
    assert!(outside.names.asked().is_empty(), "an address was looked up");
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_whatever_else_it_leads_to() {
    let server = Server::start().await;
    let outside = Outside::new(&["http://*.test:*"]);
    for (name, addresses, what) in [
        ("loopback.test", &["127.0.0.1"] as &[&str], "127.0.0.1 is loopback"),
        ("mixed.test", &["93.184.216.34", "127.0.0.1"], "127.0.0.1 is loopback"),
        ("mapped.test", &["::ffff:127.0.0.1"], "::ffff:127.0.0.1 is loopback"),
        ("nat64.test", &["64:ff9b::7f00:1"], "64:ff9b::7f00:1 is loopback"),
        ("six.test", &["::1"], "::1 is loopback"),
        ("metadata.test", &["169.254.169.254"], "169.254.169.254 is a metadata service"),
        ("private.test", &["10.0.0.1"], "10.0.0.1 is private"),
        ("this.test", &["0.0.0.0"], "0.0.0.0 is this network"),
    ] {
        outside.names.lead(name, addresses);
        let authority = format!("{name}:{}", server.address.port());
        let answer = outside.send(json!({ "authority": authority, "path": "/echo" })).await;
        assert_eq!(answer["error"], "DestinationIpProhibited", "{name}");
        let refused = format!("Refused outgoing http GET http://{authority}/echo ({what}, and not granted)");
        assert_eq!(outside.audit().last(), Some(&refused));
    }
    assert!(server.seen().is_empty());
    assert_eq!(
        outside.send(json!({ "authority": "nowhere.test" })).await["error"],
        "DnsError(DnsErrorPayload { rcode: None, info-code: None })"
    );
}

#[tokio::test]
async fn a_private_address_that_is_granted_is_reached_by_its_names_too() {
    let server = Server::start().await;
    let port = server.address.port();
    let outside = Outside::new(&["http://*.test:*", &format!("http://127.0.0.1:{port}/echo")]);
    outside.names.lead("inside.test", &["127.0.0.1"]);
    let authority = format!("inside.test:{port}");
    let answer = outside.send(json!({ "authority": authority, "path": "/echo" })).await;
    assert_eq!(answer["status"], 200, "{answer}");
    assert_eq!(server.seen()[0].header("host"), authority);
    // The address was granted for this path alone.
    let answer = outside.send(json!({ "authority": authority, "path": "/other" })).await;
    assert_eq!(answer["error"], "DestinationIpProhibited");
}

#[tokio::test]
async fn a_name_is_resolved_once_so_that_it_cannot_lead_elsewhere_after_the_check() {
    let server = Server::start().await;
    let outside = Outside::new(&["http://*.test:*", "http://127.0.0.1:*"]);
    outside.names.lead("inside.test", &["127.0.0.1"]);
    let authority = format!("inside.test.:{}", server.address.port());
    let answers = outside.send_all(json!([{ "authority": authority }, { "authority": authority }])).await;
    assert!(answers.iter().all(|answer| answer["status"] == 200), "{answers:?}");
    assert_eq!(outside.names.asked(), ["inside.test", "inside.test"]);
}

#[tokio::test]
async fn the_next_address_is_tried_where_one_does_not_answer() {
    let server = Server::start().await;
    let outside = Outside::new(&["http://two.test:*", "http://[127.0.0.0/8]:*"]);
    outside.names.lead("two.test", &["127.0.0.2", "127.0.0.1"]);
    let answer = outside.send(json!({ "authority": format!("two.test:{}", server.address.port()) })).await;
    assert_eq!(answer["status"], 200, "{answer}");
    outside.names.lead("two.test", &["127.0.0.2", "127.0.0.3"]);
    let answer = outside.send(json!({ "authority": format!("two.test:{}", server.address.port()) })).await;
    assert_eq!(answer["error"], "ConnectionRefused");
}
