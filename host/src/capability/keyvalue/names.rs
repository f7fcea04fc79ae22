//! What the spaces of guests' buckets are called, and whose one is by its name.

use std::sync::Arc;

use super::Bucket;
use crate::identity::Identity;
use crate::storage::{Backend, Failed, Space};

/// The name of a guest's own bucket.
pub(super) const GUEST: &str = "guest";
/// Begins the names of callers' buckets.
const PRINCIPALS: &str = "principal/";
/// Begins the names of sessions' buckets.
const SESSIONS: &str = "session/";

/// The realm of a guest's state: where its buckets are.
pub fn realm(guest: &str) -> Arc<str> {
    format!("guest/{guest}").into()
}

/// The name of a session's bucket, the same in the realms of all guests. A session ends with the process that it is of.
pub(super) fn session_space(node: &str, session: &str) -> String {
    format!("{SESSIONS}{node}/{}", part(session))
}

/// The name of a caller's bucket.
pub(super) fn principal_space(tenant: Option<&str>, principal: &str) -> String {
    // No tenant is something else than one without a name.
    let tenant = tenant.map_or_else(|| "-".to_owned(), |tenant| format!("+{}", part(tenant)));
    format!("{PRINCIPALS}{tenant}/{}", part(principal))
}

/// Whose a space is, as its name says: which bucket, and who calls when it is opened.
pub(crate) fn owner(space: &Space) -> Option<(Bucket, Identity)> {
    let name = &*space.name;
    if name == GUEST {
        return Some((Bucket::Guest, Identity::default()));
    }
    if let Some((tenant, principal)) = name.strip_prefix(PRINCIPALS).and_then(|rest| rest.split_once('/')) {
        let tenant = match tenant.strip_prefix('+') {
            Some(tenant) => Some(whole(tenant)?.into()),
            None => (tenant == "-").then_some(None)?,
        };
        return Some((Bucket::Principal, Identity { principal: Some(whole(principal)?.into()), tenant, session: None }));
    }
    let (_, session) = name.strip_prefix(SESSIONS)?.split_once('/')?;
    Some((Bucket::Session, Identity { session: Some(whole(session)?.into()), ..Identity::default() }))
}

/// Empties a guest's buckets of sessions of processes that are gone, which nobody can come back to.
pub(crate) async fn forget_departed(backend: &dyn Backend, guest: &str) -> Result<(), Failed> {
    // In this order: a node that has a space by now is seen, if it is still there.
    let spaces = backend.spaces(realm(guest)).await?;
    let nodes = backend.nodes().await?;
    for Space { name, .. } in spaces {
        let node = name.strip_prefix(SESSIONS).and_then(|rest| rest.split_once('/')).map(|(node, _)| node);
        if node.is_some_and(|node| !nodes.iter().any(|alive| alive == node)) {
            backend.forget(name).await?;
        }
    }
    Ok(())
}

/// A part of a space's name, in which a slash divides parts: as it is where that is a plain word, so that people can read it.
fn part(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut part, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'@' | b':' => part.push(char::from(byte)),
            _ => part.push_str(&format!("%{byte:02x}")),
        }
        part
    })
}

/// What a part of a space's name stands for.
fn whole(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_callers_cannot_run_into_each_other() {
        for (text, name) in [("ada@example.com", "ada@example.com"), ("a/b", "a%2fb"), ("a%2fb", "a%252fb"), ("ä\0", "%c3%a4%00"), ("", "")]
        {
            assert_eq!(part(text), name);
            assert_eq!(whole(name).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_name_says_whose_a_space_is() {
        let of = |name: &str| owner(&Space { realm: realm("g"), name: name.into() });
        let principal = |tenant: Option<&str>, principal: &str| Identity {
            principal: Some(principal.into()),
            tenant: tenant.map(Into::into),
            session: None,
        };
        assert_eq!(of("guest"), Some((Bucket::Guest, Identity::default())));
        assert_eq!(of("principal/-/a%2fb"), Some((Bucket::Principal, principal(None, "a/b"))));
        assert_eq!(of("principal/+/ada"), Some((Bucket::Principal, principal(Some(""), "ada"))));
        assert_eq!(of("principal/+x/ada"), Some((Bucket::Principal, principal(Some("x"), "ada"))));
        let session = Identity { session: Some("s 1".into()), ..Identity::default() };
        assert_eq!(of("session/node/s%201"), Some((Bucket::Session, session)));
        for name in ["", "guests", "principal/x/ada", "principal/-", "session/node", "principal/-/%f", "principal/-/%ff"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
