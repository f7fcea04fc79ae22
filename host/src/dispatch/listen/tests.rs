//! Subscriptions without a transport: what is sent, when, and how they end.

use super::*;
use crate::changes::{Hub, HubLimits};
use crate::config::streams::StreamLimits;
use crate::dispatch::Frame;
use crate::registry::Endpoint;
use guesthouse_protocol::{Effect, Event, Mode, Peer, PeerConfig, TransportKind};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const FOREVER: Duration = Duration::from_secs(1_000_000);

/// A subscription that runs, and the client's end of it.
struct Running {
    frames: mpsc::Receiver<Frame>,
    stopping: CancellationToken,
    task: JoinHandle<Outcome>,
}

fn hub(queue: usize) -> Arc<Hub> {
    Hub::new(HubLimits::of(&StreamLimits { queue, ..StreamLimits::default() }))
}

fn context(transport: TransportKind) -> CallContext {
    let mut peer = Peer::new(Arc::new(PeerConfig::new(Mode::Both, transport, None)));
    let listen = br#"{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    match peer.receive(listen).into_iter().next() {
        Some(Effect::Run(call)) => call.context,
        other => panic!("{other:?}"),
    }
}

fn run(hub: &Arc<Hub>, transport: TransportKind, listen_time: Duration) -> Running {
    let lists = Lists { tools: true, prompts: true, ..Lists::default() };
    let listener = hub.subscription(Endpoint::Merged, lists).unwrap();
    let honoured = Filter { tools: true, prompts: true, ..Filter::default() };
    let subscription = Subscription::of(&context(transport));
    let (sender, frames) = mpsc::channel(1);
    let stopping = CancellationToken::new();
    let token = stopping.clone();
    let task = tokio::spawn(async move { pass_on(&listener, &honoured, &subscription, &sender.into(), &token, listen_time).await });
    Running { frames, stopping, task }
}

impl Running {
    /// The next message, once it is there; it counts as written.
    async fn next(&mut self) -> String {
        let frame = self.frames.recv().await.unwrap();
        let text = String::from_utf8(frame.message.to_vec()).unwrap();
        frame.written();
        text
    }
}

#[tokio::test]
async fn the_acknowledgement_comes_first_and_then_what_happens() {
    let hub = hub(8);
    let mut running = run(&hub, TransportKind::Stdio, FOREVER);
    hub.publish(&"a".into(), &Event::ToolsChanged);
    let first = running.next().await;
    assert!(first.contains("subscriptions/acknowledged") && first.contains("\"toolsListChanged\":true"), "{first}");
    assert!(running.next().await.contains("tools/list_changed"));
    hub.publish(&"a".into(), &Event::ResourcesChanged);
    hub.publish(&"a".into(), &Event::PromptsChanged);
    assert!(running.next().await.contains("prompts/list_changed"));
    drop(running.frames);
    hub.publish(&"a".into(), &Event::PromptsChanged);
    assert!(matches!(running.task.await.unwrap(), Err(Failure::Cancelled)));
    assert_eq!(hub.counts(), (0, 0));
}

#[tokio::test]
async fn while_one_message_is_on_its_way_the_same_change_waits_once() {
    let hub = hub(8);
    let mut running = run(&hub, TransportKind::Http, FOREVER);
    let acknowledgement = running.frames.recv().await.unwrap();
    for _ in 0..100 {
        hub.publish(&"a".into(), &Event::ToolsChanged);
        hub.publish(&"a".into(), &Event::PromptsChanged);
    }
    acknowledgement.written();
    assert!(running.next().await.contains("tools/list_changed"));
    assert!(running.next().await.contains("prompts/list_changed"));
    hub.publish(&"a".into(), &Event::PromptsChanged);
    assert!(running.next().await.contains("prompts/list_changed"));
}

#[tokio::test]
async fn a_client_that_is_too_slow_is_told_that_it_is_over() {
    let hub = hub(1);
    let mut running = run(&hub, TransportKind::Stdio, FOREVER);
    let acknowledgement = running.frames.recv().await.unwrap();
    hub.publish(&"a".into(), &Event::ToolsChanged);
    hub.publish(&"a".into(), &Event::PromptsChanged);
    acknowledgement.written();
    let message = running.next().await;
    assert!(message.contains("notifications/cancelled") && message.contains("\"requestId\":7"), "{message}");
    assert!(matches!(running.task.await.unwrap(), Ok(Reply::Empty)));
}

#[tokio::test]
async fn a_subscription_ends_after_its_time_and_when_the_connection_ends() {
    for (transport, stops) in [(TransportKind::Stdio, true), (TransportKind::Stdio, false), (TransportKind::Http, true)] {
        let hub = hub(8);
        let mut running = run(&hub, transport, if stops { FOREVER } else { Duration::from_millis(10) });
        running.next().await;
        if stops {
            running.stopping.cancel();
        }
        if transport == TransportKind::Stdio {
            assert!(running.next().await.contains("notifications/cancelled"));
        }
        assert!(running.frames.recv().await.is_none());
        assert!(matches!(running.task.await.unwrap(), Ok(Reply::Empty)));
    }
}

#[tokio::test]
async fn a_thousand_subscriptions_are_told_and_leave_nothing() {
    let hub = hub(8);
    let mut all: Vec<Running> = (0..1_000).map(|_| run(&hub, TransportKind::Http, FOREVER)).collect();
    for running in &mut all {
        running.next().await;
    }
    hub.publish(&"a".into(), &Event::ToolsChanged);
    for mut running in all {
        assert!(running.next().await.contains("tools/list_changed"));
        running.task.abort();
        assert!(running.task.await.is_err());
    }
    assert_eq!(hub.counts(), (0, 0));
}
