//! Which guests a folder holds, and what they are called.

use crate::build::Project;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How far below the given folder guests are looked for.
const DEPTH_MAX: usize = 3;
/// Longest name of a guest.
const NAME_LEN_MAX: usize = 32;
/// Most guests of one folder.
const GUESTS_MAX: usize = 1_000;

/// Where a guest's component comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A component that is there already.
    File(PathBuf),
    /// A project that is built first.
    Project(Project),
}

impl Source {
    /// The file or folder that stands for this guest in messages.
    pub fn path(&self) -> &Path {
        match self {
            Source::File(path) => path,
            Source::Project(project) => &project.dir,
        }
    }
}

/// What a folder holds.
#[derive(Debug, Default)]
pub struct Found {
    /// The guests, by name.
    pub guests: BTreeMap<String, Source>,
    /// What looks like a guest, or may hold some, and cannot be served: each a sentence with the path and the reason.
    pub skipped: Vec<String>,
}

/// Whether `name` can be a guest's name: `[a-z][a-z0-9-]{0,31}`.
pub fn is_guest_name(name: &str) -> bool {
    name.len() <= NAME_LEN_MAX
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Turns a file or folder name into a guest's name: lower case, every other run of characters a hyphen.
pub fn guest_name_from(text: &str) -> Option<String> {
    let mut name = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let name: String = name.trim_start_matches(|c: char| !c.is_ascii_lowercase()).chars().take(NAME_LEN_MAX).collect();
    let name = name.trim_end_matches('-').to_owned();
    is_guest_name(&name).then_some(name)
}

/// Finds the guests at `path`: one component, one project, or a folder with any number of them, up to three levels deep.
///
/// A guest below a folder is called after its path below it, joined by hyphens (`rust-textkit`); a component after its
/// stem. The search stops at a project file and skips dot-folders, `target` and `node_modules`. What is wrong with one
/// guest is no reason not to serve the others: it is an error only at `path` itself, and if nothing else is found.
pub fn discover(path: &Path) -> Result<Found> {
    let path = path.canonicalize().with_context(|| format!("cannot open `{}`", path.display()))?;
    let mut found = Found::default();
    if path.is_file() {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = name_of(&[stem], &path)?;
        found.insert(name, Source::File(path))?;
        return Ok(found);
    }
    if let Some(project) = Project::detect(&path)? {
        let name = name_of(&[project.name()], &path)?;
        found.insert(name, Source::Project(project))?;
        return Ok(found);
    }
    let entries = entries(&path)?;
    found.search(entries, &mut Vec::new())?;
    if found.guests.is_empty() && !found.skipped.is_empty() {
        bail!("nothing in `{}` can be served: {}", path.display(), found.skipped.join("; "));
    }
    if found.guests.is_empty() {
        bail!(
            "`{}` holds no guest: no .wasm file, and no folder with a Cargo.toml, go.mod or package.json, at most {DEPTH_MAX} levels deep",
            path.display()
        );
    }
    Ok(found)
}

/// What is in a folder, in the order of names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = || format!("cannot read the folder `{}`", folder.display());
    let entries = std::fs::read_dir(folder).with_context(unreadable)?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>().with_context(unreadable)?;
    paths.sort();
    Ok(paths)
}

/// The name of the guest at these parts of a path.
fn name_of(parts: &[String], path: &Path) -> Result<String> {
    let text = parts.join("-");
    guest_name_from(&text)
        .ok_or_else(|| anyhow!("no guest name can be made of `{text}` (`{}`); rename it so that it begins with a letter", path.display()))
}

impl Found {
    /// Looks through a folder's entries; `below` leads to them from where the search began.
    fn search(&mut self, entries: Vec<PathBuf>, below: &mut Vec<String>) -> Result<()> {
        for path in entries {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || name == "target" || name == "node_modules" {
                continue;
            }
            if path.is_dir() {
                below.push(name);
                let searched = self.search_folder(path, below);
                below.pop();
                searched?;
            } else if path.extension().is_some_and(|extension| extension == "wasm") {
                below.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
                let named = name_of(below, &path);
                below.pop();
                if let Some(name) = self.or_skip(named) {
                    self.insert(name, Source::File(path))?;
                }
            }
        }
        Ok(())
    }

    fn search_folder(&mut self, path: PathBuf, below: &mut Vec<String>) -> Result<()> {
        let detected = Project::detect(&path);
        match self.or_skip(detected) {
            None => {}
            Some(Some(project)) => {
                if let Some(name) = self.or_skip(name_of(below, &path)) {
                    self.insert(name, Source::Project(project))?;
                }
            }
            Some(None) if below.len() < DEPTH_MAX => {
                if let Some(entries) = self.or_skip(entries(&path)) {
                    self.search(entries, below)?;
                }
            }
            Some(None) => {}
        }
        Ok(())
    }

