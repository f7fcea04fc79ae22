//! What a command grants besides the configuration: its flags, and state to every guest that a person starts by hand.

use crate::config::discover::is_guest_name;
use crate::config::grants::{DirGrant, Grants};
use crate::config::{Config, GuestConfig};
use crate::policy::{dirs, env};
use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;

/// The flag `--grant`.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct GrantFlags {
    /// Grant something besides what guesthouse.toml grants: `state`, `http=PATTERN`, `dir=FOLDER:PATH[:rw]` or `env=NAME`;
    /// may be repeated. With several guests, `GUEST:` in front says whom, as in `notes:env=TZ`.
    #[arg(long = "grant", value_name = "GRANT")]
    grants: Vec<Flag>,
}

/// One use of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Flag {
    /// The guest that it names.
    guest: Option<String>,
    grant: Grant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Grant {
    State,
    Http(String),
    Dir(DirGrant),
    Env(String),
}

impl FromStr for Flag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((guest, rest)) = text.split_once(':').filter(|(guest, _)| is_guest_name(guest)) {
            return Ok(Flag { guest: Some(guest.to_owned()), grant: rest.parse()? });
        }
        Ok(Flag { guest: None, grant: text.parse()? })
    }
}

impl FromStr for Grant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "state" => Ok(Grant::State),
            Some(("http", pattern)) if !pattern.is_empty() => Ok(Grant::Http(pattern.to_owned())),
            Some(("dir", dir)) => dir_grant(dir).map(Grant::Dir),
            Some(("env", name)) => env::check_name(name).map(|()| Grant::Env(name.to_owned())),
            _ => Err(format!("`{text}` is no grant; write `state`, `http=PATTERN`, `dir=FOLDER:PATH[:rw]` or `env=NAME`")),
        }
    }
}

/// `FOLDER:PATH`, and `:rw` where the guest may write. The folder is relative to where the command was started.
fn dir_grant(text: &str) -> Result<DirGrant, String> {
    let (rest, write) = match (text.strip_suffix(":rw"), text.strip_suffix(":ro")) {
        (Some(rest), _) => (rest, true),
        (None, Some(rest)) => (rest, false),
        (None, None) => (text, false),
    };
    // A path of a guest begins with `/`; what precedes it may hold colons.
    let Some((host, guest)) = rest.rsplit_once(":/").filter(|(host, _)| !host.is_empty()) else {
        return Err(format!(
            "`dir={text}` names no folder and path; write `dir=FOLDER:PATH`, such as `dir=./data:/data`, and `:rw` at the end to let it write"
        ));
    };
    let guest = format!("/{guest}");
    dirs::check_guest_path(&guest)?;
    Ok(DirGrant { host: PathBuf::from(host), guest, write })
}

impl GrantFlags {
    /// The same for guests by name, which get a table in the configuration if they have none.
    pub(super) fn apply_to_all(&self, config: &mut Config, names: &[String], all: bool) -> Result<()> {
        for name in names {
            config.guest.entry(name.clone()).or_default();
        }
        let guests = config.guest.iter_mut().filter(|(name, _)| names.contains(*name));
        self.clone().apply(guests.map(|(name, guest)| (name.as_str(), guest)), all)
    }

    /// Puts the flags over what the file grants to these guests, and grants state to each of them that the file does not
    /// refuse it. A flag that names no guest is for the only one; `all`: there are no others that could be meant.
    pub(super) fn apply<'a>(self, guests: impl IntoIterator<Item = (&'a str, &'a mut GuestConfig)>, all: bool) -> Result<()> {
        let mut guests: Vec<(&str, &mut GuestConfig)> = guests.into_iter().collect();
        for (_, config) in &mut guests {
            config.grants.state.get_or_insert(true);
        }
        for Flag { guest, grant } in self.grants {
            let meant = match (&guest, guests.as_mut_slice()) {
                (Some(guest), guests) => guests.iter_mut().find(|(name, _)| name == guest),
                (None, [only]) if all => Some(only),
                (None, _) => bail!("--grant names no guest, and there are several; write, for example, --grant NAME:state"),
            };
            match meant {
                Some((name, config)) => grant.add_to(&mut config.grants, name)?,
                None => bail!("--grant names the guest `{}`, and there is none of that name here", guest.unwrap_or_default()),
            }
        }
        Ok(())
    }
}

