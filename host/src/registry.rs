//! What is served: an immutable snapshot of the guests and of the names under which clients reach them.
//!
//! A snapshot is made when guests are loaded and replaced as a whole; a call works on the one that it began with.

pub mod load;
pub mod schema;
pub mod template;
mod uris;
mod view;

pub use view::{View, ViewPrompt, ViewTool};

use crate::config::{Config, GuestConfig, Prefix};
use crate::guest::Version;
use anyhow::Result;
use guesthouse_protocol::http::ParamHeaders;
use guesthouse_protocol::model;
use schema::Schema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use template::UriTemplate;
use uris::KnownUris;

/// Which guests a client reaches: all of them merged, or one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Endpoint {
    /// All guests, at `/mcp`.
    Merged,
    /// One guest under its own names, at `/mcp/<guest>` and in `run`.
    Guest(#[serde(with = "guesthouse_protocol::saved")] Arc<str>),
}

impl Endpoint {
    /// Whether the guest is reached there.
    pub fn contains(&self, guest: &str) -> bool {
        match self {
            Endpoint::Merged => true,
            Endpoint::Guest(name) => **name == *guest,
        }
    }

    /// The endpoint as a path, which is also how sealed tokens are bound to it.
    pub fn path(&self) -> String {
        match self {
            Endpoint::Merged => "/mcp".into(),
            Endpoint::Guest(name) => format!("/mcp/{name}"),
        }
    }
}

/// A guest that is ready to be called, with what its version offers.
#[derive(Clone)]
pub struct Loaded {
    /// The guest's name in this host.
    pub name: Arc<str>,
    /// The code.
    pub version: Version,
    /// What it says about itself.
    pub info: model::Implementation,
    /// Its guidance for the model.
    pub instructions: Option<String>,
    /// What the operator says about it.
    pub config: GuestConfig,
    /// Its tools, under its own names, in its order.
    pub tools: Arc<Vec<Tool>>,
    /// Its prompts, likewise.
    pub prompts: Arc<Vec<Arc<model::Prompt>>>,
    /// Its resource templates.
    pub templates: Arc<Vec<Template>>,
    /// How long its lists stay fresh.
    pub hints: Hints,
    /// What it lists and is not served: of which list, and a sentence each.
    pub left_out: Vec<(&'static str, String)>,
    /// SHA-256 of what it lists when nobody in particular asks: tells whether two versions list the same resources.
    pub resources_digest: [u8; 32],
    /// URIs that it is known to have listed, to find the owner of one on the merged endpoint.
    uris: Arc<Mutex<KnownUris>>,
}

/// How long the lists that are asked once per version stay fresh, and for whom. None: nobody said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Of `tools/list`.
    pub tools: Option<model::CacheHint>,
    /// Of `prompts/list`.
    pub prompts: Option<model::CacheHint>,
    /// Of `resources/templates/list`.
    pub templates: Option<model::CacheHint>,
}

/// How fresh a list is that is made of several: as the least fresh, and public only if all are.
fn least_fresh(hints: impl IntoIterator<Item = Option<model::CacheHint>>) -> Option<model::CacheHint> {
    let mut hints = hints.into_iter();
    let first = hints.next()??;
    hints.try_fold(first, |least, hint| {
        let hint = hint?;
        let scope = if least.scope == model::CacheScope::Private { least.scope } else { hint.scope };
        Some(model::CacheHint { ttl_ms: least.ttl_ms.min(hint.ttl_ms), scope })
    })
}

/// A tool with its compiled schemas.
pub struct Tool {
    /// As the guest listed it.
    pub listed: Arc<model::Tool>,
    /// What arguments must fit.
    pub input: Schema,
    /// What structured content must fit.
    pub output: Option<Schema>,
    /// The arguments that HTTP clients repeat in headers.
    pub headers: ParamHeaders,
}

/// A resource template that can be matched.
pub struct Template {
    /// As the guest listed it.
    pub listed: Arc<model::ResourceTemplate>,
    /// The URIs that it stands for.
    pub matcher: UriTemplate,
}

