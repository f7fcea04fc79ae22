//! The protocol revisions: their order, their era, and what each of them knows.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A dated revision of the Model Context Protocol, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Revision {
    /// The first release: JSON-RPC batches, text and images.
    V2024_11_05,
    /// Adds audio, tool annotations, the completions capability and progress messages.
    V2025_03_26,
    /// Adds titles, structured tool output, resource links and item `_meta`; removes batches.
    V2025_06_18,
    /// Adds icons and descriptions of implementations.
    V2025_11_25,
    /// Stateless: every request carries its own version and capabilities.
    V2026_07_28,
}

/// How a client and a server agree on what they speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// An `initialize` handshake opens a session (2025-11-25 and older).
    Handshake,
    /// Every request describes itself in `_meta` (2026-07-28).
    Modern,
}

/// Which eras a server serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Only the modern era.
    Modern,
    /// Only the handshake era: the server behaves as one that never heard of the modern one.
    Handshake,
    /// Both, chosen request by request.
    #[default]
    Both,
}

/// The text is not a revision that this package knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRevision;

impl Revision {
    /// Every revision, newest first, which is the order of preference.
    pub const ALL: [Revision; 5] =
        [Revision::V2026_07_28, Revision::V2025_11_25, Revision::V2025_06_18, Revision::V2025_03_26, Revision::V2024_11_05];
    /// What `initialize` answers when the client asks for something that it cannot have.
    pub const LATEST_HANDSHAKE: Revision = Revision::V2025_11_25;
    /// The newest revision of the modern era.
    pub const LATEST_MODERN: Revision = Revision::V2026_07_28;

    /// The revision as it stands on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era that the revision belongs to.
    pub fn era(self) -> Era {
        if self >= Revision::V2026_07_28 { Era::Modern } else { Era::Handshake }
    }

    /// JSON-RPC batches; the first two revisions follow JSON-RPC as it is.
    pub fn has_batches(self) -> bool {
        self <= Revision::V2025_03_26
    }

    /// `notifications/progress` may carry a message.
    pub fn has_progress_message(self) -> bool {
        self >= Revision::V2025_03_26
    }

    /// Tools have annotations.
    pub fn has_tool_annotations(self) -> bool {
        self >= Revision::V2025_03_26
    }

    /// Content may be audio.
    pub fn has_audio(self) -> bool {
        self >= Revision::V2025_03_26
    }

    /// The server capability `completions` exists; completion itself is as old as the protocol.
    pub fn has_completions_capability(self) -> bool {
        self >= Revision::V2025_03_26
    }

    /// Things have a `title` beside their `name`.
    pub fn has_title(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// Tools, resources, prompts and content blocks have a `_meta` of their own.
    pub fn has_item_meta(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// Tools have an `outputSchema`, results `structuredContent`.
    pub fn has_structured_output(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// Content may be a link to a resource.
    pub fn has_resource_link(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// Annotations have `lastModified`.
    pub fn has_last_modified(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// Things have icons; implementations also a description and a website.
    pub fn has_icons(self) -> bool {
        self >= Revision::V2025_11_25
    }

    /// Servers may ask the user through the client.
    pub fn has_elicitation(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// Elicitation has modes: a form, or an address to visit.
    pub fn has_url_elicitation(self) -> bool {
        self >= Revision::V2025_11_25
    }

    /// An address to visit has an `elicitationId`.
    pub fn has_elicitation_id(self) -> bool {
        self == Revision::V2025_11_25
    }

    /// Forms have titled choices, several choices at once, and defaults for everything.
    pub fn has_rich_forms(self) -> bool {
        self >= Revision::V2025_11_25
    }

    /// Sampling may offer tools, and a message may have several blocks.
    pub fn has_sampling_tools(self) -> bool {
        self >= Revision::V2025_11_25
    }

    /// A client asks for a task by a parameter; tools say whether they take it.
    pub fn has_task_param(self) -> bool {
        self == Revision::V2025_11_25
    }

    /// Capabilities have `extensions`.
    pub fn has_extensions(self) -> bool {
        self >= Revision::V2026_07_28
    }

    /// Structured content may be any JSON value, and an output schema need not describe an object.
    pub fn has_any_structured_output(self) -> bool {
        self >= Revision::V2026_07_28
    }

    /// An error whose request could not be read has no `id` at all. Older revisions leave that to JSON-RPC, which
    /// has `null` there.
    pub fn omits_unknown_id(self) -> bool {
        self >= Revision::V2025_11_25
    }
}

impl Mode {
    /// Whether requests of that era are served.
    pub fn serves(self, era: Era) -> bool {
        match self {
            Mode::Both => true,
            Mode::Modern => era == Era::Modern,
            Mode::Handshake => era == Era::Handshake,
        }
    }

    /// The revisions that are served, newest first.
    pub fn revisions(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().filter(move |revision| self.serves(revision.era()))
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Revision, UnknownRevision> {
        Revision::ALL.into_iter().find(|revision| revision.as_str() == text).ok_or(UnknownRevision)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for UnknownRevision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("no such protocol revision")
    }
}

impl std::error::Error for UnknownRevision {}