impl Grant {
    fn add_to(self, grants: &mut Grants, guest: &str) -> Result<()> {
        match self {
            Grant::State => grants.state = Some(true),
            Grant::Http(pattern) => grants.http.push(pattern),
            Grant::Env(name) if grants.env.contains(&name) => {}
            Grant::Env(name) => grants.env.push(name),
            Grant::Dir(dir) => {
                if grants.dirs.iter().any(|other| other.guest == dir.guest) {
                    bail!("guest `{guest}` has a folder at `{}` already; grant it one, or choose another path", dir.guest);
                }
                grants.dirs.push(dir);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(texts: &[&str]) -> Result<GrantFlags, String> {
        Ok(GrantFlags { grants: texts.iter().map(|text| text.parse()).collect::<Result<_, _>>()? })
    }

    fn applied(texts: &[&str], names: &[&str], file: &str) -> Result<Vec<Grants>> {
        let grants: Grants = toml::from_str(file).unwrap();
        let mut configs = vec![GuestConfig { grants, ..GuestConfig::default() }; names.len()];
        flags(texts).map_err(anyhow::Error::msg)?.apply(names.iter().copied().zip(&mut configs), true)?;
        Ok(configs.into_iter().map(|config| config.grants).collect())
    }

    #[test]
    fn flags_are_read() {
        let dir = |host: &str, guest: &str, write| Grant::Dir(DirGrant { host: host.into(), guest: guest.into(), write });
        for (text, guest, grant) in [
            ("state", None, Grant::State),
            ("http=https://a.example:8443/*", None, Grant::Http("https://a.example:8443/*".into())),
            ("env=TZ", None, Grant::Env("TZ".into())),
            ("dir=./data:/data", None, dir("./data", "/data", false)),
            ("dir=./data:/data:rw", None, dir("./data", "/data", true)),
            ("dir=/a:b:/data/x:ro", None, dir("/a:b", "/data/x", false)),
            ("dir=/srv:/", None, dir("/srv", "/", false)),
            ("notes:state", Some("notes"), Grant::State),
            ("notes:dir=x:/y:rw", Some("notes"), dir("x", "/y", true)),
            ("a-1:http=http://b:1/", Some("a-1"), Grant::Http("http://b:1/".into())),
        ] {
            assert_eq!(text.parse(), Ok(Flag { guest: guest.map(str::to_owned), grant }), "{text}");
        }
        for text in [
            "",
            "states",
            "state=1",
            "http",
            "http=",
            "env=",
            "env=A=B",
            "dir=",
            "dir=x",
            "dir=:/x",
            "dir=x:y",
            "dir=x:/y/..",
            "Notes:state",
            "notes:",
        ] {
            assert!(text.parse::<Flag>().is_err(), "{text}");
        }
    }

    #[test]
    fn state_is_granted_unless_the_file_refuses_it() {
        assert_eq!(applied(&[], &["a", "b"], "").unwrap(), vec![Grants { state: Some(true), ..Grants::default() }; 2]);
        assert_eq!(applied(&[], &["a"], "state = false").unwrap()[0].state, Some(false));
        assert_eq!(applied(&["state"], &["a"], "state = false").unwrap()[0].state, Some(true));
    }

    #[test]
    fn a_flag_is_for_the_guest_that_it_names_or_for_the_only_one() {
        let granted = applied(&["env=B", "env=A"], &["a"], "env = [\"A\"]").unwrap();
        assert_eq!(granted[0].env, ["A", "B"]);
        let granted = applied(&["b:env=X"], &["a", "b"], "").unwrap();
        assert!(granted[0].env.is_empty() && granted[1].env == ["X"]);
        for (texts, names, part) in [
            (&["env=X"][..], &["a", "b"][..], "--grant NAME:state"),
            (&["env=X"], &[], "--grant NAME:state"),
            (&["c:env=X"], &["a", "b"], "`c`"),
            (&["dir=x:/d", "dir=y:/d"], &["a"], "`/d` already"),
        ] {
            let error = applied(texts, names, "").unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
