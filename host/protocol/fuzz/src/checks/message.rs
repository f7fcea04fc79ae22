//! Parsing: nothing panics, every refusal is an error that can be sent, and what is accepted keeps within the limits.

use guesthouse_protocol::message::parse;
use guesthouse_protocol::{Incoming, Message, ParseLimits, Refusal, RequestId};

/// Small, so that short inputs reach them.
fn limits() -> ParseLimits {
    ParseLimits { message_bytes_max: 4_096, depth_max: 16, batch_len_max: 8, id_bytes_max: 32 }
}

/// Parses one text, and compares the outcome with what a general JSON parser says.
pub fn check(data: &[u8]) {
    let limits = limits();
    match parse(data, &limits) {
        Err(refusal) => refused(&refusal, &limits),
        Ok(incoming) => {
            assert!(data.len() <= limits.message_bytes_max);
            let text = std::str::from_utf8(data).expect("only UTF-8 is accepted");
            match incoming {
                Incoming::One(message) => one(&message, text, &limits),
                Incoming::Batch(messages) => {
                    assert!((1..=limits.batch_len_max).contains(&messages.len()));
                    for message in &messages {
                        match message {
                            Ok(message) => one(message, text, &limits),
                            Err(refusal) => refused(refusal, &limits),
                        }
                    }
                }
            }
        }
    }
}

fn refused(refusal: &Refusal, limits: &ParseLimits) {
    assert!((400..500).contains(&refusal.status));
    assert!(refusal.error.code < 0 && !refusal.error.message.is_empty());
    if let Some(id) = &refusal.id {
        sound_id(id, limits);
    }
}

fn one(message: &Message<'_>, text: &str, limits: &ParseLimits) {
    match message {
        Message::Request(request) => {
            sound_id(&request.id, limits);
            assert!(!request.method.is_empty());
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(text)
                && value.is_object()
            {
                assert_eq!(value["method"], *request.method);
                assert_eq!(value["jsonrpc"], "2.0");
            }
        }
        Message::Notification(notification) => assert!(!notification.method.is_empty()),
        _ => {}
    }
}

fn sound_id(id: &RequestId, limits: &ParseLimits) {
    if let RequestId::String(id) = id {
        assert!(id.len() <= limits.id_bytes_max);
    }
}
