//! Changes of `guesthouse.toml` by commands: what people wrote stays as it is, and a file is replaced in one step.

use super::Config;
use crate::policy::Wants;
use crate::policy::lack::dir_entry;
use anyhow::{Context, Result, anyhow, bail};
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use toml::Value;
use toml_edit::{DocumentMut, Item, TomlError};

/// The text of the file, and the configuration that it is; both empty where there is no file.
pub fn read(file: &Path) -> Result<(String, Config)> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read the configuration `{}`", file.display())),
    };
    let config = Config::parse(&text).with_context(|| format!("in `{}`", file.display()))?;
    Ok((text, config))
}

/// A guest's table as text: granted is all that it wants and that needs no more to be said; what does is a comment.
/// `http_unsaid`: it sends requests, and does not say where to.
pub fn guest_table(name: &str, component: &str, wants: &Wants, http_unsaid: bool) -> String {
    let mut text = format!("[guest.{name}]\nfile = {}\n", Value::from(component));
    // Writing to a string cannot fail.
    if let Some(Ok(instance)) = wants.instance.map(Value::try_from) {
        let _ = writeln!(text, "instance = {instance}");
    }
    let _ = writeln!(text, "\n[guest.{name}.grants]");
    if !wants.dirs.is_empty() {
        text.push_str("# Name a folder of this machine for each, and take the marks of the comment away:\n# dirs = [\n");
        for want in &wants.dirs {
            let _ = writeln!(text, "#   {},", dir_entry(&want.guest, want.write));
        }
        text.push_str("# ]\n");
    }
    if http_unsaid {
        text.push_str("# Say where it may send requests to, and take the mark of the comment away:\n# http = [\"https://HOST/*\"]\n");
    }
    for (key, values) in [
        ("http", wants.http.iter().map(|want| want.pattern.as_str()).collect::<Vec<_>>()),
        ("env", wants.env.iter().map(|want| want.name.as_str()).collect()),
    ] {
        if !values.is_empty() {
            let _ = writeln!(text, "{key} = {}", Value::from(values));
        }
    }
    // Said even where it is refused, so that the comments above belong to a key, and go with the table.
    let _ = writeln!(text, "state = {}", wants.state.is_some());
    text
}

/// The text with a guest's table after what is there.
pub fn with_guest(text: &str, name: &str, table: &str) -> Result<String> {
    let gap = match text {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let text = format!("{text}{gap}{table}");
    let config = Config::parse(&text).context("a table for the guest cannot be added at the end of the file")?;
    if !config.guest.contains_key(name) {
        bail!("a table for the guest cannot be added at the end of the file");
    }
    Ok(text)
}

/// The text without a guest's table and all that is in it.
pub fn without_guest(text: &str, name: &str) -> Result<String> {
    let mut document: DocumentMut = text.parse().map_err(|error: TomlError| anyhow!("the file is not TOML: {}", error.message()))?;
    let guests = document.get_mut("guest").and_then(Item::as_table_like_mut);
    if guests.and_then(|guests| guests.remove(name)).is_none() {
        bail!("there is no guest called `{name}`");
    }
    let text = document.to_string();
    Config::parse(&text).context("without that guest the configuration would not be valid")?;
    Ok(text)
}

/// Replaces the file in one step, or makes it. A link stays one, and what may be done with the file stays as it was.
pub fn write(file: &Path, text: &str) -> Result<()> {
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_owned);
    let replace = || -> std::io::Result<()> {
        let mut fresh = tempfile::NamedTempFile::new_in(&folder)?;
        fresh.write_all(text.as_bytes())?;
        let permissions = match std::fs::metadata(&target) {
            Ok(data) => data.permissions(),
            Err(_) => std::os::unix::fs::PermissionsExt::from_mode(MODE_OF_NEW),
        };
        fresh.as_file().set_permissions(permissions)?;
        fresh.as_file().sync_all()?;
        fresh.persist(&target)?;
        Ok(())
    };
    replace().with_context(|| format!("cannot write the configuration `{}`", file.display()))
}

/// A new file can hold keys later, so it is its owner's alone.
const MODE_OF_NEW: u32 = 0o600;

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "state = { required = true }\nhttp = [\"https://a.example/*\"]\nenv = [\"TZ\"]\ninstance = \"session\"\n\
                       dirs = [{ guest = \"/data\", write = true }, { guest = \"/in\" }]";
    const BEFORE: &str = "# mine\n[server]\nlisten = \"127.0.0.1:1\" # here\n\n# about b\n[guest.b]\nfile = 'b.wasm'\n";

    #[test]
    fn a_guest_is_added_and_taken_out_and_the_rest_stays_to_the_letter() {
        let table = guest_table("a", "a \"b\".wasm", &toml::from_str(ALL).unwrap(), false);
        for before in ["", BEFORE, BEFORE.trim_end()] {
            let added = with_guest(before, "a", &table).unwrap();
            assert!(added.starts_with(before));
            let guest = &Config::parse(&added).unwrap().guest["a"];
            assert_eq!(guest.file.as_deref(), Some(Path::new("a \"b\".wasm")));
            assert_eq!(guest.instance, crate::config::grants::InstancePolicy::Session);
            assert_eq!((guest.grants.state, guest.grants.http.len(), guest.grants.env.len()), (Some(true), 1, 1));
            assert!(guest.grants.dirs.is_empty() && added.contains("{ host = \"FOLDER\", guest = \"/data\", write = true },"));
            assert_eq!(without_guest(&added, "a").unwrap().trim_end(), before.trim_end());
        }
        let with_another =
            with_guest(&with_guest(BEFORE, "a", &table).unwrap(), "c", &guest_table("c", "c.wasm", &Wants::default(), true)).unwrap();
        let without = without_guest(&with_another, "a").unwrap();
        assert!(without.starts_with(BEFORE) && without.contains("[guest.c]") && !without.contains("FOLDER"), "{without}");
        assert!(!without_guest(BEFORE, "b").unwrap().contains("about b"));
    }

    #[test]
    fn the_comments_for_folders_become_grants_when_their_marks_are_removed() {
        let table = guest_table("a", "a.wasm", &toml::from_str(ALL).unwrap(), false);
        let filled: String = table
            .lines()
            .filter(|line| !line.starts_with("# Name"))
            .map(|line| format!("{}\n", line.strip_prefix("# ").or(line.strip_prefix('#')).unwrap_or(line)))
            .collect();
        let dirs = &Config::parse(&filled).unwrap().guest["a"].grants.dirs;
        assert_eq!(dirs.iter().map(|dir| (dir.guest.as_str(), dir.write)).collect::<Vec<_>>(), [("/data", true), ("/in", false)]);
    }

    #[test]
    fn what_cannot_be_edited_is_left_alone() {
        let table = guest_table("a", "a.wasm", &Wants::default(), false);
        assert!(with_guest("guest = { b = { file = \"b.wasm\" } }", "a", &table).is_err());
        assert!(without_guest(BEFORE, "a").unwrap_err().to_string().contains("`a`"));
        let inline = without_guest("guest = { b = { file = \"b.wasm\" }, c = {} }", "b").unwrap();
        assert_eq!(Config::parse(&inline).unwrap().guest.len(), 1);
    }

    #[test]
    fn a_file_is_replaced_behind_its_link_and_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.toml"), folder.path().join("guesthouse.toml"));
        std::fs::write(&real, "old").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o604)).unwrap();
        std::os::unix::fs::symlink("real.toml", &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o604);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        let fresh = folder.path().join("fresh.toml");
        write(&fresh, "x").unwrap();
        assert_eq!(std::fs::metadata(&fresh).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "no other file is left");
    }
}
