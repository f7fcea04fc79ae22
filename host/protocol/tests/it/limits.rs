//! Limits, each by the attack that it stops.

use std::sync::Arc;

use guesthouse_protocol::effect::{Effect, PeerConfig, TransportKind};
use guesthouse_protocol::message::{ParseLimits, parse};
use guesthouse_protocol::{Mode, Peer};

fn modern(arguments: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":{arguments},{meta}}}}}"#)
}

#[test]
fn nesting_costs_no_stack_even_where_it_is_allowed() {
    let limits = ParseLimits { depth_max: usize::MAX, ..ParseLimits::default() };
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(500_000), "]".repeat(500_000));
    assert!(parse(modern(&deep).as_bytes(), &limits).is_ok());
    for text in ["[".repeat(500_000), "{\"params\":".repeat(300_000), "[{\"params\":[".repeat(200_000)] {
        assert!(parse(text.as_bytes(), &limits).is_err());
    }
}

#[test]
fn depth_is_counted_to_the_level() {
    let limits = ParseLimits::default();
    // The envelope, `params` and `arguments` are three.
    for (inner, fine) in [(limits.depth_max - 3, true), (limits.depth_max - 2, false)] {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(inner), "]".repeat(inner));
        assert_eq!(parse(modern(&deep).as_bytes(), &limits).is_ok(), fine, "{inner}");
    }
}

#[test]
fn length_is_counted_to_the_byte() {
    let text = modern("{}");
    for (spare, fine) in [(0, true), (1, false)] {
        let limits = ParseLimits { message_bytes_max: text.len() - spare, ..ParseLimits::default() };
        assert_eq!(parse(text.as_bytes(), &limits).is_ok(), fine);
    }
}

#[test]
fn cancelling_what_never_was_leaves_nothing_behind() {
    let mut peer = Peer::new(Arc::new(PeerConfig::new(Mode::Both, TransportKind::Stdio, None)));
    let before = format!("{peer:?}");
    for id in 0..1000 {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
        assert!(peer.receive(text.as_bytes()).is_empty());
    }
    assert_eq!(format!("{peer:?}"), before);
}

#[test]
fn text_that_is_no_utf8_is_no_json() {
    let mut peer = Peer::new(Arc::new(PeerConfig::new(Mode::Both, TransportKind::Stdio, None)));
    let effects = peer.receive(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":\"\xff\"}");
    let [Effect::Send(sent)] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(String::from_utf8_lossy(&sent.message).contains("-32700"));
}
