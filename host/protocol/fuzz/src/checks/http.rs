//! HTTP rules: a request line, headers, an empty line, a body; the rules agree with each other and refuse soundly.

use std::sync::Arc;

use guesthouse_protocol::http::{
    AccessRules, HttpRefusal, MCP_METHOD, PROTOCOL_VERSION, Route, Verb, check_post, check_session_version, route, session_id, verb,
};
use guesthouse_protocol::message::parse;
use guesthouse_protocol::{Incoming, Message, Mode, ParseLimits, Peer, PeerConfig, Revision, TransportKind};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request};

use super::{first, sound_message, split};

/// The first byte chooses the mode; the rest is a request.
pub fn check(data: &[u8]) {
    let (choice, rest) = first(data);
    let mode = [Mode::Both, Mode::Modern, Mode::Handshake][usize::from(choice) % 3];
    let (head, body) = split(rest, b"\n\n");
    let Some(parts) = request(head) else { return };
    for rules in [
        AccessRules::new(&["localhost".into(), "::1".into()], &["https://good.example".into()]),
        AccessRules::new(&["*".into()], &["*".into()]),
    ] {
        match rules.check(&parts) {
            Ok(access) => drop(access.preflight(&parts, mode)),
            Err(refusal) => refused(&refusal),
        }
    }
    match verb(&parts, mode) {
        Ok(Verb::Post) => post(&parts, body, mode),
        Ok(_) => {}
        Err(refusal) => refused(&refusal),
    }
}

/// `METHOD TARGET`, then `name: value` on each line.
pub(crate) fn request(head: &[u8]) -> Option<Parts> {
    let mut lines = head.split(|byte| *byte == b'\n');
    let line = std::str::from_utf8(lines.next()?).ok()?;
    let (method, target) = line.split_once(' ')?;
    let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).ok()?).uri(target).body(()).ok()?;
    for line in lines {
        let at = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..at]).ok()?;
        let value = line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..]);
        request.headers_mut().try_append(name, HeaderValue::from_bytes(value).ok()?).ok()?;
    }
    Some(request.into_parts().0)
}

fn post(parts: &Parts, body: &[u8], mode: Mode) {
    if let Err(refusal) = check_post(&parts.headers) {
        refused(&refusal);
    }
    if let Err(refusal) = session_id(&parts.headers) {
        refused(&refusal);
    }
    let limits = ParseLimits::default();
    let incoming = match parse(body, &limits) {
        Ok(incoming) => incoming,
        Err(refusal) => return refused(&refusal.into()),
    };
    match route(&parts.headers, &incoming, mode) {
        Err(refusal) => refused(&refusal),
        Ok(Route::Modern) => {
            assert_ne!(mode, Mode::Handshake);
            modern(parts, incoming, mode);
        }
        Ok(Route::Handshake { session, version, .. }) => {
            assert_ne!(mode, Mode::Modern);
            assert!(session.is_none_or(|id| (1..=128).contains(&id.len())));
            if let Err(refusal) = check_session_version(version, Revision::LATEST_HANDSHAKE) {
                refused(&refusal);
            }
        }
    }
}

/// What is routed to the modern era runs only if its headers repeat its body.
fn modern(parts: &Parts, incoming: Incoming<'_>, mode: Mode) {
    let method = match &incoming {
        Incoming::One(Message::Request(request)) => Some(request.method.to_string()),
        _ => None,
    };
    let mut peer = Peer::new(Arc::new(PeerConfig::new(mode, TransportKind::Http, None)));
    for effect in peer.receive_parsed(incoming) {
        match effect {
            guesthouse_protocol::Effect::Run(_) => {
                let header = |name: &HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
                assert_eq!(header(&MCP_METHOD), method.as_deref(), "a call runs whose header names another method");
                assert_eq!(header(&PROTOCOL_VERSION), Some("2026-07-28"));
            }
            guesthouse_protocol::Effect::Send(outgoing) => drop(sound_message(&outgoing.message)),
            _ => {}
        }
    }
}

fn refused(refusal: &HttpRefusal) {
    assert!(refusal.status.is_client_error(), "{refusal:?}");
    assert!(sound_message(&refusal.body).get("error").is_some(), "{refusal:?}");
}
