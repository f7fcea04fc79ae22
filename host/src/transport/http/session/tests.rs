//! Sessions without HTTP: how they are found, cancelled, idle and ended.

use super::super::reading;
use super::super::sessions::Sessions;
use super::super::streams::Step;
use super::*;
use crate::config::Config;
use crate::config::units::Span;
use crate::transport::testing::{Fake, reaches};
use guesthouse_protocol::message::parse;
use guesthouse_protocol::{Identity, TransportKind};

const IDLE: Duration = Duration::from_secs(60);
const BOTH: Accepts = Accepts { json: true, events: true };

fn sessions(len_max: usize) -> Sessions {
    let mut config = Config::default();
    config.limits.sessions = len_max;
    config.limits.session_idle = Span(IDLE.as_millis().try_into().unwrap());
    Sessions::new(&config)
}

/// The response, where nothing precedes it.
async fn end(mut reader: Reader) -> Option<Outgoing> {
    match std::future::poll_fn(|context| reader.poll_step(context)).await {
        Step::Answer(outgoing) => outgoing,
        Step::Event(..) | Step::Over => panic!("something else came"),
    }
}

async fn opened(fake: &Arc<Fake>, sessions: &Sessions, version: &str) -> Arc<Session> {
    let config = fake.peer_config(&Endpoint::Merged, TransportKind::Http).unwrap();
    let mut peer = Peer::new(config);
    let client = r#""capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}"#;
    let initialize = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{version}",{client}}}}}"#);
    let Some(Effect::Run(call)) = peer.receive(initialize.as_bytes()).into_iter().next() else { panic!("initialize is not run") };
    let id = call.id;
    let outcome = fake.run(&Endpoint::Merged, *call, Line::default()).await;
    peer.finish(id, outcome);
    let id = sessions.reserve().unwrap().open(&**fake, Endpoint::Merged, Identity::default(), peer).unwrap();
    sessions.find(id.to_str().unwrap(), &Endpoint::Merged, &Identity::default()).unwrap()
}

fn receive(fake: &Arc<Fake>, session: &Arc<Session>, message: &str) -> Received {
    let incoming = parse(message.as_bytes(), &guesthouse_protocol::ParseLimits::default()).unwrap();
    session.receive(fake, incoming, None, BOTH).unwrap()
}

#[tokio::test]
async fn a_session_expires_when_it_is_idle_and_not_while_a_call_runs() {
    let fake = Fake::new(Config::default());
    let sessions = sessions(10);
    let session = opened(&fake, &sessions, "2025-11-25").await;
    let len = || sessions.len();
    let later = Instant::now() + IDLE * 2;
    let wait = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}"#;
    let Received::Calls(reader) = receive(&fake, &session, wait) else { panic!("there is no call") };
    sessions.sweep(later);
    assert_eq!(len(), 1);
    fake.release.add_permits(1);
    assert!(end(reader).await.is_some());
    sessions.sweep(Instant::now() + IDLE / 2);
    assert_eq!(len(), 1);
    sessions.sweep(later);
    assert_eq!(len(), 0);
    // Whoever holds it still cannot use it.
    let incoming = parse(wait.as_bytes(), &guesthouse_protocol::ParseLimits::default()).unwrap();
    assert!(session.receive(&fake, incoming, None, BOTH).is_err());
}

#[tokio::test]
async fn a_session_whose_client_is_asked_is_not_idle() {
    let fake = Fake::new(Config::default());
    let sessions = sessions(10);
    let session = opened(&fake, &sessions, "2025-11-25").await;
    let ask = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask"}}"#;
    let Received::Calls(reader) = receive(&fake, &session, ask) else { panic!("there is no call") };
    // The answer begins with the question, so this is when the client is asked.
    let response = reading::answer(session.clone(), reader, BOTH, &Arc::default(), &fake.config().streams).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let later = Instant::now() + IDLE * 2;
    sessions.sweep(later);
    drop(response);
    sessions.sweep(later);
    assert_eq!(sessions.len(), 1);
    assert_eq!(lock(&session.state).peer.waiting(), 1);
    assert_eq!(fake.requests().in_flight(), 0);
    session.close();
    assert_eq!(lock(&session.state).peer.waiting(), 0);
    assert!(lock(&session.state).running.is_empty());
}

#[tokio::test]
async fn a_place_that_was_kept_and_not_used_is_free_again() {
    let sessions = sessions(1);
    let place = sessions.reserve();
    assert!(place.is_some());
    assert!(sessions.reserve().is_none());
    drop(place);
    let fake = Fake::new(Config::default());
    opened(&fake, &sessions, "2025-11-25").await;
    assert!(sessions.reserve().is_none());
    sessions.close_all();
    assert!(sessions.reserve().is_some());
}

#[tokio::test]
async fn a_batch_is_answered_when_its_last_call_ends_or_is_cancelled() {
    let fake = Fake::new(Config::default());
    let sessions = sessions(1);
    let session = opened(&fake, &sessions, "2025-03-26").await;
    let batch = r#"[{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}},{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo"}}]"#;
    let Received::Calls(reader) = receive(&fake, &session, batch) else { panic!("there is no call") };
    reaches(&fake.begun, 3).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
    assert!(matches!(receive(&fake, &session, cancel), Received::Nothing));
    let answer = end(reader).await.unwrap();
    let answer = std::str::from_utf8(&answer.message).unwrap();
    assert!(answer.starts_with('[') && answer.contains("\"id\":3") && !answer.contains("\"id\":2"), "{answer}");
    assert!(lock(&session.state).running.is_empty());
}

#[tokio::test]
async fn an_open_stream_counts_as_use() {
    let fake = Fake::new(Config::default());
    let sessions = sessions(10);
    let session = opened(&fake, &sessions, "2025-11-25").await;
    let stream = reading::listen(session.clone(), session.streams.read(STANDALONE, None).unwrap(), &Arc::default(), &fake.config().streams);
    sessions.sweep(Instant::now() + IDLE * 100);
    assert_eq!(sessions.len(), 1);
    // From the end of the stream on, the time counts.
    lock(&session.state).used = Instant::now().checked_sub(IDLE).unwrap();
    drop(stream);
    sessions.sweep(Instant::now() + IDLE / 2);
    assert_eq!(sessions.len(), 1);
    sessions.sweep(Instant::now() + IDLE);
    assert_eq!(sessions.len(), 0);
}

#[tokio::test]
async fn ten_thousand_sessions_with_nothing_to_do_keep_nothing() {
    let fake = Fake::new(Config::default());
    let sessions = sessions(10_000);
    for _ in 0..10_000 {
        opened(&fake, &sessions, "2025-11-25").await;
    }
    assert!(sessions.reserve().is_none());
    assert_eq!((sessions.len(), sessions.kept_bytes(), fake.hub().counts()), (10_000, 0, (10_000, 0)));
    fake.hub().publish(&"one".into(), &guesthouse_protocol::Event::ToolsChanged);
    sessions.close_all();
    assert_eq!((sessions.len(), fake.hub().counts()), (0, (0, 0)));
}
