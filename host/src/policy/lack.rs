//! What a guest cannot do without and was not granted: the reason to refuse it, and the line that would change that.

use super::http::Pattern;
use super::{Effective, Wants};

/// A grant that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Its kind: `state`, `http`, `dirs` or `env`.
    pub kind: &'static str,
    /// What is not granted: a pattern, a path, a name; for state the interface.
    pub value: String,
    /// What the component does, as the rest of a sentence that begins with its file.
    pub cause: String,
    /// What the operator can do, as an imperative.
    pub remedy: String,
}

/// Interfaces of WASI that work by grant alone.
const BY_GRANT: [(&str, &str); 2] = [("wasi:keyvalue/", "state"), ("wasi:http/", "http")];

/// The first thing that a guest needs and does not get. What it needs, its declaration says; without one, its imports do.
pub fn lack(guest: &str, imports: &[String], wants: Option<&Wants>, given: &Effective) -> Option<Lack> {
    match wants {
        Some(wants) => lack_of_wants(guest, wants, given),
        None => imports.iter().find_map(|import| lack_of_import(guest, import, given)),
    }
}

/// Whether `import` is an interface that works by grant alone.
pub(crate) fn by_grant(import: &str) -> Option<&'static str> {
    BY_GRANT.into_iter().find(|(package, _)| import.starts_with(package)).map(|(_, kind)| kind)
}

fn lack_of_import(guest: &str, import: &str, given: &Effective) -> Option<Lack> {
    let (kind, has, line, flag) = match by_grant(import)? {
        "state" => ("state", given.state, state_line(), "state".to_owned()),
        _ => ("http", !given.http.is_empty(), http_line("https://HOST/*"), "http=https://HOST/*".to_owned()),
    };
    let import = crate::guest::clean(import, IMPORT_BYTES_MAX);
    let cause = format!("imports {import} for guest `{guest}`, which is not granted it");
    (!has).then(|| Lack { kind, value: import, cause, remedy: remedy(guest, &line, &flag) })
}

/// Longest name of an interface in a sentence.
const IMPORT_BYTES_MAX: usize = 500;

fn lack_of_wants(guest: &str, wants: &Wants, given: &Effective) -> Option<Lack> {
    let requires = |what: String, interface: &str| format!("requires {what} ({interface}) for guest `{guest}`, which is not granted it");
    if wants.state.is_some_and(|want| want.required) && !given.state {
        let cause = requires("state of its own".into(), "wasi:keyvalue");
        return Some(Lack { kind: "state", value: "wasi:keyvalue".into(), cause, remedy: remedy(guest, &state_line(), "state") });
    }
    if let Some(want) = wants.http.iter().find(|want| want.required && !covered(&want.pattern, &given.http.granted)) {
        let cause = requires(format!("requests to `{}`", want.pattern), "wasi:http");
        let remedy = remedy(guest, &http_line(&want.pattern), &format!("http={}", want.pattern));
        return Some(Lack { kind: "http", value: want.pattern.clone(), cause, remedy });
    }
    let has_dir = |path: &str, write: bool| given.dirs.iter().any(|dir| dir.guest == path && (dir.write || !write));
    if let Some(want) = wants.dirs.iter().find(|want| want.required && !has_dir(&want.guest, want.write)) {
        let how = if want.write { "to read and write" } else { "to read" };
        let cause = requires(format!("a folder at `{}` {how}", want.guest), "wasi:filesystem");
        let remedy = remedy(guest, &dir_line(&want.guest, want.write), &dir_flag(&want.guest, want.write));
        return Some(Lack { kind: "dirs", value: want.guest.clone(), cause, remedy });
    }
    let want = wants.env.iter().find(|want| want.required && !given.env.contains(&want.name))?;
    let cause = requires(format!("the environment variable `{}`", want.name), "wasi:cli/environment");
    let remedy = remedy(guest, &format!("env = [\"{}\"]", want.name), &format!("env={}", want.name));
    Some(Lack { kind: "env", value: want.name.clone(), cause, remedy })
}

/// Whether what is granted takes in all that the wanted pattern stands for.
pub(super) fn covered(wanted: &str, granted: &[String]) -> bool {
    let Ok(wanted) = wanted.parse::<Pattern>() else { return false };
    granted.iter().filter_map(|pattern| pattern.parse::<Pattern>().ok()).any(|granted| granted.covers(&wanted))
}

fn remedy(guest: &str, line: &str, flag: &str) -> String {
    format!("add `{line}` to [guest.{guest}.grants] in guesthouse.toml, or start it by `run` or `up` with --grant '{flag}'")
}

fn state_line() -> String {
    "state = true".into()
}

fn http_line(pattern: &str) -> String {
    format!("http = [{}]", toml::Value::from(pattern))
}

fn dir_line(guest_path: &str, write: bool) -> String {
    format!("dirs = [{}]", dir_entry(guest_path, write))
}

