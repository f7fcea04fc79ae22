//! The files of one folder as resources: listed, read, and completed, and never written.
//!
//! The operator says which folder it is by granting it at `/files`. The host keeps every path within it.

mod uri;

use std::fs;
use std::path::{Path, PathBuf};

use guesthouse::wit::{
    Body, Completions, Error, ReadOutcome, ReadResult, Reference, ResourceContents, ResourceEntry, ResourcePage, ResourceTemplate,
    TemplatePage,
};
use guesthouse::{Completion, Resources};

const TEMPLATE: &str = "files:///{+path}";
/// Most files that are listed, and how far below the folder they are looked for; what lies beyond can still be read.
const FILES_MAX: usize = 1_000;
const DEPTH_MAX: usize = 8;
/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most completions of one argument.
const COMPLETIONS_MAX: usize = 100;

struct Files {
    root: PathBuf,
}

#[guesthouse::server(title = "Files", export(resources, completion))]
impl Files {
    #[init]
    fn init() -> Files {
        Files { root: "/files".into() }
    }
}

impl Resources for Files {
    fn list_resources(&self, _: Option<&str>) -> Result<ResourcePage, Error> {
        let mut found = Vec::new();
        walk(&self.root, "", 0, &mut found);
        let entry = |(path, size): (String, u64)| ResourceEntry {
            uri: uri::of(&path),
            mime_type: uri::mime_type(&path).map(str::to_owned),
            size: Some(size),
            name: path,
            ..ResourceEntry::default()
        };
        Ok(ResourcePage { resources: found.into_iter().map(entry).collect(), ..ResourcePage::default() })
    }

    fn list_templates(&self, _: Option<&str>) -> Result<TemplatePage, Error> {
        let template = ResourceTemplate {
            uri_template: TEMPLATE.into(),
            name: "file".into(),
            title: Some("A file".into()),
            description: Some("Any file of the folder, by its path.".into()),
            ..ResourceTemplate::default()
        };
        Ok(TemplatePage { templates: vec![template], ..TemplatePage::default() })
    }

    fn read_resource(&self, asked: &str) -> Result<ReadOutcome, Error> {
        let not_found = || Error::NotFound(asked.to_owned());
        let path = uri::path(asked).ok_or_else(not_found)?;
        let file = self.root.join(&path);
        // A path that the host lets lead nowhere is one of a file that is not there.
        let data = fs::metadata(&file).ok().filter(fs::Metadata::is_file).ok_or_else(not_found)?;
        if data.len() > FILE_BYTES_MAX {
            return Err(Error::InvalidParams(format!("{path} has {} bytes, and up to {FILE_BYTES_MAX} are read.", data.len())));
        }
        let bytes = fs::read(&file).map_err(|_| not_found())?;
        let body = match String::from_utf8(bytes) {
            Ok(text) => Body::Text(text),
            Err(error) => Body::Blob(error.into_bytes()),
        };
        let contents = ResourceContents { uri: asked.to_owned(), mime_type: uri::mime_type(&path).map(str::to_owned), body, meta: None };
        Ok(ReadOutcome::Complete(ReadResult { contents: vec![contents], ..ReadResult::default() }))
    }
}

impl Completion for Files {
    fn complete(&self, reference: &Reference, argument: &str, value: &str, _: &[(String, String)]) -> Result<Completions, Error> {
        match reference {
            Reference::ResourceTemplate(template) if template == TEMPLATE && argument == "path" => Ok(self.completions(value)),
            Reference::ResourceTemplate(name) | Reference::Prompt(name) => Err(Error::NotFound(name.clone())),
        }
    }
}

impl Files {
    /// What is in the folder that was typed so far and begins with the rest; folders end with a slash, so that one can go on.
    fn completions(&self, typed: &str) -> Completions {
        let (folder, begun) = typed.rsplit_once('/').map_or(("", typed), |(folder, begun)| (folder, begun));
        let below = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut values: Vec<String> = entries(&self.root.join(folder))
            .into_iter()
            .filter(|(name, _)| name.starts_with(begun))
            .map(|(name, data)| format!("{below}{name}{}", if data.is_dir() { "/" } else { "" }))
            .collect();
        let total = values.len();
        values.truncate(COMPLETIONS_MAX);
        Completions { has_more: values.len() < total, total: u32::try_from(total).ok(), values }
    }
}

/// Names and kinds of what is in a folder, sorted. Hidden entries and links are left out; what cannot be read is empty.
fn entries(folder: &Path) -> Vec<(String, fs::Metadata)> {
    let Ok(list) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<(String, fs::Metadata)> = list
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok().filter(|name| !name.starts_with('.'))?;
            let data = entry.metadata().ok().filter(|data| data.is_dir() || data.is_file())?;
            Some((name, data))
        })
        .collect();
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

/// Collects files with their sizes, depth first.
fn walk(folder: &Path, below: &str, depth: usize, found: &mut Vec<(String, u64)>) {
    for (name, data) in entries(folder) {
        if found.len() == FILES_MAX {
            return;
        }
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if data.is_file() {
            found.push((path, data.len()));
        } else if depth < DEPTH_MAX {
            walk(&folder.join(&name), &path, depth + 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> (tempfile::TempDir, Files) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("notes/old")).unwrap();
        for (path, text) in [("a b.md", "# A"), ("notes/one.txt", "1"), ("notes/old/zero.bin", "\u{0}"), (".hidden", "x")] {
            fs::write(folder.path().join(path), text).unwrap();
        }
        fs::write(folder.path().join("raw"), [0xff]).unwrap();
        let files = Files { root: folder.path().to_owned() };
        (folder, files)
    }

    #[test]
    fn files_are_listed_and_read() {
        let (_folder, files) = files();
        let page = files.list_resources(None).unwrap();
        let uris: Vec<&str> = page.resources.iter().map(|entry| entry.uri.as_str()).collect();
        assert_eq!(uris, ["files:///a%20b.md", "files:///notes/old/zero.bin", "files:///notes/one.txt", "files:///raw"]);
        for (uri, text) in [
            ("files:///a%20b.md", Some("# A")),
            ("files:///notes/one.txt", Some("1")),
            ("files:///.hidden", Some("x")),
            ("files:///raw", None),
        ] {
            let Ok(ReadOutcome::Complete(result)) = files.read_resource(uri) else { panic!("{uri}") };
            match &result.contents[0].body {
                Body::Text(found) => assert_eq!(Some(found.as_str()), text),
                Body::Blob(bytes) => assert_eq!((bytes.as_slice(), text), (&[0xff][..], None)),
            }
        }
        for uri in ["files:///", "files:///notes", "files:///none", "file:///a", "files:////etc/passwd", "files:///%zz"] {
            assert!(matches!(files.read_resource(uri), Err(Error::NotFound(_))), "{uri}");
        }
    }

    #[test]
    fn a_file_that_is_too_large_is_refused() {
        let (folder, files) = files();
        fs::File::create(folder.path().join("large")).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(matches!(files.read_resource("files:///large"), Err(Error::InvalidParams(text)) if text.contains("1048577")));
    }

    #[test]
    fn paths_are_completed_folder_by_folder() {
        let (_folder, files) = files();
        for (typed, values) in [
            ("", vec!["a b.md", "notes/", "raw"]),
            ("no", vec!["notes/"]),
            ("notes/", vec!["notes/old/", "notes/one.txt"]),
            ("notes/on", vec!["notes/one.txt"]),
            ("none/x", vec![]),
        ] {
            let found = files.completions(typed);
            assert_eq!((found.values, found.has_more), (values.into_iter().map(str::to_owned).collect(), false), "{typed}");
        }
    }
}
