//! A guest that sends the HTTP requests that its caller describes, and says what came of them.

mod client;

use std::collections::BTreeMap;

/// A request, in the parts that `wasi:http` has.
#[guesthouse::data]
pub struct Ask {
    /// The method; GET where it is absent.
    pub method: Option<String>,
    /// The scheme; HTTP where it is absent.
    pub scheme: Option<String>,
    /// Host and port.
    pub authority: String,
    /// Path and query.
    pub path: Option<String>,
    /// Headers of the request.
    pub headers: Option<BTreeMap<String, String>>,
    /// Bytes of the body, which are sent in pieces.
    pub body_bytes: Option<u64>,
    /// Whether to go on to where a redirect leads.
    pub follow: Option<bool>,
    /// Whether to be content with the response's header.
    pub head_only: Option<bool>,
    /// Milliseconds for the response to begin.
    pub patience_ms: Option<u64>,
    /// Milliseconds for the connection to be made.
    pub connect_ms: Option<u64>,
}

/// What came of one request.
#[guesthouse::data]
#[derive(Default)]
pub struct Answer {
    /// The name of the error, if there was one.
    pub error: Option<String>,
    /// The status of the response.
    pub status: Option<u16>,
    /// The headers of the response.
    pub headers: Option<BTreeMap<String, String>>,
    /// The headers of the request, as the guest sees them when the response is there.
    pub sent: Option<BTreeMap<String, String>>,
    /// The body, as text.
    pub body: Option<String>,
    /// How many bytes of the body came.
    pub body_bytes: u64,
}

#[derive(Default)]
struct Outgoing;

#[guesthouse::server]
impl Outgoing {
    /// Sends requests one after the other, and says of each what came of it, as JSON.
    #[tool]
    fn send(
        /// The requests.
        requests: Vec<Ask>,
    ) -> guesthouse::Result<String> {
        let answers: Vec<Answer> = requests.iter().map(client::send).collect();
        Ok(guesthouse::serde_json::to_string(&answers)?)
    }

    /// Begins as many requests as it is told, and waits for all of them together; says how each ended.
    #[tool]
    fn together(
        /// The request.
        request: Ask,
        /// How many times.
        count: u32,
    ) -> guesthouse::Result<String> {
        Ok(guesthouse::serde_json::to_string(&client::together(&request, count))?)
    }

    /// Sends a request several times and keeps the responses for as long as the instance lives, unread.
    #[tool]
    fn hoard(
        /// The request.
        request: Ask,
        /// How many times.
        count: u32,
    ) -> guesthouse::Result<String> {
        let answers: Vec<Answer> = (0..count).map(|_| client::hoard(&request)).collect();
        Ok(guesthouse::serde_json::to_string(&answers)?)
    }

    /// Says whether the host's environment has anything for it.
    #[tool]
    fn environment() -> String {
        std::env::vars().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("\n")
    }
}
