//! Requests through a proxy: it is given names, and neither a way around the checks nor the secrets inside TLS.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use guesthouse::guest::CallLimits;
use guesthouse::network::Failure;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::outside::{Outside, Server, trust};
use super::tls::acceptor;

/// A proxy that brings every tunnel to one server, and answers other requests by itself.
struct Proxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let shared = heads.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let heads = shared.clone();
                tokio::spawn(async move {
                    let mut head = String::new();
                    while !head.ends_with("\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else { return };
                        head.push(byte.into());
                    }
                    heads.lock().unwrap().push(head.clone());
                    if head.starts_with("CONNECT refused.test") {
                        stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                    } else if head.starts_with("CONNECT ") {
                        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                        let mut there = TcpStream::connect(server).await.unwrap();
                        let _ = copy_bidirectional(&mut stream, &mut there).await;
                    } else {
                        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nproxied").await.unwrap();
                    }
                });
            }
        });
        Self { address, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    fn outside(&self, patterns: &[&str], secrets: &[(&str, &str, &str)]) -> Outside {
        let variables = ["http_proxy", "https_proxy"].map(|name| (name, format!("http://user:pass@{}", self.address)));
        Outside::through(patterns, secrets, CallLimits::default(), &variables, trust())
    }
}

#[tokio::test]
async fn https_goes_through_a_tunnel_to_the_name() {
    let server = Server::over(Some(acceptor())).await;
    let proxy = Proxy::start(server.address).await;
    let outside = proxy.outside(&["https://*.test"], &[("https://tls.test", "x-key", "hush-hush")]);
    outside.names.lead("tls.test", &["93.184.216.34"]);
    let answer = outside.send(json!({ "scheme": "https", "authority": "tls.test", "path": "/big?100" })).await;
    assert_eq!(answer["status"], 200, "{answer}");
    assert_eq!(server.seen()[0].header("x-key"), "hush-hush");
    assert!(server.seen()[0].header("proxy-authorization").is_empty());
    let [head] = proxy.heads().try_into().unwrap();
    assert!(head.starts_with("CONNECT tls.test:443 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("Basic dXNlcjpwYXNz") && !head.contains("hush"), "{head}");
    outside.names.lead("refused.test", &["93.184.216.34"]);
    let refused = outside.send(json!({ "scheme": "https", "authority": "refused.test" })).await;
    assert_eq!(refused["error"], "DestinationUnavailable");
}

#[tokio::test]
async fn plain_http_is_asked_of_the_proxy() {
    let proxy = Proxy::start(([127, 0, 0, 1], 9).into()).await;
    let outside = proxy.outside(&["http://*.test"], &[]);
    outside.names.lead("plain.test", &["93.184.216.34"]);
    let answer = outside.send(json!({ "authority": "plain.test", "path": "/a?b" })).await;
    assert_eq!(answer["body"], "proxied", "{answer}");
    let [head] = proxy.heads().try_into().unwrap();
    assert!(head.starts_with("GET http://plain.test/a?b HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("host: plain.test\r\n") && head.contains("Basic dXNlcjpwYXNz"), "{head}");
}

#[tokio::test]
async fn a_proxy_is_no_way_around_the_checks() {
    let proxy = Proxy::start(([127, 0, 0, 1], 9).into()).await;
    let outside = proxy.outside(&["http://*.test", "http://exact.example"], &[]);
    outside.names.lead("inside.test", &["93.184.216.34", "10.0.0.1"]);
    for (authority, error) in [
        ("inside.test", "DestinationIpProhibited"),
        ("10.0.0.1", "HttpRequestDenied"),
        ("169.254.169.254", "HttpRequestDenied"),
        // The guest chooses the name, and nobody here knows where it leads.
        ("unknown.test", "DnsError(DnsErrorPayload { rcode: None, info-code: None })"),
    ] {
        let answer = outside.send(json!({ "authority": authority })).await;
        assert_eq!(answer["error"], error, "{authority}");
    }
    assert!(proxy.heads().is_empty());
    // The operator chose this one.
    assert_eq!(outside.send(json!({ "authority": "exact.example" })).await["body"], "proxied");
}

#[tokio::test]
async fn a_name_that_is_not_known_to_be_none_is_not_for_the_proxy() {
    let proxy = Proxy::start(([127, 0, 0, 1], 9).into()).await;
    let outside = proxy.outside(&["http://exact.example"], &[]);
    let outside = Outside { limits: CallLimits { request_connect_ms: 100, ..outside.limits.clone() }, ..outside };
    let dns = "DnsError(DnsErrorPayload { rcode: None, info-code: None })";
    for (failure, error) in [
        (Some(Failure::ResolveFailed), dns),
        (Some(Failure::TooManyAddresses), "DestinationIpProhibited"),
        (Some(Failure::Stopped), "ConnectionTerminated"),
        (None, "DnsTimeout"),
    ] {
        outside.names.otherwise(failure);
        let answer = outside.send(json!({ "authority": "exact.example" })).await;
        assert_eq!(answer["error"], error, "{failure:?}");
    }
    let many: Vec<String> = (0..65).map(|last| format!("93.184.216.{last}")).collect();
    outside.names.lead("exact.example", &many.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(outside.send(json!({ "authority": "exact.example" })).await["error"], "DestinationIpProhibited");
    assert_eq!(outside.audit().last().unwrap(), "Refused outgoing http GET http://exact.example/ (it leads to more than 64 addresses)");
    assert!(proxy.heads().is_empty());
}

#[tokio::test]
async fn a_guest_that_is_in_a_hurry_does_not_skip_the_check() {
    let proxy = Proxy::start(([127, 0, 0, 1], 9).into()).await;
    let outside = proxy.outside(&["http://exact.example"], &[]);
    let outside = Outside { limits: CallLimits { request_connect_ms: 200, ..outside.limits.clone() }, ..outside };
    outside.names.otherwise(None);
    let answer = outside.send(json!({ "authority": "exact.example", "connect_ms": 1 })).await;
    assert_eq!(answer["error"], "DnsTimeout");
    assert!(proxy.heads().is_empty());
}
