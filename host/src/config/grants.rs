//! What the operator grants a guest: `[guest.<name>.grants]` and `[guest.<name>.secrets]`. What is not named is not granted.

use super::GuestConfig;
use crate::policy::{dirs, env};
use anyhow::{Result, anyhow, bail};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most entries in one list of grants.
const GRANTS_MAX: usize = 256;
/// Longest pattern of HTTP requests.
const PATTERN_BYTES_MAX: usize = 4 << 10;
/// Longest value of an environment variable that a guest is given.
const VALUE_BYTES_MAX: usize = 64 << 10;

/// Table `[guest.<name>.grants]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grants {
    /// Its own buckets in the host's storage. Absent: the command decides (`run` and `up` grant it, `serve` does not).
    pub state: Option<bool>,
    /// Where it may send HTTP requests: `[METHOD ]SCHEME://HOST[:PORT]/PATH-PREFIX`, with `*` as the first label of a host.
    pub http: Vec<String>,
    /// Folders that it finds in its file system.
    pub dirs: Vec<DirGrant>,
    /// Names of environment variables of the host that it finds in its environment.
    pub env: Vec<String>,
}

/// A folder that a guest is given.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirGrant {
    /// The folder, relative to the configuration file.
    pub host: PathBuf,
    /// Where the guest finds it; an absolute path.
    pub guest: String,
    /// Whether the guest may change what is in it.
    #[serde(default)]
    pub write: bool,
}

impl Grants {
    /// Refuses what no guest could be granted.
    pub(super) fn check(&self, guest: &str) -> Result<()> {
        let table = format!("guest.{guest}.grants");
        for (key, count) in [("http", self.http.len()), ("dirs", self.dirs.len()), ("env", self.env.len())] {
            if count > GRANTS_MAX {
                bail!("`{table}.{key}` has {count} entries, and can have {GRANTS_MAX}");
            }
        }
        if let Some(pattern) = self.http.iter().find(|pattern| pattern.is_empty() || pattern.len() > PATTERN_BYTES_MAX) {
            bail!("`{table}.http` has a pattern of {} bytes, and each must have 1 to {PATTERN_BYTES_MAX}", pattern.len());
        }
        let mut paths = HashSet::new();
        for dir in &self.dirs {
            dirs::check_guest_path(&dir.guest).map_err(|problem| anyhow!("`{table}.dirs`: {problem}"))?;
            if dir.host.as_os_str().is_empty() {
                bail!("`{table}.dirs` names no `host` folder for `{}`", dir.guest);
            }
            if !paths.insert(&dir.guest) {
                bail!("`{table}.dirs` has two folders for `{}`", dir.guest);
            }
        }
        self.env.iter().try_for_each(|name| env::check_name(name).map_err(|problem| anyhow!("`{table}.env`: {problem}")))
    }

    /// Makes the folders' paths relative to the configuration's folder.
    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        for dir in &mut self.dirs {
            dir.host = folder.join(&dir.host);
        }
    }

    /// The values of the granted variables, as they are now. One that is not set is not there for the guest, either.
    #[expect(clippy::disallowed_methods, reason = "the configuration is the one reader of the environment")]
    pub fn environment(&self) -> Result<Environment> {
        let mut found = Vec::new();
        for name in &self.env {
            let Some(value) = std::env::var_os(name) else { continue };
            let Some(value) = value.into_string().ok().filter(|value| value.len() <= VALUE_BYTES_MAX) else {
                bail!(
                    "the environment variable `{name}` cannot be given to a guest: its value must be UTF-8 of at most {VALUE_BYTES_MAX} bytes"
                );
            };
            found.push((name.clone(), value));
        }
        Ok(Environment(found.into()))
    }
}

/// Environment variables with their values, which are never shown. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Environment(Arc<[(String, String)]>);

