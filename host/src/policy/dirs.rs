//! Folders: which paths a guest can find them at, and which of them it gets.

use super::declared::DirWant;
use crate::config::grants::DirGrant;

/// Longest path at which a guest finds a folder.
const GUEST_PATH_BYTES_MAX: usize = 1 << 10;

/// Refuses a path that is not absolute and in its shortest form: paths of grants and of wants are compared as texts.
pub fn check_guest_path(path: &str) -> Result<(), String> {
    let plain = path == "/"
        || path
            .strip_prefix('/')
            .is_some_and(|rest| rest.split('/').all(|part| !part.is_empty() && part != "." && part != ".." && !part.contains('\\')));
    if plain && path.len() <= GUEST_PATH_BYTES_MAX && !path.chars().any(char::is_control) {
        return Ok(());
    }
    Err(format!(
        "`{}` is no path for a guest; write an absolute one such as \"/data\", without `.`, `..` or a `/` at its end",
        path.escape_debug()
    ))
}

/// The granted folders that are wanted; writing only where both say so.
pub(super) fn effective(wants: &[DirWant], grants: &[DirGrant]) -> Vec<DirGrant> {
    grants
        .iter()
        .filter_map(|grant| {
            let want = wants.iter().find(|want| want.guest == grant.guest)?;
            Some(DirGrant { write: grant.write && want.write, ..grant.clone() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_of_guests_are_absolute_and_short() {
        for path in ["/", "/data", "/data/notes", "/.hidden", "/a b", "/ü"] {
            assert_eq!(check_guest_path(path), Ok(()), "{path}");
        }
        let long = format!("/{}", "a".repeat(GUEST_PATH_BYTES_MAX));
        for path in [
            "",
            ".",
            "data",
            "./data",
            "/data/",
            "//",
            "//data",
            "/data//x",
            "/.",
            "/..",
            "/data/..",
            "/data/./x",
            "/a\\b",
            "/a\0",
            "/a\n",
            &long,
        ] {
            assert!(check_guest_path(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn a_folder_is_given_if_both_name_it_and_written_if_both_say_so() {
        let grant = |guest: &str, write| DirGrant { host: "/srv".into(), guest: guest.into(), write };
        let want = |guest: &str, write| DirWant { guest: guest.into(), write, required: false };
        for (wanted, granted, given) in [
            (vec![], vec![grant("/a", true)], vec![]),
            (vec![want("/a", true)], vec![], vec![]),
            (vec![want("/a", false)], vec![grant("/a", false)], vec![grant("/a", false)]),
            (vec![want("/a", true)], vec![grant("/a", false)], vec![grant("/a", false)]),
            (vec![want("/a", false)], vec![grant("/a", true)], vec![grant("/a", false)]),
            (vec![want("/a", true)], vec![grant("/a", true)], vec![grant("/a", true)]),
            (vec![want("/a", true)], vec![grant("/a/b", true), grant("/", true)], vec![]),
            (vec![want("/a", true), want("/b", false)], vec![grant("/b", true)], vec![grant("/b", false)]),
        ] {
            assert_eq!(effective(&wanted, &granted), given, "{wanted:?} {granted:?}");
        }
    }

    proptest! {
        /// Two paths that are accepted and differ as texts are different folders, since each is in its only form.
        #[test]
        fn what_is_accepted_is_the_shortest_form_of_its_path(path in r"[/.a\\]{0,8}|(/(\.|\.\.|a|b|)){0,5}") {
            use std::path::{Component, Path};
            let parts: Vec<Component<'_>> = Path::new(&path).components().collect();
            let inside = parts.first() == Some(&Component::RootDir) && parts.iter().skip(1).all(|part| matches!(part, Component::Normal(_)));
            let shortest = parts.iter().collect::<std::path::PathBuf>();
            let expected = inside && shortest.to_str() == Some(path.as_str()) && !path.contains('\\');
            prop_assert_eq!(check_guest_path(&path).is_ok(), expected);
        }
    }
}
