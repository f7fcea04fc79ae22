//! What a component declares: who it is and what it wants, as its build wrote it into the file.
//!
//! Authors write the same words in their project, so one type reads both. A want is `true` or a text where it is
//! optional, and a table with `required = true` where the guest is of no use without it.

use std::collections::HashSet;
use std::hash::Hash;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::http::Pattern;
use super::{dirs, env};
use crate::config::grants::InstancePolicy;
use crate::guest::clean;

/// Name of the custom section that holds the declaration.
pub(crate) const SECTION: &str = "guesthouse:manifest";
/// Version of what is in the section.
pub(crate) const FORMAT: u32 = 1;
/// Largest section that is read.
pub(crate) const SECTION_BYTES_MAX: usize = 64 << 10;
/// Most wants of one kind.
const WANTS_MAX: usize = 64;
/// Longest text in a declaration.
const TEXT_BYTES_MAX: usize = 1 << 10;

/// A component's own words about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    format: u32,
    /// What its author calls it.
    pub name: String,
    /// Its version, in its author's counting.
    pub version: String,
    /// What it wants to reach. Absent where its author says nothing of it: then it gets what is granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wants: Option<Wants>,
}

/// What a guest wants to be granted. It gets nothing beyond that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wants {
    /// Buckets of its own in the host's storage.
    #[serde(deserialize_with = "state", skip_serializing_if = "Option::is_none")]
    pub state: Option<StateWant>,
    /// Where it sends HTTP requests.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpWant>,
    /// Folders that it looks for in its file system.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dirs: Vec<DirWant>,
    /// Environment variables that it reads.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvWant>,
    /// How long it would like its instances to live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstancePolicy>,
}

/// The wish for state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateWant {
    /// Whether the guest is refused without it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
}

/// The wish to send requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpWant {
    /// Where to, written as a grant is.
    pub pattern: String,
    /// Whether the guest is refused without it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
}

/// The wish for a folder.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirWant {
    /// Where it looks for it; an absolute path.
    pub guest: String,
    /// Whether it changes what is in it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub write: bool,
    /// Whether the guest is refused without it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
}

/// The wish for an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvWant {
    /// Its name.
    pub name: String,
    /// Whether the guest is refused without it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Declaration {
    /// A declaration of this build's format; the sentence says what is wrong with it.
    pub fn new(name: String, version: String, wants: Option<Wants>) -> Result<Self, String> {
        let declaration = Self { format: FORMAT, name, version, wants };
        declaration.check()?;
        Ok(declaration)
    }

    /// Reads the contents of the section.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        if bytes.len() > SECTION_BYTES_MAX {
            return Err(format!("it has {} bytes, and can have {SECTION_BYTES_MAX}", bytes.len()));
        }
        let head: Head = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if head.format != FORMAT {
            return Err(format!("it has format {}, and this host reads format {FORMAT}", head.format));
        }
        let declaration: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        declaration.check()?;
        Ok(declaration)
    }

    /// The contents of the section.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let bytes = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        if bytes.len() > SECTION_BYTES_MAX {
            return Err(format!("it takes {} bytes, and can take {SECTION_BYTES_MAX}", bytes.len()));
        }
        Ok(bytes)
    }

    fn check(&self) -> Result<(), String> {
        text("name", &self.name)?;
        text("version", &self.version)?;
        self.wants.as_ref().map_or(Ok(()), Wants::check)
    }
}

impl Wants {
    /// Refuses what no grant could answer. All texts are fit to be printed afterwards.
    pub fn check(&self) -> Result<(), String> {
        each("http", &self.http, |want| &want.pattern, |pattern| pattern.parse::<Pattern>().map(drop).map_err(|error| error.to_string()))?;
        each("dirs", &self.dirs, |want| &want.guest, dirs::check_guest_path)?;
        each("env", &self.env, |want| &want.name, env::check_name)
    }
}

/// Checks all wants of one kind, and that none is there twice.
fn each<T>(key: &str, wants: &[T], of: impl Fn(&T) -> &str, check: impl Fn(&str) -> Result<(), String>) -> Result<(), String> {
    if wants.len() > WANTS_MAX {
        return Err(format!("`wants.{key}` has {} entries, and can have {WANTS_MAX}", wants.len()));
    }
    let mut seen = HashSet::new();
    for want in wants {
        let value = of(want);
        text(&format!("wants.{key}"), value)?;
        check(value).map_err(|problem| format!("`wants.{key}`: {problem}"))?;
        if !seen.insert(value) {
            return Err(format!("`wants.{key}` names `{value}` twice"));
        }
    }
    Ok(())
}

/// A text that can be shown to an operator as it is.
fn text(key: &str, value: &str) -> Result<(), String> {
    if value.is_empty() || value.len() > TEXT_BYTES_MAX || clean(value, TEXT_BYTES_MAX) != value {
        return Err(format!("`{key}` must have 1 to {TEXT_BYTES_MAX} bytes, none of them a control character"));
    }
    Ok(())
}

/// Something that can be written as a text alone.
trait Short: DeserializeOwned {
    /// What is expected, for errors.
    const EXPECTED: &'static str;
    fn short(text: &str) -> Self;
}

impl Short for HttpWant {
    const EXPECTED: &'static str = "a pattern, or a table with `pattern` and `required`";
    fn short(text: &str) -> Self {
        HttpWant { pattern: text.to_owned(), required: false }
    }
}

impl Short for EnvWant {
    const EXPECTED: &'static str = "a name, or a table with `name` and `required`";
    fn short(text: &str) -> Self {
        EnvWant { name: text.to_owned(), required: false }
    }
}

/// Reads a list whose entries have a short form.
fn list<'de, D: Deserializer<'de>, T: Short>(source: D) -> Result<Vec<T>, D::Error> {
    Vec::<Either<T>>::deserialize(source).map(|entries| entries.into_iter().map(|Either(entry)| entry).collect())
}

struct Either<T>(T);

impl<'de, T: Short> Deserialize<'de> for Either<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(EitherVisitor(PhantomData)).map(Self)
    }
}

struct EitherVisitor<T>(PhantomData<T>);

impl<'de, T: Short> Visitor<'de> for EitherVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        Ok(T::short(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// `true`, `false`, or a table.
fn state<'de, D: Deserializer<'de>>(source: D) -> Result<Option<StateWant>, D::Error> {
    struct StateVisitor;
    impl<'de> Visitor<'de> for StateVisitor {
        type Value = Option<StateWant>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("true, false, or a table with `required`")
        }

        fn visit_bool<E: de::Error>(self, wanted: bool) -> Result<Self::Value, E> {
            Ok(wanted.then(StateWant::default))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            StateWant::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }
    source.deserialize_any(StateVisitor)
}

#[cfg(test)]
mod tests;