    /// What was found, or nothing and one more reason.
    fn or_skip<T>(&mut self, found: Result<T>) -> Option<T> {
        found.map_err(|error| self.skipped.push(format!("{error:#}"))).ok()
    }

    /// Adds a guest. Two of one name are an error: whichever was left out, the other would answer in its place.
    fn insert(&mut self, name: String, source: Source) -> Result<()> {
        if let Some(other) = self.guests.get(&name) {
            bail!("`{}` and `{}` would both be called `{name}`; rename one of them", other.path().display(), source.path().display());
        }
        if self.guests.len() >= GUESTS_MAX {
            bail!("more than {GUESTS_MAX} guests were found, up to `{}`; serve a folder with fewer", source.path().display());
        }
        self.guests.insert(name, source);
        Ok(())
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        root
    }

    #[test]
    fn guests_are_named_after_their_paths() {
        let root = tree(&[
            "rust/textkit/Cargo.toml",
            "rust/textkit/nested/Cargo.toml",
            "rust/target/x/Cargo.toml",
            "go/textkit/go.mod",
            "js/textkit/package.json",
            "js/node_modules/x/package.json",
            ".hidden/x/go.mod",
            "Weather.Report.wasm",
            "a/b/c/d/go.mod",
            "README.md",
        ]);
        let names: Vec<String> = discover(root.path()).unwrap().guests.into_keys().collect();
        assert_eq!(names, ["go-textkit", "js-textkit", "rust-textkit", "weather-report"]);
    }

    #[test]
    fn a_project_and_a_file_are_guests_by_themselves() {
        let root = tree(&["hello/Cargo.toml", "x.wasm"]);
        let project = discover(&root.path().join("hello")).unwrap();
        assert!(matches!(project.guests.get("hello"), Some(Source::Project(_))), "{project:?}");
        let file = discover(&root.path().join("x.wasm")).unwrap();
        assert!(matches!(file.guests.get("x"), Some(Source::File(_))), "{file:?}");
    }

    #[test]
    fn what_cannot_be_served_is_said() {
        for (files, part) in [
            (&["README.md"] as &[&str], "holds no guest"),
            (&["a-b.wasm", "a_b.wasm"], "would both be called `a-b`"),
            (&["123.wasm"], "begins with a letter"),
            (&["both/go.mod", "both/Cargo.toml"], "unclear how to build"),
            (&["go.mod", "Cargo.toml", "other/go.mod"], "unclear how to build"),
        ] {
            let root = tree(files);
            let error = format!("{:#}", discover(root.path()).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
        assert!(format!("{:#}", discover(Path::new("no/such/folder")).unwrap_err()).contains("no/such/folder"));
    }

    #[test]
    fn one_bad_guest_is_skipped_with_its_path_and_reason_and_the_others_are_found() {
        let root = tree(&[
            "both/Cargo.toml",
            "both/package.json",
            "deep/both/go.mod",
            "deep/both/Cargo.toml",
            "123.wasm",
            "9/go.mod",
            "good.wasm",
        ]);
        let found = discover(root.path()).unwrap();
        assert_eq!(found.guests.into_keys().collect::<Vec<_>>(), ["good"]);
        let said = found.skipped.join("\n");
        for part in ["/both holds both Cargo.toml and package.json", "/deep/both holds both Cargo.toml and go.mod", "123.wasm", "`9`"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(found.skipped.len(), 4);
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_skipped() {
        let root = tree(&["good.wasm"]);
        let mut found = Found::default();
        // As if it had been removed, or closed, after its name was read.
        let gone = root.path().join("gone");
        assert!(found.search_folder(gone.clone(), &mut vec!["gone".into()]).is_ok());
        found.search(vec![root.path().join("good.wasm")], &mut Vec::new()).unwrap();
        assert!(found.guests.contains_key("good"));
        assert!(matches!(found.skipped.as_slice(), [said] if said.contains(&gone.display().to_string())), "{:?}", found.skipped);
    }

    #[test]
    fn names() {
        for (text, name) in [
            ("rust-textkit", Some("rust-textkit")),
            ("My_Tool", Some("my-tool")),
            ("--x--", Some("x")),
            ("9lives", Some("lives")),
            ("42", None),
            ("", None),
        ] {
            assert_eq!(guest_name_from(text).as_deref(), name, "{text}");
        }
        assert!(!is_guest_name("a_b") && !is_guest_name("") && !is_guest_name(&"a".repeat(33)));
    }
}
