//! The `params` of a message, split into the members that some method of the protocol asks for.

use std::borrow::Cow;

use serde::de::{IgnoredAny, MapAccess};
use serde_json::value::RawValue;

use super::members::{Shape, Sink, Slots};

/// `params._meta` keys that the protocol itself consumes.
pub(crate) mod meta_key {
    /// The revision that the request speaks.
    pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Who sends the request.
    pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// What the client can do for this request.
    pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The least severe log message that the client wants to see of this request.
    pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Which `subscriptions/listen` a message belongs to; only in what the server sends.
    pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Who answers; only in results.
    pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// Asks for progress notifications.
    pub(crate) const PROGRESS_TOKEN: &str = "progressToken";
    /// W3C trace context.
    pub(crate) const TRACEPARENT: &str = "traceparent";
    /// W3C baggage, which may hold what is none of a guest's business: it goes no further.
    pub(crate) const BAGGAGE: &str = "baggage";
}

const META_NAMES: [&str; 7] = [
    meta_key::PROTOCOL_VERSION,
    meta_key::CLIENT_INFO,
    meta_key::CLIENT_CAPABILITIES,
    meta_key::LOG_LEVEL,
    meta_key::PROGRESS_TOKEN,
    meta_key::TRACEPARENT,
    meta_key::BAGGAGE,
];

const PARAM_NAMES: [&str; 17] = [
    "name",
    "arguments",
    "uri",
    "cursor",
    "ref",
    "argument",
    "context",
    "level",
    "protocolVersion",
    "capabilities",
    "clientInfo",
    "requestId",
    "inputResponses",
    "requestState",
    "taskId",
    "task",
    "notifications",
];

/// The `params` object of a message. Members that no method knows are dropped.
#[derive(Debug, Default)]
pub struct Params<'a> {
    slots: Slots<'a, { PARAM_NAMES.len() }>,
    meta: Option<Shape<Meta<'a>>>,
    /// A member that the protocol reads is there twice.
    pub(super) ambiguous: bool,
}

/// The `_meta` object of a message.
#[derive(Debug, Default)]
pub struct Meta<'a> {
    slots: Slots<'a, { META_NAMES.len() }>,
    others: Vec<(Cow<'a, str>, &'a RawValue)>,
    ambiguous: bool,
}

/// What stands at `params._meta`.
#[derive(Debug)]
pub(crate) enum MetaMember<'m, 'a> {
    Absent,
    NotAnObject,
    Object(&'m Meta<'a>),
}

impl<'a> Params<'a> {
    /// The raw text of a member, if it is there. `name` must be one that some method knows.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        index_of(&PARAM_NAMES, name).and_then(|index| self.slots.get(index))
    }

    /// The value of a member that is a string.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(super::members::text)
    }

    pub(crate) fn meta(&self) -> MetaMember<'_, 'a> {
        match &self.meta {
            None => MetaMember::Absent,
            Some(Shape::Object(meta)) => MetaMember::Object(meta),
            Some(Shape::Null | Shape::Other) => MetaMember::NotAnObject,
        }
    }

    pub(super) fn is_ambiguous(&self) -> bool {
        let meta = matches!(&self.meta, Some(Shape::Object(meta)) if meta.ambiguous);
        self.ambiguous || meta
    }
}

impl<'a> Meta<'a> {
    /// The raw text of a key that the protocol consumes.
    pub(crate) fn get(&self, key: &str) -> Option<&'a RawValue> {
        index_of(&META_NAMES, key).and_then(|index| self.slots.get(index))
    }

    /// The keys that the protocol does not consume.
    pub(crate) fn others(&self) -> &[(Cow<'a, str>, &'a RawValue)] {
        &self.others
    }
}

impl<'a> Sink<'a> for Params<'a> {
    fn member<A: MapAccess<'a>>(&mut self, name: Cow<'a, str>, map: &mut A) -> Result<(), A::Error> {
        if name == "_meta" {
            let meta = map.next_value()?;
            self.ambiguous |= self.meta.replace(meta).is_some();
        } else if let Some(index) = index_of(&PARAM_NAMES, &name) {
            self.ambiguous |= !self.slots.put(index, map.next_value()?);
        } else {
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

impl<'a> Sink<'a> for Meta<'a> {
    fn member<A: MapAccess<'a>>(&mut self, name: Cow<'a, str>, map: &mut A) -> Result<(), A::Error> {
        let value = map.next_value()?;
        match index_of(&META_NAMES, &name) {
            Some(index) => self.ambiguous |= !self.slots.put(index, value),
            None => self.others.push((name, value)),
        }
        Ok(())
    }
}

fn index_of(names: &[&str], name: &str) -> Option<usize> {
    names.iter().position(|known| *known == name)
}
