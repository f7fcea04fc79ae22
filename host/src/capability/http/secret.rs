//! A header that the host adds to requests, whose value nobody sees.

use std::fmt;

use http::{HeaderName, HeaderValue};

use super::is_forbidden;
use crate::policy::origin::Origin;

/// A header for all requests to one origin.
#[derive(Clone)]
pub struct SecretHeader {
    origin: Origin,
    name: HeaderName,
    value: HeaderValue,
}

impl SecretHeader {
    /// A header with this value, or what is wrong with it; the value is never repeated.
    pub fn new(origin: Origin, name: HeaderName, value: &str) -> Result<Self, &'static str> {
        let mut value = HeaderValue::try_from(value).map_err(|_| "has characters that a header cannot have")?;
        value.set_sensitive(true);
        Ok(Self { origin, name, value })
    }

    /// The name of a header that can be added, or why it cannot.
    pub fn name_of(text: &str) -> Result<HeaderName, &'static str> {
        let name = HeaderName::try_from(text).map_err(|_| "is not the name of a header")?;
        let framing = [http::header::CONTENT_LENGTH, http::header::TRAILER, http::header::TE, http::header::EXPECT];
        if is_forbidden(&name) || framing.contains(&name) { Err("is not a header that can be added to requests") } else { Ok(name) }
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn name(&self) -> &HeaderName {
        &self.name
    }

    pub(super) fn value(&self) -> HeaderValue {
        self.value.clone()
    }
}

impl fmt::Debug for SecretHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretHeader").field("origin", &self.origin).field("name", &self.name).finish_non_exhaustive()
    }
}