impl Loaded {
    /// Remembers who listed these URIs, up to a bound.
    pub fn remember_uris<'a>(&self, uris: impl Iterator<Item = &'a str>) {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner).remember(uris);
    }

    fn listed_uri(&self, uri: &str) -> bool {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner).contains(uri)
    }

    /// How many resources the guest is known to have listed.
    pub fn known_uris(&self) -> usize {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// The snapshot.
pub struct Registry {
    merged: Arc<View>,
    single: HashMap<Arc<str>, Arc<View>>,
    prefixed: bool,
}

impl Registry {
    /// Puts loaded guests together, ordered by name. Fails where two of them would serve the same name.
    ///
    /// `started_with` counts the guests that were asked for, loaded or not: a guest that is mended later must not rename
    /// what the others serve.
    pub fn new(config: &Config, guests: Vec<Arc<Loaded>>, started_with: usize) -> Result<Self> {
        let prefixed = match config.server.prefix {
            Prefix::Auto => started_with > 1,
            Prefix::Always => true,
            Prefix::Never => false,
        };
        Self::of(config, guests, prefixed)
    }

    fn of(config: &Config, mut guests: Vec<Arc<Loaded>>, prefixed: bool) -> Result<Self> {
        guests.sort_by(|a, b| a.name.cmp(&b.name));
        let single =
            guests.iter().map(|guest| Ok((guest.name.clone(), Arc::new(View::of_guest(config, guest.clone())?)))).collect::<Result<_>>()?;
        let merged = Arc::new(View::merged(config, guests, prefixed)?);
        Ok(Self { merged, single, prefixed })
    }

    /// What a client of this endpoint sees; `None` if there is no such guest.
    pub fn view(&self, endpoint: &Endpoint) -> Option<&Arc<View>> {
        match endpoint {
            Endpoint::Merged => Some(&self.merged),
            Endpoint::Guest(name) => self.single.get(name),
        }
    }

    /// The same with one guest in a newer form, if it is still the same version.
    pub fn with(&self, config: &Config, renewed: &Arc<Loaded>) -> Result<Self> {
        let renew = |guest: &Arc<Loaded>| {
            if guest.version.is(&renewed.version) { renewed.clone() } else { guest.clone() }
        };
        Self::of(config, self.guests().iter().map(renew).collect(), self.prefixed)
    }

    /// Whether a guest can be served in place of the one of its name, or beside the others; if not, why.
    pub fn check(&self, config: &Config, guest: &Arc<Loaded>) -> Result<()> {
        self.swapped(config, guest.clone()).map(drop)
    }

    /// The same with another version of a guest, or with a guest more.
    pub fn swapped(&self, config: &Config, guest: Arc<Loaded>) -> Result<Self> {
        let others = self.guests().iter().filter(|other| other.name != guest.name).cloned();
        let guests = others.chain([guest.clone()]).collect();
        Self::of(config, guests, self.prefixed)
    }

    /// One guest alone, under the names that it has beside the others.
    pub fn alone(&self, config: &Config, guest: Arc<Loaded>) -> Result<Self> {
        Self::of(config, vec![guest], self.prefixed)
    }

    /// The same without a guest.
    pub fn without(&self, config: &Config, name: &str) -> Result<Self> {
        Self::of(config, self.guests().iter().filter(|guest| *guest.name != *name).cloned().collect(), self.prefixed)
    }

    /// The guest of that name.
    pub fn guest(&self, name: &str) -> Option<&Arc<Loaded>> {
        self.guests().iter().find(|guest| *guest.name == *name)
    }

    /// All guests, by name.
    pub fn guests(&self) -> &[Arc<Loaded>] {
        self.merged.guests()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::CacheScope::{Private, Public};

    #[test]
    fn a_merged_list_is_as_fresh_as_its_least_fresh_part() {
        let hint = |ttl_ms, scope| Some(model::CacheHint { ttl_ms, scope });
        for (hints, expected) in [
            (vec![], None),
            (vec![hint(5, Public)], hint(5, Public)),
            (vec![hint(5, Public), hint(3, Public)], hint(3, Public)),
            (vec![hint(5, Private), hint(9, Public)], hint(5, Private)),
            (vec![hint(5, Public), None], None),
        ] {
            assert_eq!(least_fresh(hints.clone()), expected, "{hints:?}");
        }
    }
}
