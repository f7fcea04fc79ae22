//! Reads the body of a POST: bounded in size and in time.

use bytes::{Bytes, BytesMut};
use guesthouse_protocol::{ParseLimits, Refusal, RpcError, error};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use std::time::Duration;
use tokio::time::timeout;

/// The whole body, if it is short enough and comes soon enough.
pub(super) async fn read(body: Incoming, limits: &ParseLimits, body_time: Duration) -> Result<Bytes, Refusal> {
    if body.size_hint().lower() > limits.message_bytes_max as u64 {
        return Err(Refusal::too_long(limits));
    }
    timeout(body_time, collect(body, limits)).await.unwrap_or_else(|_| {
        let message = "The body did not arrive in time";
        Err(refusal(StatusCode::REQUEST_TIMEOUT, "body_timeout", message))
    })
}

async fn collect(mut body: Incoming, limits: &ParseLimits) -> Result<Bytes, Refusal> {
    let first = next(&mut body).await?.unwrap_or_default();
    // Most messages come in one piece, which then need not be copied.
    if body.is_end_stream() && first.len() <= limits.message_bytes_max {
        return Ok(first);
    }
    let mut whole = BytesMut::from(first);
    while whole.len() <= limits.message_bytes_max {
        match next(&mut body).await? {
            Some(piece) => whole.extend_from_slice(&piece),
            None => return Ok(whole.freeze()),
        }
    }
    Err(Refusal::too_long(limits))
}

/// The next piece of data; trailers are of no interest.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Refusal> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| broken_body())?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

fn broken_body() -> Refusal {
    refusal(StatusCode::BAD_REQUEST, "invalid_body", "The body is broken or incomplete")
}

fn refusal(status: StatusCode, kind: &str, message: &str) -> Refusal {
    Refusal { id: None, error: RpcError::typed(error::INVALID_REQUEST, kind, message), status: status.as_u16() }
}
