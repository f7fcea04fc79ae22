//! What must hold for any input, by target. The fuzz targets and the test that replays their seeds both call these.

pub mod framing;
pub mod http;
pub mod message;
pub mod params;
pub mod peer;
pub mod schema;
pub mod seal;
pub mod template;

/// A target by its name, which is also that of its folder of seeds.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 8] = [
    ("framing", framing::check),
    ("http", http::check),
    ("message", message::check),
    ("params", params::check),
    ("peer", peer::check),
    ("schema", schema::check),
    ("seal", seal::check),
    ("template", template::check),
];

/// Splits at the first occurrence of a mark; without one, everything is before it.
pub(crate) fn split<'a>(data: &'a [u8], mark: &[u8]) -> (&'a [u8], &'a [u8]) {
    match data.windows(mark.len()).position(|window| window == mark) {
        Some(at) => (&data[..at], &data[at + mark.len()..]),
        None => (data, &[]),
    }
}

/// Takes the first byte off; 0 where there is none.
pub(crate) fn first(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, &[]), |(first, rest)| (*first, rest))
}

/// A message that may go out: one line of JSON, with the version, and an error or a result if it is a response.
pub(crate) fn sound_message(bytes: &[u8]) -> serde_json::Value {
    assert!(!bytes.contains(&b'\n') && !bytes.contains(&b'\r'), "a message must be one line");
    let value: serde_json::Value = serde_json::from_slice(bytes).expect("what goes out is JSON");
    let messages = value.as_array().map_or(std::slice::from_ref(&value), Vec::as_slice);
    assert!(!messages.is_empty(), "no batch is empty");
    for message in messages {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        let parts = ["result", "error", "method"].iter().filter(|part| message.get(**part).is_some()).count();
        assert_eq!(parts, 1, "{message}");
        if let Some(error) = message.get("error") {
            assert!(error["code"].is_i64() && error["message"].is_string(), "{message}");
        }
    }
    value
}
