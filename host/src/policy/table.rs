//! What a guest declares beside what it is granted, for people.

use super::lack::covered;
use super::{Wants, effective};
use crate::config::grants::Grants;
use serde::Serialize;
use std::fmt;

/// What is said of a want by the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wanted {
    /// Without it, the guest is refused.
    Required,
    /// The guest can do without.
    Optional,
    /// The guest does not declare it, so that it does not get it.
    No,
    /// The guest declares nothing, and gets what is granted.
    Unsaid,
}

/// One grant or want.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its kind: `state`, `http`, `dir`, `env`.
    pub kind: &'static str,
    /// A pattern, a path of the guest, a name; empty for state.
    pub value: String,
    /// What the guest declares of it.
    pub wanted: Wanted,
    /// Whether the guest would write; for folders alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted_write: Option<bool>,
    /// Whether the operator grants it.
    pub granted: bool,
    /// The folder of the host that it is, and whether it can be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether the guest can write there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<bool>,
    /// Who grants it, if not the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<&'static str>,
}

impl Row {
    fn new(kind: &'static str, value: &str, wanted: Wanted, granted: bool) -> Self {
        Row { kind, value: value.to_owned(), wanted, wanted_write: None, granted, host: None, write: None, by: None }
    }

    /// The want alone, for one who is about to grant it.
    pub fn want(&self) -> String {
        let required = if self.wanted == Wanted::Required { " (required)" } else { "" };
        format!("{}{}{required}", self.subject(), access(self.wanted_write))
    }

    fn subject(&self) -> String {
        if self.value.is_empty() { self.kind.to_owned() } else { format!("{} {}", self.kind, self.value) }
    }

    /// Whether it is granted and of no effect, since the guest does not declare it.
    pub fn is_idle(&self) -> bool {
        self.granted && self.wanted == Wanted::No
    }
}

fn access(write: Option<bool>) -> &'static str {
    match write {
        Some(true) => " to read and write",
        Some(false) => " to read",
        None => "",
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.subject())?;
        match self.wanted {
            Wanted::Required => write!(f, "required{}, ", access(self.wanted_write))?,
            Wanted::Optional => write!(f, "wanted{}, ", access(self.wanted_write))?,
            Wanted::No => f.write_str("not declared, ")?,
            Wanted::Unsaid => {}
        }
        match (self.granted, &self.host) {
            (true, _) if self.wanted == Wanted::No => f.write_str("granted and so not given"),
            (true, Some(host)) => write!(f, "granted{}: {host}", access(self.write)),
            (true, None) => write!(f, "granted{}", self.by.map(|by| format!(" by {by}")).unwrap_or_default()),
            (false, _) => f.write_str("not granted"),
        }
    }
}

/// Everything that is wanted or granted.
pub fn table(wants: Option<&Wants>, grants: &Grants) -> Vec<Row> {
    let given = effective(wants, grants);
    let required = |required: bool| if required { Wanted::Required } else { Wanted::Optional };
    let other = if wants.is_some() { Wanted::No } else { Wanted::Unsaid };
    let none = Wants::default();
    let wants = wants.unwrap_or(&none);
    let mut rows = Vec::new();

    let state = wants.state.map_or(other, |want| required(want.required));
    let granted = grants.state.unwrap_or(false);
    if granted || wants.state.is_some() {
        rows.push(Row::new("state", "", state, granted));
    }
    for want in &wants.http {
        rows.push(Row::new("http", &want.pattern, required(want.required), covered(&want.pattern, &grants.http)));
    }
    for pattern in grants.http.iter().filter(|pattern| !wants.http.iter().any(|want| want.pattern == **pattern)) {
        // A pattern may be granted in other words than it is declared; of no effect it is only where none is declared.
        let wanted = if other == Wanted::No && !wants.http.is_empty() { Wanted::Unsaid } else { other };
        rows.push(Row::new("http", pattern, wanted, true));
    }
    for want in &wants.dirs {
        let granted = given.dirs.iter().find(|dir| dir.guest == want.guest);
        rows.push(Row {
            wanted_write: Some(want.write),
            host: granted.map(|dir| dir.host.display().to_string()),
            write: granted.map(|dir| dir.write),
            ..Row::new("dir", &want.guest, required(want.required), granted.is_some())
        });
    }
    for dir in grants.dirs.iter().filter(|dir| !wants.dirs.iter().any(|want| want.guest == dir.guest)) {
        rows.push(Row { host: Some(dir.host.display().to_string()), write: Some(dir.write), ..Row::new("dir", &dir.guest, other, true) });
    }
    for want in &wants.env {
        rows.push(Row::new("env", &want.name, required(want.required), grants.env.contains(&want.name)));
    }
    for name in grants.env.iter().filter(|name| !wants.env.iter().any(|want| want.name == **name)) {
        rows.push(Row::new("env", name, other, true));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::tests::{grants, wants};
    use super::*;

    fn lines(wanted: Option<&str>, granted: &str) -> Vec<String> {
        table(wanted.map(wants).as_ref(), &grants(granted)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn wants_and_grants_stand_side_by_side() {
        let wanted = "state = { required = true }\nhttp = [\"https://a/*\"]\nenv = [\"TZ\"]\n\
                      dirs = [{ guest = \"/d\", write = true }, { guest = \"/e\", required = true }]";
        assert_eq!(
            lines(Some(wanted), "dirs = [{ host = \"data\", guest = \"/d\" }]\nenv = [\"LANG\"]"),
            [
                "state: required, not granted",
                "http https://a/*: wanted, not granted",
                "dir /d: wanted to read and write, granted to read: data",
                "dir /e: required to read, not granted",
                "env TZ: wanted, not granted",
                "env LANG: not declared, granted and so not given",
            ]
        );
        let all = "state = true\nhttp = [\"https://a/*\"]\ndirs = [{ host = \"data\", guest = \"/d\", write = true }]\nenv = [\"TZ\"]";
        let granted = ["state: granted", "http https://a/*: granted", "dir /d: granted to read and write: data", "env TZ: granted"];
        assert_eq!(lines(None, all), granted);
        assert_eq!(lines(Some(""), all).iter().filter(|line| line.ends_with("granted and so not given")).count(), 4);
        assert_eq!(lines(None, ""), [""; 0]);
    }
}
