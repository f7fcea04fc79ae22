//! The spans of calls: which call of which guest a line of the log is about.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::Span;
use tracing::field::Empty;

/// Longest name or URI in a span. It may be a client's own words.
const SUBJECT_BYTES_MAX: usize = 128;

/// The number of the last call.
static LAST: AtomicU64 = AtomicU64::new(0);

/// How the host calls a call, in its log and towards the guest. No other call in this process is called so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallNumber(u64);

impl CallNumber {
    pub(super) fn next() -> Self {
        Self(LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
    }
}

impl fmt::Display for CallNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// What a call is about.
#[derive(Clone, Copy)]
pub(super) enum Subject<'a> {
    Tool(&'a str),
    Resource(&'a str),
    Prompt(&'a str),
    /// A list that is asked of a guest each time.
    List(&'static str),
    /// A job that the guest runs elsewhere.
    Task(&'a str),
}

/// The span of a call, for all that happens in it. The guest is added when it is known; see [`is_of`].
pub(super) fn span(call: CallNumber, subject: Subject<'_>) -> Span {
    let id = tracing::field::display(call);
    // A later run of a task is no part of the call that began it.
    match subject {
        Subject::Tool(name) => tracing::info_span!(parent: None, "call", id, tool = cut(name), guest = Empty),
        Subject::Resource(uri) => tracing::info_span!(parent: None, "call", id, resource = cut(uri), guest = Empty),
        Subject::Prompt(name) => tracing::info_span!(parent: None, "call", id, prompt = cut(name), guest = Empty),
        Subject::List(list) => tracing::info_span!(parent: None, "call", id, list, guest = Empty),
        Subject::Task(task) => tracing::info_span!(parent: None, "call", id, task = cut(task), guest = Empty),
    }
}

/// Notes in the span which guest is called.
pub(super) fn is_of(span: &Span, guest: &str) {
    span.record("guest", guest);
}

/// The beginning of a text that is too long, without a copy. The log writes a text in quotes, and escapes what is in it.
fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(SUBJECT_BYTES_MAX)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_calls_have_one_number() {
        let (one, two) = (CallNumber::next(), CallNumber::next());
        assert_ne!(one.to_string(), two.to_string());
        assert_eq!(CallNumber(0x2f).to_string(), "2f");
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"ä".repeat(100)).len(), SUBJECT_BYTES_MAX);
        assert_eq!(cut(&format!("x{}", "ä".repeat(100))).len(), SUBJECT_BYTES_MAX - 1);
    }
}
