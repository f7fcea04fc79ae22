//! What a guest may reach: what its component declares, cut with what its operator grants. Pure values, decided here alone.
//!
//! A component that declares what it wants gets at most that; one that declares nothing gets what is granted. What nobody
//! granted is not given, and an empty list grants nothing.

pub mod address;
pub mod declared;
pub mod dirs;
pub mod env;
pub mod http;
pub mod lack;
pub mod origin;
pub mod table;
pub mod tools;

pub use declared::{Declaration, Wants};
pub use lack::{Lack, lack};
pub use table::{Row, table};

use crate::config::grants::{DirGrant, Grants, InstancePolicy};

/// What a guest gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effective {
    /// Whether it has buckets of its own.
    pub state: bool,
    /// Where it may send requests.
    pub http: HttpGrant,
    /// The folders that it finds.
    pub dirs: Vec<DirGrant>,
    /// The names of the variables that it finds.
    pub env: Vec<String>,
}

/// Two lists of patterns, since what both allow is no list of patterns itself: a request has to match one of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpGrant {
    /// What the operator grants.
    pub granted: Vec<String>,
    /// What the component declares; absent where it declares nothing.
    pub declared: Option<Vec<String>>,
}

impl HttpGrant {
    /// Whether no request at all can be sent.
    pub fn is_empty(&self) -> bool {
        self.granted.is_empty() || self.declared.as_ref().is_some_and(Vec::is_empty)
    }
}

/// What a guest gets, of what is granted. A command that grants state by itself has said so in `grants` before.
pub fn effective(wants: Option<&Wants>, grants: &Grants) -> Effective {
    let granted = grants.state.unwrap_or(false);
    let http = grants.http.clone();
    match wants {
        None => Effective {
            state: granted,
            http: HttpGrant { granted: http, declared: None },
            dirs: grants.dirs.clone(),
            env: grants.env.clone(),
        },
        Some(wants) => Effective {
            state: granted && wants.state.is_some(),
            http: HttpGrant { granted: http, declared: Some(wants.http.iter().map(|want| want.pattern.clone()).collect()) },
            dirs: dirs::effective(&wants.dirs, &grants.dirs),
            env: env::effective(&wants.env, &grants.env),
        },
    }
}

/// How long instances live: the operator sets the longest, and the guest may ask for less.
pub fn instance(wants: Option<&Wants>, most: InstancePolicy) -> InstancePolicy {
    wants.and_then(|wants| wants.instance).map_or(most, |wanted| wanted.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn wants(text: &str) -> Wants {
        toml::from_str(text).unwrap()
    }

    pub(super) fn grants(text: &str) -> Grants {
        toml::from_str(text).unwrap()
    }

    const ALL: &str = "state = true\nhttp = [\"https://a/*\"]\ndirs = [{ host = \"h\", guest = \"/d\", write = true }]\nenv = [\"TZ\"]";

    #[test]
    fn nothing_is_granted_by_default_and_an_empty_list_grants_nothing() {
        for text in ["", "state = false\nhttp = []\ndirs = []\nenv = []"] {
            for wanted in [None, Some(wants("state = true\nhttp = [\"https://a/*\"]\ndirs = [{ guest = \"/d\" }]\nenv = [\"TZ\"]"))] {
                let given = effective(wanted.as_ref(), &grants(text));
                assert!(!given.state && given.http.is_empty() && given.dirs.is_empty() && given.env.is_empty(), "{given:?}");
            }
        }
    }

    #[test]
    fn a_component_without_a_declaration_gets_what_is_granted() {
        let given = effective(None, &grants(ALL));
        assert!(given.state && !given.http.is_empty());
        assert_eq!(given.http, HttpGrant { granted: vec!["https://a/*".into()], declared: None });
        assert!(matches!(given.dirs.as_slice(), [dir] if dir.write));
        assert_eq!(given.env, ["TZ"]);
    }

    #[test]
    fn a_component_gets_at_most_what_it_declares() {
        let nothing = effective(Some(&Wants::default()), &grants(ALL));
        assert!(!nothing.state && nothing.http.is_empty() && nothing.dirs.is_empty() && nothing.env.is_empty());
        let some = effective(Some(&wants("http = [\"https://a/b\"]\ndirs = [{ guest = \"/d\" }]")), &grants(ALL));
        assert!(!some.state && some.env.is_empty());
        assert_eq!(some.http, HttpGrant { granted: vec!["https://a/*".into()], declared: Some(vec!["https://a/b".into()]) });
        assert!(matches!(some.dirs.as_slice(), [dir] if !dir.write), "writing takes both");
    }

    #[test]
    fn instances_live_no_longer_than_both_say() {
        use InstancePolicy::{Call, Session, Shared};
        for (wanted, most, given) in [
            (None, Call, Call),
            (None, Shared, Shared),
            (Some(Call), Shared, Call),
            (Some(Session), Call, Call),
            (Some(Session), Shared, Session),
            (Some(Shared), Session, Session),
        ] {
            assert_eq!(instance(Some(&Wants { instance: wanted, ..Wants::default() }), most), given, "{wanted:?} {most:?}");
        }
        assert_eq!(instance(None, Session), Session);
    }
}