impl Environment {
    /// Names and values.
    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// The value of that variable.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Those of these names.
    pub(crate) fn only(&self, names: &[String]) -> Self {
        if self.0.iter().all(|(key, _)| names.contains(key)) {
            return self.clone();
        }
        Self(self.0.iter().filter(|(key, _)| names.contains(key)).cloned().collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl GuestConfig {
    /// Whether something that the table before gave is not in this one: a grant, a secret, a tool that is served.
    pub fn takes_back(&self, before: &GuestConfig) -> bool {
        let (new, old) = (&self.grants, &before.grants);
        let state = old.state == Some(true) && new.state != Some(true);
        let http = old.http.iter().any(|pattern| !new.http.contains(pattern));
        let dirs = old
            .dirs
            .iter()
            .any(|dir| !new.dirs.iter().any(|other| other == dir || (other.write && DirGrant { write: true, ..dir.clone() } == *other)));
        let env = old.env.iter().any(|name| !new.env.contains(name));
        let secrets = before.secrets.iter().any(|(origin, secret)| self.secrets.get(origin) != Some(secret));
        let tools = match (&before.tools, &self.tools) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(old), Some(new)) => old.iter().any(|pattern| !new.contains(pattern)),
        };
        state || http || dirs || env || secrets || tools
    }
}

/// Table `[guest.<name>.secrets]`: what the host adds to requests, by origin.
pub type Secrets = IndexMap<String, Secret>;

/// A header that the host adds to a guest's requests to one origin. Its value is in the environment or in a file, never here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// Name of the header.
    pub header: String,
    /// The environment variable that holds the value.
    pub env: Option<String>,
    /// The file that holds the value, relative to the configuration file; white space around it is dropped.
    pub file: Option<PathBuf>,
    /// What precedes the value in the header, such as `Bearer `.
    #[serde(default)]
    pub prefix: String,
    /// Whether it may go to an `http://` origin on another machine, where everybody on the way can read it.
    #[serde(default)]
    pub insecure: bool,
}

/// How long an instance of a guest lives; the shortest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum InstancePolicy {
    /// For one callback.
    #[default]
    Call,
    /// For one session of the handshake era; requests of the modern era get a fresh one each.
    Session,
    /// As long as the version is served; callbacks run one at a time.
    Shared,
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn what_cannot_be_granted_is_refused_with_its_key() {
        let many = format!("env = [{}]", (0..257).map(|number| format!("\"V{number}\"")).collect::<Vec<_>>().join(","));
        for (grants, part) in [
            ("sate = true", "sate"),
            ("http = [\"\"]", "`guest.a.grants.http`"),
            ("dirs = [{ host = \"x\", guest = \"data\" }]", "`guest.a.grants.dirs`"),
            ("dirs = [{ host = \"x\", guest = \"/data/\" }]", "`guest.a.grants.dirs`"),
            ("dirs = [{ host = \"\", guest = \"/data\" }]", "names no `host`"),
            ("dirs = [{ host = \"x\", guest = \"/d\" }, { host = \"y\", guest = \"/d\" }]", "two folders for `/d`"),
            ("dirs = [{ host = \"x\", guest = \"/d\", wriet = true }]", "wriet"),
            ("env = [\"A=B\"]", "`guest.a.grants.env`"),
            (many.as_str(), "257 entries, and can have 256"),
        ] {
            let error = format!("{:#}", Config::parse(&format!("[guest.a.grants]\n{grants}")).unwrap_err());
            assert!(error.contains(part), "{grants}: {error}");
        }
    }

    #[test]
    fn folders_are_relative_to_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("guesthouse.toml");
        let text = "[guest.a.grants]\ndirs = [{ host = \"data\", guest = \"/d\" }, { host = \"/srv\", guest = \"/s\" }]";
        std::fs::write(&file, text).unwrap();
        let config = Config::read(&file).unwrap();
        let hosts: Vec<&Path> = config.guest["a"].grants.dirs.iter().map(|dir| dir.host.as_path()).collect();
        assert_eq!(hosts, [folder.path().join("data").as_path(), Path::new("/srv")]);
    }

    #[test]
    fn values_are_read_by_name_and_never_shown() {
        let grants = Grants { env: vec!["PATH".into(), "GUESTHOUSE_TEST_NO_SUCH_VARIABLE".into()], ..Grants::default() };
        let environment = grants.environment().unwrap();
        let path = environment.value("PATH").unwrap();
        assert!(!path.is_empty() && environment.pairs().len() == 1, "{environment:?}");
        assert_eq!(format!("{environment:?}"), "[\"PATH\"]");
        assert!(environment.only(&[]).pairs().is_empty());
    }
}
