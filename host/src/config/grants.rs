//! What the operator grants a guest: `[guest.<name>.grants]` and `[guest.<name>.secrets]`. What is not named is not granted.

use indexmap::IndexMap;
use serde::Deserialize;
use std::path::PathBuf;

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
}

/// How long an instance of a guest lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
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
