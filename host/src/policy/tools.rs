//! Tools: which of a guest's are served.

/// Whether the operator lets a tool of that name be served; all are, where nothing is said.
pub fn is_served(patterns: Option<&[String]>, name: &str) -> bool {
    patterns.is_none_or(|patterns| patterns.iter().any(|pattern| matches(pattern, name)))
}

/// Whether a pattern stands for the name; `*` at its end stands for any ending.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_tools_that_the_operator_names_are_served() {
        for (patterns, name, served) in [
            (None, "a", true),
            (Some(vec![]), "a", false),
            (Some(vec!["*"]), "a", true),
            (Some(vec!["get_*"]), "get_x", true),
            (Some(vec!["get_*"]), "set_x", false),
            (Some(vec!["get"]), "get_x", false),
            (Some(vec!["*_x"]), "get_x", false),
            (Some(vec!["b", "a"]), "a", true),
        ] {
            let patterns: Option<Vec<String>> = patterns.map(|list| list.into_iter().map(str::to_owned).collect());
            assert_eq!(is_served(patterns.as_deref(), name), served, "{patterns:?} {name}");
        }
    }

    proptest! {
        #[test]
        fn a_pattern_stands_for_itself_or_for_what_begins_with_it(start in "[ab_*]{0,4}", name in "[ab_*]{0,6}") {
            prop_assert_eq!(matches(&format!("{start}*"), &name), name.starts_with(&start));
            prop_assert!(matches(&name, &name));
            if !start.ends_with('*') {
                prop_assert_eq!(matches(&start, &name), start == name);
            }
            prop_assert_eq!(is_served(Some(&[start.clone(), name.clone()]), &name), true);
            prop_assert!(!is_served(Some(&[]), &name));
        }
    }
}
