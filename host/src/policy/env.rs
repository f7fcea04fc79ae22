//! Environment variables: which names there can be, and which of them a guest gets.

use super::declared::EnvWant;

/// Longest name of a variable.
const NAME_BYTES_MAX: usize = 256;

/// Refuses what is no name of a variable.
pub fn check_name(name: &str) -> Result<(), String> {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && name.len() <= NAME_BYTES_MAX && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(());
    }
    Err(format!("`{}` is no name of an environment variable; write one such as \"TZ\", without its value", name.escape_debug()))
}

/// The granted names that are wanted.
pub(super) fn effective(wants: &[EnvWant], grants: &[String]) -> Vec<String> {
    grants.iter().filter(|name| wants.iter().any(|want| want.name == **name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in ["TZ", "_", "A1_b", &"A".repeat(NAME_BYTES_MAX)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "1A", "A=B", "A B", "A-B", "A\0", "Ü", "*", &"A".repeat(NAME_BYTES_MAX + 1)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_name_is_given_if_both_have_it_to_the_letter() {
        let want = |name: &str| EnvWant { name: name.into(), required: true };
        for (wanted, granted, given) in [
            (vec![], vec!["A"], vec![]),
            (vec![want("A")], vec![], vec![]),
            (vec![want("A")], vec!["A", "B"], vec!["A"]),
            (vec![want("a")], vec!["A"], vec![]),
            (vec![want("A")], vec!["AB"], vec![]),
        ] {
            let granted: Vec<String> = granted.into_iter().map(str::to_owned).collect();
            assert_eq!(effective(&wanted, &granted), given, "{wanted:?} {granted:?}");
        }
    }
}
