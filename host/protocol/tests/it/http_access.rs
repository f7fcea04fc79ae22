//! Tables of who may ask over HTTP: hosts, origins, verbs, media types, and what browsers are told.

use guesthouse_protocol::Mode;
use guesthouse_protocol::http::{AccessRules, Verb, check_post, verb};
use http::request::Parts;

fn parts(method: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = http::Request::builder().method(method).uri("/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn rules(hosts: &[&str], origins: &[&str]) -> AccessRules {
    let owned = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    AccessRules::new(&owned(hosts), &owned(origins))
}

#[test]
fn only_listed_hosts_are_served() {
    let rules = rules(&["localhost", "127.0.0.1", "[::1]", "Example.com"], &[]);
    let table = [
        ("localhost", true),
        ("localhost:8642", true),
        ("LOCALHOST:1", true),
        ("127.0.0.1:80", true),
        ("[::1]:8642", true),
        ("[::1]", true),
        ("::1", true),
        ("example.com", true),
        ("evil.example.com", false),
        ("localhost.evil.com", false),
        ("evil.com:8642", false),
        ("[::2]:8642", false),
        ("", false),
    ];
    for (host, served) in table {
        let checked = rules.check(&parts("POST", &[("host", host)]));
        assert_eq!(checked.is_ok(), served, "{host}");
        if let Err(refusal) = checked {
            assert_eq!(refusal.status, 421);
        }
    }
    assert!(rules.check(&parts("POST", &[])).is_err());
    assert!(rules.check(&parts("POST", &[("host", "localhost"), ("host", "evil.com")])).is_err());
    let mut absolute = parts("POST", &[("host", "localhost")]);
    absolute.uri = "http://evil.com/mcp".parse().unwrap();
    assert!(rules.check(&absolute).is_err());
    absolute.uri = "http://localhost/mcp".parse().unwrap();
    assert!(rules.check(&absolute).is_ok());
}

#[test]
fn a_foreign_origin_is_refused_and_none_is_fine() {
    let rules = rules(&["localhost"], &["https://app.example.com"]);
    let table = [
        (None, true),
        (Some("https://app.example.com"), true),
        (Some("HTTPS://APP.example.com"), true),
        (Some("http://localhost:8642"), true),
        (Some("http://localhost:3000"), false),
        (Some("http://app.example.com"), false),
        (Some("https://app.example.com.evil.com"), false),
        (Some("http://evil.example.com"), false),
        (Some("null"), false),
    ];
    for (origin, allowed) in table {
        let mut headers = vec![("host", "localhost:8642")];
        headers.extend(origin.map(|origin| ("origin", origin)));
        let checked = rules.check(&parts("POST", &headers));
        assert_eq!(checked.is_ok(), allowed, "{origin:?}");
        if let Err(refusal) = checked {
            assert_eq!(refusal.status, 403);
        }
    }
}

#[test]
fn an_origin_that_equals_the_host_proves_nothing_where_any_host_is_served() {
    let rules = rules(&["*"], &[]);
    let rebound = parts("POST", &[("host", "evil.com"), ("origin", "http://evil.com")]);
    assert_eq!(rules.check(&rebound).unwrap_err().status, 403);
    assert!(rules.check(&parts("POST", &[("host", "evil.com")])).is_ok());
}

#[test]
fn scripts_of_a_listed_origin_may_speak_both_eras() {
    let rules = rules(&["localhost"], &["https://app.example.com"]);
    let asked = parts(
        "OPTIONS",
        &[
            ("host", "localhost"),
            ("origin", "https://app.example.com"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type, Mcp-Param-Region, x-evil"),
        ],
    );
    assert_eq!(verb(&asked, Mode::Both), Ok(Verb::Preflight));
    let headers = rules.check(&asked).unwrap().preflight(&asked, Mode::Both);
    for (mode, methods) in [(Mode::Both, "POST, GET, DELETE"), (Mode::Handshake, "POST, GET, DELETE"), (Mode::Modern, "POST")] {
        assert_eq!(rules.check(&asked).unwrap().preflight(&asked, mode)["access-control-allow-methods"], methods);
    }
    assert_eq!(headers["access-control-allow-origin"], "https://app.example.com");
    assert_eq!(headers["vary"], "origin");
    let allowed = headers["access-control-allow-headers"].to_str().unwrap();
    for name in ["authorization", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "last-event-id", "mcp-param-region"] {
        assert!(allowed.split(", ").any(|known| known == name), "{name}");
    }
    assert!(!allowed.contains("x-evil"));
    let mut answer = http::HeaderMap::new();
    rules.check(&asked).unwrap().write_headers(&mut answer);
    assert!(answer["access-control-expose-headers"].to_str().unwrap().contains("mcp-session-id"));
    // Nobody else is told anything.
    let own = parts("POST", &[("host", "localhost"), ("origin", "http://localhost")]);
    let mut answer = http::HeaderMap::new();
    rules.check(&own).unwrap().write_headers(&mut answer);
    assert!(answer.is_empty());
}

#[test]
fn verbs_by_mode() {
    let table = [
        ("POST", Mode::Modern, Ok(Verb::Post)),
        ("POST", Mode::Both, Ok(Verb::Post)),
        ("DELETE", Mode::Both, Ok(Verb::Delete)),
        ("DELETE", Mode::Handshake, Ok(Verb::Delete)),
        ("DELETE", Mode::Modern, Err("POST")),
        ("GET", Mode::Modern, Err("POST")),
        ("GET", Mode::Both, Ok(Verb::Get)),
        ("GET", Mode::Handshake, Ok(Verb::Get)),
        ("PUT", Mode::Both, Err("POST, GET, DELETE")),
        ("OPTIONS", Mode::Both, Err("POST, GET, DELETE")),
    ];
    for (method, mode, expected) in table {
        match (verb(&parts(method, &[]), mode), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(refusal), Err(allow)) => {
                assert_eq!((refusal.status.as_u16(), refusal.allow), (405, Some(allow)))
            }
            (found, expected) => panic!("{method} {mode:?}: {found:?}, not {expected:?}"),
        }
    }
}

#[test]
fn content_type_must_be_json() {
    let table = [
        (Some("application/json"), true),
        (Some("application/json; charset=utf-8"), true),
        (Some("Application/JSON"), true),
        (Some("application/json-patch+json"), false),
        (Some("text/plain"), false),
        (Some("application/x-www-form-urlencoded"), false),
        (None, false),
    ];
    for (kind, fine) in table {
        let headers: Vec<_> = kind.map(|kind| ("content-type", kind)).into_iter().collect();
        let checked = check_post(&parts("POST", &headers).headers);
        assert_eq!(checked.is_ok(), fine, "{kind:?}");
        if let Err(refusal) = checked {
            assert_eq!(refusal.status, 415);
        }
    }
}

#[test]
fn accept_decides_about_the_form_of_the_answer() {
    let table = [
        (None, Some((true, true))),
        (Some("application/json, text/event-stream"), Some((true, true))),
        (Some("text/event-stream,application/json;q=0.9"), Some((true, true))),
        (Some("*/*"), Some((true, true))),
        (Some("application/json"), Some((true, false))),
        (Some("application/*"), Some((true, false))),
        (Some("text/event-stream"), Some((false, true))),
        (Some("*/*, text/event-stream;q=0"), Some((true, false))),
        (Some("text/html"), None),
        (Some("application/json;q=0"), None),
        (Some("application/jsonp"), None),
    ];
    for (accept, expected) in table {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(accept.map(|accept| ("accept", accept)));
        match (check_post(&parts("POST", &headers).headers), expected) {
            (Ok(accepts), Some(expected)) => {
                assert_eq!((accepts.json, accepts.events), expected, "{accept:?}")
            }
            (Err(refusal), None) => assert_eq!(refusal.status, 406),
            (found, expected) => panic!("{accept:?}: {found:?}, not {expected:?}"),
        }
    }
}
