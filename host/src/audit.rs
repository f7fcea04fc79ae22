//! The audit trail: what guests were given, what they were refused, what was loaded and what failed.
//!
//! An event names guest, capability and value (an origin, a path, a bucket), never payloads or secrets.

mod journal;
mod refusals;

pub use journal::Journal;
pub use refusals::Refusals;

use std::sync::Arc;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A guest used a capability that it was granted.
    Granted,
    /// A guest was refused something.
    Refused,
    /// A version of a guest was loaded.
    Loaded,
    /// A version of a guest was not loaded, or let go.
    Unloaded,
    /// A call failed for a reason that is not the guest's own error.
    Failed,
}

impl What {
    /// The word that stands for it in the trail.
    pub fn as_str(self) -> &'static str {
        match self {
            What::Granted => "granted",
            What::Refused => "refused",
            What::Loaded => "loaded",
            What::Unloaded => "unloaded",
            What::Failed => "failed",
        }
    }
}

/// One event. Texts may be a guest's own words: whoever writes them down cleans and cuts them.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// What happened.
    pub what: What,
    /// To which guest.
    pub guest: &'a str,
    /// The capability, such as `http`, `state`, `dirs`, `env`, `tools`; or what failed, such as `handler_crash`.
    pub subject: &'a str,
    /// The origin, path, bucket, name or reason.
    pub value: &'a str,
    /// For whom, if that is known.
    pub principal: Option<&'a str>,
}

/// Where events go.
pub trait Sink: Send + Sync + 'static {
    /// Takes an event in. Must neither block nor fail: what cannot be written is counted and dropped.
    fn record(&self, event: &Event<'_>);
}

/// A handle on the trail, cheap to clone. The default one leads nowhere.
#[derive(Clone, Default)]
pub struct Audit(Vec<Arc<dyn Sink>>);

impl Audit {
    /// A trail that ends in `sink`.
    pub fn to(sink: Arc<dyn Sink>) -> Self {
        Self(vec![sink])
    }

    /// The same, which ends in `sink` as well.
    pub fn and(mut self, sink: Arc<dyn Sink>) -> Self {
        self.0.push(sink);
        self
    }

    /// Notes an event.
    pub fn record(&self, event: &Event<'_>) {
        for sink in &self.0 {
            sink.record(event);
        }
    }
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Audit").field(&self.0.len()).finish()
    }
}
