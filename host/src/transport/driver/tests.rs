//! Connections whose clients read slowly, or not at all, and what goes out together.

use super::*;
use crate::config::Config;
use crate::config::units::Size;
use crate::transport::testing::{Fake, PATIENCE, call};
use guesthouse_protocol::TransportKind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Says the same message as often as it is asked, and counts that.
struct Endless(Arc<AtomicUsize>, Bytes);

impl Source for Endless {
    async fn next(&mut self) -> Option<Result<Bytes, Refusal>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Some(Ok(self.1.clone()))
    }
}

/// Never gets rid of anything.
struct Stuck;

impl Sink for Stuck {
    async fn write(&mut self, _messages: &[Bytes]) -> io::Result<()> {
        std::future::pending().await
    }
}

/// Keeps each write.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Vec<Bytes>>>>);

impl Sink for Kept {
    async fn write(&mut self, messages: &[Bytes]) -> io::Result<()> {
        self.0.lock().unwrap().push(messages.to_vec());
        Ok(())
    }
}

fn connection(change: impl FnOnce(&mut Config)) -> (Connection<Fake>, Writer) {
    let mut config = Config::default();
    change(&mut config);
    let fake = Fake::new(config);
    let peer = Peer::new(fake.peer_config(&Endpoint::Merged, TransportKind::Memory).unwrap());
    Connection::new(fake, Endpoint::Merged, peer, Identity::default())
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_either() {
    let (connection, writer) = connection(|config| config.limits.queue = 4);
    let taken = Arc::new(AtomicUsize::new(0));
    let ping = Bytes::from(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let writing = tokio::spawn(writer.run(Stuck));
    let running = tokio::spawn(connection.run(Endless(taken.clone(), ping), std::future::pending(), Duration::ZERO));
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let count = taken.load(Ordering::Relaxed);
    assert!((4..=2 * WRITE_LEN_MAX).contains(&count), "{count} messages were taken in");
    writing.abort();
    running.await.unwrap();
}

#[tokio::test]
async fn what_waits_for_a_client_is_bounded_in_bytes_too() {
    let ping = Bytes::from(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let (connection, writer) = connection(|config| config.limits.queue_bytes = Size(400));
    let (backlog, taken) = (connection.backlog.clone(), Arc::new(AtomicUsize::new(0)));
    let writing = tokio::spawn(writer.run(Stuck));
    let running = tokio::spawn(connection.run(Endless(taken.clone(), ping), std::future::pending(), Duration::ZERO));
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    // An answer has about as many bytes as its request: ten times as many messages were taken in without this limit.
    let count = taken.load(Ordering::Relaxed);
    assert!((5..=20).contains(&count), "{count} messages were taken in");
    assert!(backlog.try_take(&Bytes::from_static(&[0; 100])).is_none());
    writing.abort();
    running.await.unwrap();
    assert!(backlog.try_take(&Bytes::from_static(&[0; 400])).is_some(), "what is gone takes up no room");
}

#[tokio::test]
async fn a_response_larger_than_the_whole_room_is_sent_all_the_same() {
    let (mut connection, writer) = connection(|config| config.limits.queue_bytes = Size(10));
    connection.outbox.extend([Bytes::from(vec![b'x'; 100]), Bytes::from_static(b"next")]);
    connection.fill_queue();
    assert_eq!(connection.outbox.len(), 1);
    let (sink, nothing) = (Kept::default(), mpsc::channel(1).1);
    let writing = tokio::spawn(writer.run(sink.clone()));
    let source = crate::transport::memory::QueueSource(nothing);
    connection.run(source, std::future::pending(), PATIENCE).await;
    writing.await.unwrap().unwrap();
    let lens: Vec<usize> = sink.0.lock().unwrap().iter().flatten().map(Bytes::len).collect();
    assert_eq!(lens, [100, 4]);
}

#[tokio::test]
async fn what_is_ready_goes_out_in_one_write_frames_first() {
    let (connection, writer) = connection(|_| {});
    let mut on_the_wire = Vec::new();
    for id in 0..3 {
        let message = Bytes::from(format!("response {id}"));
        let share = connection.backlog.try_take(&message).unwrap();
        connection.responses.try_send((message, share)).unwrap();
    }
    for (message, waits) in [("late", false), ("frame", true)] {
        let place = connection.frames.place(&message.into()).await.unwrap();
        let sent = place.send(message.into());
        on_the_wire.extend(waits.then_some(sent));
    }
    drop(connection);
    let sink = Kept::default();
    writer.run(sink.clone()).await.unwrap();
    on_the_wire.pop().unwrap().await.unwrap();
    assert_eq!(*sink.0.lock().unwrap(), [["frame", "response 0", "response 1", "response 2"]]);
}

#[tokio::test]
async fn the_host_has_room_for_so_many_calls_and_no_more() {
    let (mut connection, _writer) = connection(|config| config.limits.requests = 2);
    for id in 0..3 {
        connection.received(Ok(call(id, "wait", "").into()));
    }
    assert_eq!((connection.calls.len(), connection.outbox.len()), (2, 1));
    let answer = std::str::from_utf8(&connection.outbox[0]).unwrap();
    assert!(answer.contains("\"id\":2") && answer.contains("\"busy\""), "{answer}");
}