/// The grant of a folder as it is written in a configuration, with the host's path left to fill in.
pub(crate) fn dir_entry(guest_path: &str, write: bool) -> String {
    format!("{{ host = \"FOLDER\", guest = {}, write = {write} }}", toml::Value::from(guest_path))
}

fn dir_flag(guest_path: &str, write: bool) -> String {
    format!("dir=FOLDER:{guest_path}{}", if write { ":rw" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::super::effective;
    use super::super::tests::{grants, wants};
    use super::*;

    fn said(imports: &[&str], wanted: Option<&str>, granted: &str) -> Option<String> {
        let imports: Vec<String> = imports.iter().map(|import| (*import).to_owned()).collect();
        let wanted = wanted.map(wants);
        let given = effective(wanted.as_ref(), &grants(granted));
        lack("notes", &imports, wanted.as_ref(), &given).map(|lack| format!("{}; {}", lack.cause, lack.remedy))
    }

    const STORE: &str = "wasi:keyvalue/store@0.2.0-draft";
    const HANDLER: &str = "wasi:http/outgoing-handler@0.2.4";

    #[test]
    fn each_refusal_names_guest_interface_and_the_line_to_add() {
        for (imports, wanted, granted, parts) in [
            (
                &[STORE][..],
                None,
                "",
                &["imports wasi:keyvalue/store@0.2.0-draft for guest `notes`", "`state = true` to [guest.notes.grants]", "--grant 'state'"]
                    [..],
            ),
            (
                &[HANDLER],
                None,
                "state = true",
                &["imports wasi:http/outgoing-handler@0.2.4 for guest `notes`", "`http = [\"https://HOST/*\"]` to [guest.notes.grants]"],
            ),
            (&[STORE, HANDLER], None, "http = [\"https://a/*\"]", &["wasi:keyvalue/store"]),
            (&[HANDLER], None, "http = []", &["wasi:http"]),
            (
                &[],
                Some("state = { required = true }"),
                "",
                &["requires state of its own (wasi:keyvalue) for guest `notes`", "`state = true`"],
            ),
            (
                &[],
                Some("http = [{ pattern = \"https://a/*\", required = true }]"),
                "",
                &[
                    "requires requests to `https://a/*` (wasi:http) for guest `notes`",
                    "`http = [\"https://a/*\"]`",
                    "--grant 'http=https://a/*'",
                ],
            ),
            (
                &[],
                Some("dirs = [{ guest = \"/d\", required = true }]"),
                "dirs = [{ host = \"x\", guest = \"/e\" }]",
                &[
                    "requires a folder at `/d` to read (wasi:filesystem)",
                    "`dirs = [{ host = \"FOLDER\", guest = \"/d\", write = false }]`",
                    "--grant 'dir=FOLDER:/d'",
                ],
            ),
            (
                &[],
                Some("dirs = [{ guest = \"/d\", write = true, required = true }]"),
                "dirs = [{ host = \"x\", guest = \"/d\" }]",
                &["a folder at `/d` to read and write", "write = true", "--grant 'dir=FOLDER:/d:rw'"],
            ),
            (
                &[],
                Some("env = [{ name = \"TZ\", required = true }]"),
                "env = [\"LANG\"]",
                &["the environment variable `TZ` (wasi:cli/environment)", "`env = [\"TZ\"]`"],
            ),
        ] {
            let said = said(imports, wanted, granted).unwrap_or_else(|| panic!("{imports:?} {wanted:?} {granted} is not refused"));
            for part in parts {
                assert!(said.contains(part), "{said:?} lacks {part:?}");
            }
            assert!(!said.contains('\n'), "{said:?}");
        }
    }

    #[test]
    fn what_is_granted_or_not_required_is_not_refused() {
        for (imports, wanted, granted) in [
            (&[][..], None, ""),
            (&["wasi:filesystem/types@0.2.6", "guesthouse:mcp/context@0.1.0"], None, ""),
            (&[STORE], None, "state = true"),
            (&[HANDLER, "wasi:http/types@0.2.4"], None, "http = [\"https://a/*\"]"),
            // What a component declares is what counts: these imports are its language's, or optional.
            (&[STORE, HANDLER], Some(""), ""),
            (&[STORE], Some("state = true"), ""),
            (&[STORE], Some("state = { required = true }"), "state = true"),
            (&[], Some("dirs = [{ guest = \"/d\", required = true }]"), "dirs = [{ host = \"x\", guest = \"/d\", write = true }]"),
            (&[], Some("env = [{ name = \"TZ\", required = true }, \"LANG\"]"), "env = [\"TZ\"]"),
        ] {
            assert_eq!(said(imports, wanted, granted), None, "{imports:?} {wanted:?} {granted}");
        }
    }

    #[test]
    fn the_name_of_an_interface_is_quoted_clean() {
        let said = said(&[&format!("wasi:http/x\n\u{1b}[2J{}", "y".repeat(10_000))], None, "").unwrap();
        assert!(!said.contains(['\n', '\u{1b}']) && said.len() < 2_000, "{said:?}");
    }
}
