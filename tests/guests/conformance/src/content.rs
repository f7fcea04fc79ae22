//! Content blocks of every kind.

use guesthouse::Content;
use guesthouse::wit::{Body, ResourceContents};

/// One pixel.
pub const PIXEL: &[u8] = include_bytes!("../media/pixel.png");
const SILENCE: &[u8] = include_bytes!("../media/silence.wav");

pub fn image() -> Content {
    Content::image(PIXEL, "image/png")
}

pub fn audio() -> Content {
    Content::audio(SILENCE, "audio/wav")
}

pub fn embedded(uri: &str, mime_type: &str, text: &str) -> Content {
    let body = Body::Text(text.into());
    Content::embed(ResourceContents { uri: uri.into(), mime_type: Some(mime_type.into()), body, meta: None })
}
