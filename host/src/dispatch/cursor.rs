//! Cursors: where the next page of a list begins, sealed to the endpoint and the list that it belongs to, and to its reader.

use super::Scope;
use crate::seal::TOKEN_LEN_MAX;
use guesthouse_protocol::{Failure, Identity};

/// Where a page begins: in a list of the host's, after so many entries; in a guest's list, at the guest's own cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Position {
    /// After this many entries.
    Offset(usize),
    /// In the list of this guest, at its cursor (none: at the beginning), after so many entries of the page there.
    Guest { name: String, cursor: Option<String>, skip: usize },
}

impl Position {
    fn encode(&self) -> String {
        match self {
            Position::Offset(offset) => format!("o{offset}"),
            Position::Guest { name, cursor: None, skip } => format!("g{skip} {name}"),
            Position::Guest { name, cursor: Some(cursor), skip } => format!("g{skip} {name} {cursor}"),
        }
    }

    fn decode(text: &str) -> Option<Self> {
        if let Some(offset) = text.strip_prefix('o') {
            return offset.parse().ok().map(Position::Offset);
        }
        // No guest's name has a space.
        let (skip, guest) = text.strip_prefix('g')?.split_once(' ')?;
        let skip = skip.parse().ok()?;
        Some(match guest.split_once(' ') {
            None => Position::Guest { name: guest.into(), cursor: None, skip },
            Some((name, cursor)) => Position::Guest { name: name.into(), cursor: Some(cursor.into()), skip },
        })
    }
}

impl Scope<'_> {
    /// A cursor for the client.
    pub(super) fn seal_cursor(&self, list: &str, position: &Position) -> Option<String> {
        let sealed = self.dispatcher.sealer.seal(&self.cursor_context(list), position.encode().as_bytes());
        sealed.inspect_err(|error| tracing::error!("the next page of {list} cannot be offered: {error:#}")).ok()
    }

    /// The position that a client's cursor stands for.
    pub(super) fn open_cursor(&self, list: &str, cursor: &str) -> Result<Position, Failure> {
        let opened = self.dispatcher.sealer.open(&self.cursor_context(list), cursor, TOKEN_LEN_MAX).ok();
        let position = opened.and_then(|bytes| String::from_utf8(bytes).ok()).as_deref().and_then(Position::decode);
        position.ok_or_else(|| Failure::InvalidParams("Invalid cursor: it was not made by this list, or is no longer known".into()))
    }

    fn cursor_context(&self, list: &str) -> String {
        // In quotes and escaped, so that no name runs into the next.
        let Identity { principal, tenant, .. } = &self.identity;
        format!("cursor {list} {} {principal:?} {tenant:?}", self.endpoint.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_its_own_text() {
        let guest = |cursor: Option<&str>, skip| Position::Guest { name: "a-b".into(), cursor: cursor.map(Into::into), skip };
        for position in
            [Position::Offset(0), Position::Offset(500), guest(None, 0), guest(None, 7), guest(Some(""), 0), guest(Some("x y\nz"), 500)]
        {
            assert_eq!(Position::decode(&position.encode()), Some(position));
        }
        for text in ["", "o", "ox", "o-1", "x", "g", "ga", "g-1 a", "gx a"] {
            assert_eq!(Position::decode(text), None, "{text}");
        }
    }
}
