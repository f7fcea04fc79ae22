//! Which guests a folder holds, and what they are called.

use crate::build::Project;
use anyhow::{Context, Result, bail};
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
/// stem. The search stops at a project file and skips dot-folders, `target` and `node_modules`.
pub fn discover(path: &Path) -> Result<BTreeMap<String, Source>> {
    let path = path.canonicalize().with_context(|| format!("cannot open `{}`", path.display()))?;
    let mut found = BTreeMap::new();
    if path.is_file() {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        insert(&mut found, &[stem], Source::File(path))?;
        return Ok(found);
    }
    if let Some(project) = Project::detect(&path)? {
        insert(&mut found, &[project.name()], Source::Project(project))?;
        return Ok(found);
    }
    search(&path, &mut Vec::new(), &mut found)?;
    if found.is_empty() {
        bail!(
            "`{}` holds no guest: no .wasm file, and no folder with a Cargo.toml, go.mod or package.json, at most {DEPTH_MAX} levels deep",
            path.display()
        );
    }
    Ok(found)
}

fn search(folder: &Path, below: &mut Vec<String>, found: &mut BTreeMap<String, Source>) -> Result<()> {
    let unreadable = || format!("cannot read the folder `{}`", folder.display());
    for entry in std::fs::read_dir(folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" || name == "node_modules" {
            continue;
        }
        if path.is_dir() {
            below.push(name);
            match Project::detect(&path)? {
                Some(project) => insert(found, below, Source::Project(project))?,
                None if below.len() < DEPTH_MAX => search(&path, below, found)?,
                None => {}
            }
            below.pop();
        } else if path.extension().is_some_and(|extension| extension == "wasm") {
            below.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
            insert(found, below, Source::File(path))?;
            below.pop();
        }
    }
    Ok(())
}

fn insert(found: &mut BTreeMap<String, Source>, parts: &[String], source: Source) -> Result<()> {
    let text = parts.join("-");
    let Some(name) = guest_name_from(&text) else {
        bail!("no guest name can be made of `{text}` (`{}`); rename it so that it begins with a letter", source.path().display());
    };
    if let Some(other) = found.get(&name) {
        bail!("`{}` and `{}` would both be called `{name}`; rename one of them", other.path().display(), source.path().display());
    }
    if found.len() >= GUESTS_MAX {
        bail!("more than {GUESTS_MAX} guests were found, up to `{}`; serve a folder with fewer", source.path().display());
    }
    found.insert(name, source);
    Ok(())
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
        let names: Vec<String> = discover(root.path()).unwrap().into_keys().collect();
        assert_eq!(names, ["go-textkit", "js-textkit", "rust-textkit", "weather-report"]);
    }

    #[test]
    fn a_project_and_a_file_are_guests_by_themselves() {
        let root = tree(&["hello/Cargo.toml", "x.wasm"]);
        let project = discover(&root.path().join("hello")).unwrap();
        assert!(matches!(project.get("hello"), Some(Source::Project(_))), "{project:?}");
        let file = discover(&root.path().join("x.wasm")).unwrap();
        assert!(matches!(file.get("x"), Some(Source::File(_))), "{file:?}");
    }

    #[test]
    fn what_cannot_be_served_is_said() {
        for (files, part) in [
            (&["README.md"] as &[&str], "holds no guest"),
            (&["a-b.wasm", "a_b.wasm"], "would both be called `a-b`"),
            (&["123.wasm"], "begins with a letter"),
            (&["both/go.mod", "both/Cargo.toml"], "unclear how to build"),
        ] {
            let root = tree(files);
            let error = format!("{:#}", discover(root.path()).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
        assert!(format!("{:#}", discover(Path::new("no/such/folder")).unwrap_err()).contains("no/such/folder"));
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
