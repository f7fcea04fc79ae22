//! Who calls over HTTP: the seam for every scheme of authentication, and bearer tokens that are known by their hashes.

use crate::config::auth::{AuthConfig, AuthKind, TokenHash};
use guesthouse_protocol::http::HttpRefusal;
use guesthouse_protocol::{Identity, RpcError, error};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Tells who sends a request, by nothing but its headers and before anything else of it is read.
pub trait Authenticator: Send + Sync + 'static {
    /// Who sends it.
    fn identify(&self, headers: &HeaderMap) -> Result<Identity, Refused>;
}

/// The request does not say who sends it, or does not prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What the client is asked to prove, and what was wrong with its attempt (`WWW-Authenticate`).
    pub challenge: HeaderValue,
}

impl Refused {
    /// Nothing was sent that this scheme knows. RFC 6750 has no error for that.
    fn missing() -> Self {
        Self { challenge: HeaderValue::from_static("Bearer") }
    }

    /// Something was sent, and it is wrong. What exactly is nobody's business.
    fn invalid() -> Self {
        Self { challenge: HeaderValue::from_static("Bearer error=\"invalid_token\"") }
    }
}

impl From<Refused> for HttpRefusal {
    fn from(refused: Refused) -> HttpRefusal {
        let error = RpcError::typed(error::INVALID_REQUEST, "unauthorized", "The request needs a valid bearer token");
        HttpRefusal { challenge: Some(refused.challenge), ..HttpRefusal::new(StatusCode::UNAUTHORIZED, &error) }
    }
}

/// The authentication that is configured; none where whoever reaches the server may call.
pub fn authenticator(config: &AuthConfig) -> Option<Box<dyn Authenticator>> {
    match config.kind {
        AuthKind::None => None,
        AuthKind::Tokens => Some(Box::new(Tokens::new(config))),
    }
}

/// Bearer tokens from the configuration.
struct Tokens(Vec<(TokenHash, Identity)>);

impl Tokens {
    fn new(config: &AuthConfig) -> Self {
        let known = config.tokens.iter().map(|token| {
            let tenant = token.tenant.as_deref().map(Into::into);
            (token.hash.clone(), Identity { principal: Some(token.principal.as_str().into()), tenant, session: None })
        });
        Self(known.collect())
    }
}

impl Authenticator for Tokens {
    fn identify(&self, headers: &HeaderMap) -> Result<Identity, Refused> {
        let token = bearer(headers)?;
        let hash = Sha256::digest(token);
        let mut found = None;
        // All of them are compared, whole, so that the time says nothing about how near a guess came.
        for (known, identity) in &self.0 {
            if bool::from(known.bytes().ct_eq(hash.as_slice())) {
                found = Some(identity);
            }
        }
        found.cloned().ok_or_else(Refused::invalid)
    }
}

/// The token that a request carries (RFC 6750, section 2.1): in the header, and nowhere else.
fn bearer(headers: &HeaderMap) -> Result<&[u8], Refused> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Err(Refused::missing()) };
    if values.next().is_some() {
        return Err(Refused::invalid());
    }
    let Some((scheme, token)) = value.as_bytes().split_first_chunk::<6>() else { return Err(Refused::missing()) };
    if !scheme.eq_ignore_ascii_case(b"bearer") || token.first().is_some_and(|byte| *byte != b' ') {
        return Err(Refused::missing());
    }
    let token = token.trim_ascii();
    if is_token(token) { Ok(token) } else { Err(Refused::invalid()) }
}

/// The syntax `b64token`.
fn is_token(token: &[u8]) -> bool {
    let end = token.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last.saturating_add(1));
    let (token, _) = token.split_at_checked(end).unwrap_or_default();
    !token.is_empty() && token.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn config(tokens: &[(&str, &str, Option<&str>)]) -> AuthConfig {
        let entries: Vec<String> = tokens
            .iter()
            .enumerate()
            .map(|(at, (token, principal, tenant))| {
                let tenant = tenant.map(|tenant| format!(", tenant = \"{tenant}\"")).unwrap_or_default();
                format!("{{ name = \"t{at}\", hash = \"{}\", principal = \"{principal}\"{tenant} }}", TokenHash::of(token))
            })
            .collect();
        Config::parse(&format!("[auth]\nkind = \"tokens\"\ntokens = [{}]", entries.join(", "))).unwrap().auth
    }

    /// Principal and tenant, or the challenge.
    type Told<'a> = Result<(&'a str, Option<&'a str>), &'a str>;

    #[test]
    fn headers_tell_who_calls_or_why_nobody_does() {
        let auth =
            authenticator(&config(&[("gh_one", "alice", Some("acme")), ("gh_two~+/=", "bob", None), ("three==", "alice", None)])).unwrap();
        let (missing, invalid) = (Err("Bearer"), Err("Bearer error=\"invalid_token\""));
        let table: [(&[&str], Told<'_>); 20] = [
            (&["Bearer gh_one"], Ok(("alice", Some("acme")))),
            (&["bearer gh_two~+/="], Ok(("bob", None))),
            (&["BEARER   three==  "], Ok(("alice", None))),
            (&[], missing),
            (&[""], missing),
            (&["Basic Z2hfb25l"], missing),
            (&["gh_one"], missing),
            (&["Bearergh_one"], missing),
            (&["Bearer"], invalid),
            (&["Bearer "], invalid),
            (&["Bearer gh_on"], invalid),
            (&["Bearer gh_onee"], invalid),
            (&["Bearer GH_ONE"], invalid),
            (&["Bearer gh_one gh_one"], invalid),
            (&["Bearer \"gh_one\""], invalid),
            (&["Bearer gh_one,"], invalid),
            (&["Bearer ="], invalid),
            (&["Bearer gh_ön"], invalid),
            (&["Bearer gh_one", "Bearer gh_one"], invalid),
            (&["Basic Z2hfb25l", "Bearer gh_one"], invalid),
        ];
        for (values, expected) in table {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            let found = auth.identify(&headers);
            let found = found
                .as_ref()
                .map(|identity| (identity.principal.as_deref().unwrap(), identity.tenant.as_deref()))
                .map_err(|refused| refused.challenge.to_str().unwrap());
            assert_eq!(found, expected, "{values:?}");
        }
    }

    #[test]
    fn a_refusal_is_a_401_that_says_what_is_wanted() {
        let refusal = HttpRefusal::from(Refused::missing());
        assert_eq!((refusal.status, refusal.challenge), (StatusCode::UNAUTHORIZED, Some(HeaderValue::from_static("Bearer"))));
        assert!(authenticator(&AuthConfig::default()).is_none());
    }
}
