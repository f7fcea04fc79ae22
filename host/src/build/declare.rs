//! Reads what a project says about its guest, and writes it into the component as a custom section.
//!
//! An author says it where the language keeps such things (`Cargo.toml`, `package.json`), or in a `guest.toml` beside the
//! project file, which Go projects need and the others may have.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use serde::Deserialize;
use wasm_encoder::{CustomSection, Encode as _, Section as _};

use super::Project;
use crate::policy::declared::SECTION;
use crate::policy::{Declaration, Wants};

/// The file for authors whose language has no place for it.
const FILE: &str = "guest.toml";
/// The version of a guest that nobody has counted yet.
const NO_VERSION: &str = "0.0.0";

/// What a project file says about its guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct About {
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) wants: Option<Wants>,
}

/// What `guest.toml` can say.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GuestFile {
    name: Option<String>,
    version: Option<String>,
    wants: Option<Wants>,
}

/// Puts together what the project file and `guest.toml` say. `place` is where the project file says it, for errors.
pub(super) fn declaration(project: &Project, about: About, place: &str) -> anyhow::Result<Declaration> {
    let path = project.dir.join(FILE);
    let file = read(&path)?;
    if file.wants.is_some() && about.wants.is_some() {
        bail!("both {} and {place} have `wants`; keep one of them", path.display());
    }
    let place = if file.wants.is_some() { path.display().to_string() } else { place.to_owned() };
    let name = file.name.or(about.name).unwrap_or_else(|| project.name());
    let version = file.version.or(about.version).unwrap_or_else(|| NO_VERSION.into());
    Declaration::new(name, version, file.wants.or(about.wants)).map_err(|problem| anyhow!("{place}: {problem}"))
}

fn read(path: &Path) -> anyhow::Result<GuestFile> {
    match std::fs::read_to_string(path) {
        Ok(text) => toml::from_str(&text).with_context(|| path.display().to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(GuestFile::default()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Where a project file of that name keeps it, for errors.
pub(super) fn place(file: PathBuf, key: &str) -> String {
    format!("{}: {key}", file.display())
}

/// Adds the section to a component.
pub(super) fn write(component: &mut Vec<u8>, declaration: &Declaration) -> anyhow::Result<()> {
    let data = declaration.to_bytes().map_err(|problem| anyhow!("the declaration cannot be written: {problem}"))?;
    let section = CustomSection { name: Cow::Borrowed(SECTION), data: Cow::Owned(data) };
    component.push(section.id());
    section.encode(component);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Adapter, Kind, encode};
    use super::*;

    const PLACE: &str = "Cargo.toml: [package.metadata.guesthouse]";

    fn project(guest_toml: Option<&str>) -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("notes");
        std::fs::create_dir(&dir).unwrap();
        if let Some(text) = guest_toml {
            std::fs::write(dir.join(FILE), text).unwrap();
        }
        let project = Project { dir, kind: Kind::Go };
        (folder, project)
    }

    fn about(wants: Option<&str>) -> About {
        About { name: Some("n".into()), version: Some("1.2.3".into()), wants: wants.map(|text| toml::from_str(text).unwrap()) }
    }

    #[test]
    fn both_places_are_read() {
        let (_folder, bare) = project(None);
        let plain = declaration(&bare, About::default(), PLACE).unwrap();
        assert_eq!((plain.name.as_str(), plain.version.as_str(), plain.wants), ("notes", "0.0.0", None));
        let said = declaration(&bare, about(Some("state = true")), PLACE).unwrap();
        assert_eq!((said.name.as_str(), said.version.as_str()), ("n", "1.2.3"));
        assert!(said.wants.unwrap().state.is_some());

        let (_folder, with) = project(Some("name = \"other\"\n[wants]\nenv = [\"TZ\"]"));
        let said = declaration(&with, about(None), PLACE).unwrap();
        assert_eq!((said.name.as_str(), said.version.as_str()), ("other", "1.2.3"));
        assert_eq!(said.wants.unwrap().env.len(), 1);
    }

    #[test]
    fn what_is_wrong_names_file_and_key() {
        for (guest_toml, wants, parts) in [
            (Some("[wnats]\n"), None, ["guest.toml", "wnats"]),
            (Some("[wants]\nsatte = true"), None, ["guest.toml", "satte"]),
            (Some("[wants]\nenv = [\"A=B\"]"), None, ["guest.toml", "`wants.env`"]),
            (Some("[wants]\n"), Some("state = true"), ["guest.toml", PLACE]),
            (None, Some("dirs = [{ guest = \"data\" }]"), [PLACE, "`wants.dirs`"]),
            (Some("name = \"\""), None, [PLACE, "`name`"]),
        ] {
            let (_folder, project) = project(guest_toml);
            let error = format!("{:#}", declaration(&project, about(wants), PLACE).unwrap_err());
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }

    #[test]
    fn a_component_with_the_section_is_valid_and_carries_it() {
        let mut component = encode(b"\0asm\x01\0\0\0", Adapter::None).unwrap();
        let declaration = Declaration::new("n".into(), "1".into(), Some(toml::from_str("state = true").unwrap())).unwrap();
        write(&mut component, &declaration).unwrap();
        wasmparser::Validator::new().validate_all(&component).unwrap();
        let found = wasmparser::Parser::new(0).parse_all(&component).find_map(|payload| match payload.unwrap() {
            wasmparser::Payload::CustomSection(section) if section.name() == SECTION => Some(Declaration::parse(section.data()).unwrap()),
            _ => None,
        });
        assert_eq!(found, Some(declaration));
    }
}
