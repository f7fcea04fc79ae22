//! What a guest finds in its room: everything that its operator granted, ready to be used by its calls.

use std::sync::Arc;

use super::log::clean;
use super::manifest::{Manifest, Unfit};
use crate::audit::{Audit, Event, What};
use crate::capability::filesystem::Folders;
use crate::capability::http::Http;
use crate::capability::keyvalue::Shelf;
use crate::config::grants::{Environment, Grants};
use crate::policy::http::Patterns;
use crate::policy::{self, Effective, HttpGrant};

/// Longest path or system error in a sentence.
const QUOTED_BYTES_MAX: usize = 1_000;

/// What is granted to one guest. The default room is empty.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// Where uses and refusals are noted.
    pub audit: Audit,
    /// What is in force of its grants. Empty until the component has been read, which may declare less.
    pub grants: Effective,
    /// Where its HTTP requests may go; None: nowhere. Narrowed, when the component has been read, to what it declares.
    pub http: Option<Arc<Http>>,
    /// The folders that it finds; opened when it is loaded.
    pub folders: Folders,
    /// The variables that it finds. Filled with what is granted; what the component does not declare is taken out again.
    pub env: Environment,
    /// Where its state is saved. Whether it may save any is in the grants.
    pub state: Option<Shelf>,
}

impl Room {
    /// Makes the room ready for the component that this is the manifest of: cuts what is granted down to what it declares,
    /// and opens what can be opened now. Refuses a component that cannot do without something that was not granted.
    pub(crate) fn furnish(mut self, guest: &str, manifest: &Manifest, grants: &Grants) -> Result<Room, Unfit> {
        let wants = manifest.wants();
        self.grants = policy::effective(wants, grants);
        if let Some(lack) = policy::lack(guest, &manifest.imports, wants, &self.grants) {
            self.note(What::Refused, guest, lack.kind, &lack.value);
            return Err(Unfit { cause: lack.cause, remedy: lack.remedy });
        }
        self.http = self.http.take().map(|http| narrowed(&http, &self.grants.http)).transpose()?;
        self.env = self.env.only(&self.grants.env);
        let missing = |name: &str| self.env.value(name).is_none();
        if let Some(want) = wants.and_then(|wants| wants.env.iter().find(|want| want.required && missing(&want.name))) {
            self.note(What::Refused, guest, "env", &want.name);
            return Err(Unfit {
                cause: format!("requires the environment variable `{}` for guest `{guest}`, which is granted it and not set", want.name),
                remedy: "set it before the host starts".into(),
            });
        }
        self.folders = Folders::open(&self.grants.dirs).map_err(|(dir, error)| Unfit {
            cause: format!(
                "is granted the folder `{}` for guest `{guest}`, which cannot be opened ({error})",
                clean(&dir.host.display().to_string(), QUOTED_BYTES_MAX)
            ),
            remedy: format!("make that folder, or name another as `host` of `{}` in its grants", dir.guest),
        })?;
        // State is granted by some commands to whomever they start, so it says nothing of what the operator meant.
        for row in policy::table(wants, grants).iter().filter(|row| row.is_idle() && row.kind != "state") {
            tracing::warn!("guest `{guest}` is granted what its component does not declare, and so does not get it: {row}");
        }
        Ok(self)
    }

    /// Notes what is in force, once for each version: what a guest does with a folder or a variable that it has is not seen
    /// by the host, so having it is what the trail can tell.
    pub(crate) fn note_grants(&self, guest: &str) {
        let Effective { state, http, dirs, env } = &self.grants;
        if *state {
            self.note(What::Granted, guest, "state", "buckets");
        }
        if !http.is_empty() {
            http.granted.iter().for_each(|pattern| self.note(What::Granted, guest, "http", pattern));
        }
        dirs.iter().for_each(|dir| self.note(What::Granted, guest, "dirs", &dir.host.display().to_string()));
        env.iter().for_each(|name| self.note(What::Granted, guest, "env", name));
    }

    fn note(&self, what: What, guest: &str, subject: &str, value: &str) {
        self.audit.record(&Event { what, guest, subject, value, principal: None });
    }
}

/// What is granted, as far as the component declares it.
fn narrowed(http: &Http, grant: &HttpGrant) -> Result<Arc<Http>, Unfit> {
    let declared = grant.declared.as_deref().map(Patterns::parse).transpose().map_err(|error| Unfit {
        cause: format!("declares where it sends requests in a way that cannot be read ({})", clean(&error.to_string(), QUOTED_BYTES_MAX)),
        remedy: "correct its declaration, and build it again".into(),
    })?;
    Ok(Arc::new(http.within(declared)))
}

#[cfg(test)]
mod tests;
