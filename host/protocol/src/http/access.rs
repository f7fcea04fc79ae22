//! Who may ask: the lists of hosts and origins, and what browsers are told about them (CORS).

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, HOST, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::{HttpRefusal, served_methods};
use crate::revision::Mode;

const ANY: &str = "*";
const EXPOSED: HeaderValue = HeaderValue::from_static("mcp-session-id, mcp-protocol-version, retry-after, www-authenticate");
/// Browsers ask again after this time.
const PREFLIGHT_AGE_S: HeaderValue = HeaderValue::from_static("600");
/// What a script may send, beside the `Mcp-Param-*` headers that tools define.
const ALLOWED_HEADERS: [&str; 8] =
    ["accept", "authorization", "content-type", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"];
const PARAM_PREFIX: &str = "mcp-param-";

/// The hosts and origins that may ask. Nothing else may: that is what stops DNS rebinding.
#[derive(Clone, Debug)]
pub struct AccessRules {
    /// None: any host.
    hosts: Option<Vec<String>>,
    origins: Vec<String>,
    any_origin: bool,
}

/// What the check found out about a request that may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The origin of a script on another site that may read the answer.
    cors: Option<HeaderValue>,
}

impl AccessRules {
    /// Rules from the names of hosts (without port; `*` for any) and the origins of other sites' scripts
    /// (`https://example.com`; `*` for any).
    pub fn new(hosts: &[String], origins: &[String]) -> AccessRules {
        let any_host = hosts.iter().any(|host| host == ANY);
        AccessRules {
            hosts: (!any_host).then(|| hosts.iter().map(|host| bare_host(host).to_ascii_lowercase()).collect()),
            origins: origins.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase()).collect(),
            any_origin: origins.iter().any(|origin| origin == ANY),
        }
    }

    /// Checks `Host` and `Origin`.
    pub fn check(&self, parts: &Parts) -> Result<Access, HttpRefusal> {
        let host = host(parts).filter(|host| self.serves_host(host)).ok_or_else(wrong_host)?;
        let mut origins = parts.headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(Access { cors: None }),
            (Some(origin), None) => self.check_origin(origin, host),
            (Some(_), Some(_)) => Err(wrong_origin()),
        }
    }

    /// Whether the request is for one of the hosts.
    pub fn names_host(&self, parts: &Parts) -> bool {
        host(parts).is_some_and(|host| self.serves_host(host))
    }

    fn serves_host(&self, host: &str) -> bool {
        let Some(hosts) = &self.hosts else {
            return true;
        };
        let bare = bare_host(host);
        hosts.iter().any(|known| known.eq_ignore_ascii_case(bare))
    }

    fn check_origin(&self, origin: &HeaderValue, host: &str) -> Result<Access, HttpRefusal> {
        let Ok(text) = origin.to_str() else {
            return Err(wrong_origin());
        };
        if self.any_origin || self.origins.iter().any(|known| known.eq_ignore_ascii_case(text)) {
            return Ok(Access { cors: Some(origin.clone()) });
        }
        // A page of this very server. That proves something only because the host is one of a list.
        let own = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        if self.hosts.is_some() && own.is_some_and(|own| own.eq_ignore_ascii_case(host)) {
            return Ok(Access { cors: None });
        }
        Err(wrong_origin())
    }
}

impl Access {
    /// Adds to a response what lets the script of a configured origin read it.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        if let Some(origin) = &self.cors {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
            headers.append(VARY, HeaderValue::from_static("origin"));
        }
    }

    /// The headers of the answer (204) to a preflight request.
    pub fn preflight(&self, parts: &Parts, mode: Mode) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if self.cors.is_some() {
            self.write_headers(&mut headers);
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(served_methods(mode)));
            headers.insert(ACCESS_CONTROL_MAX_AGE, PREFLIGHT_AGE_S);
            if let Ok(allowed) = HeaderValue::from_str(&allowed_headers(&parts.headers)) {
                headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
            }
        }
        headers
    }
}

/// The host that a request names; None where it does not name one, or more than one.
fn host(parts: &Parts) -> Option<&str> {
    let mut named = parts.headers.get_all(HOST).iter();
    match (named.next().map(HeaderValue::to_str), named.next(), parts.uri.authority()) {
        (Some(Ok(host)), None, None) => Some(host),
        // An absolute request target outranks the header; were they to differ, somebody is confused.
        (Some(Ok(host)), None, Some(target)) if target.as_str().eq_ignore_ascii_case(host) => Some(host),
        (None, None, Some(target)) => Some(target.as_str()),
        _ => None,
    }
}

/// The fixed list, and those `Mcp-Param-*` headers that the browser asked for: their names are not known beforehand.
fn allowed_headers(asked: &HeaderMap) -> String {
    let mut allowed = ALLOWED_HEADERS.join(", ");
    for value in asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS) {
        for name in value.to_str().unwrap_or_default().split(',') {
            let name = name.trim().to_ascii_lowercase();
            if name.starts_with(PARAM_PREFIX) {
                allowed.push_str(", ");
                allowed.push_str(&name);
            }
        }
    }
    allowed
}

/// The host without port and without the brackets of an IPv6 address.
fn bare_host(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or(host, |(address, _)| address);
    }
    match host.split_once(':') {
        // Two colons: an IPv6 address without brackets, which cannot have a port.
        Some((name, port)) if !port.contains(':') => name,
        Some(_) | None => host,
    }
}

fn wrong_host() -> HttpRefusal {
    HttpRefusal::invalid(StatusCode::MISDIRECTED_REQUEST, "host_not_allowed", "This server is not known by that name")
}

fn wrong_origin() -> HttpRefusal {
    HttpRefusal::invalid(StatusCode::FORBIDDEN, "origin_not_allowed", "Requests from that origin are not allowed")
}
