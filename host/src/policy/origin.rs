//! Origins: scheme, host and port, each in the one form in which they are compared, resolved and sent.

use std::fmt;
use std::net::IpAddr;

/// Longest name of a host, and of one label of it.
const NAME_LEN_MAX: usize = 253;
const LABEL_LEN_MAX: usize = 63;

/// How a request travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Through TLS.
    Https,
}

impl Scheme {
    /// Reads a scheme in any case.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Http, Self::Https].into_iter().find(|scheme| text.eq_ignore_ascii_case(scheme.as_str()))
    }

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port where none is written.
    pub fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name: ASCII (punycode where it was not), lower case, no dot at its end.
    Name(String),
    /// An address; never one that stands for an IPv4 address in IPv6.
    Address(IpAddr),
}

impl Host {
    /// Reads a host as browsers do, in which `0x7f.1` is an address, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parsed = url::Host::parse(text).map_err(|error| format!("`{text}` is not a host ({error})"))?;
        match parsed {
            url::Host::Ipv4(address) => Ok(Self::Address(address.into())),
            url::Host::Ipv6(address) => Ok(Self::Address(IpAddr::V6(address).to_canonical())),
            url::Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
                let fits = name.len() <= NAME_LEN_MAX && name.split('.').all(is_label);
                if fits { Ok(Self::Name(name)) } else { Err(format!("`{text}` is not a host (a name has letters, digits and hyphens)")) }
            }
        }
    }
}

fn is_label(label: &str) -> bool {
    let fits = (1..=LABEL_LEN_MAX).contains(&label.len());
    fits && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_')
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address @ IpAddr::V4(_)) => address.fmt(f),
            Self::Address(address @ IpAddr::V6(_)) => write!(f, "[{address}]"),
        }
    }
}

/// Scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// How requests travel.
    pub scheme: Scheme,
    /// Where to.
    pub host: Host,
    /// On which port.
    pub port: u16,
}

impl Origin {
    /// Reads `SCHEME://HOST[:PORT]`, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, authority) = text.split_once("://").ok_or_else(|| format!("`{text}` does not begin with `http://` or `https://`"))?;
        if authority.contains(['/', '?', '#', '\\']) {
            return Err(format!("`{text}` goes on after the host; an origin is a scheme, a host and a port"));
        }
        Self::of(scheme, authority)
    }

    /// The origin of a request with this scheme and authority.
    pub fn of(scheme: &str, authority: &str) -> Result<Self, String> {
        let scheme = Scheme::parse(scheme).ok_or_else(|| format!("the scheme `{scheme}` is not `http` or `https`"))?;
        let (host, port) = split(authority)?;
        let port = match port {
            None => scheme.port(),
            Some(port) => parse_port(port)?,
        };
        Ok(Self { scheme, host: Host::parse(host)?, port })
    }

    /// Host and port as they stand in a request: the port only where it is not the scheme's own.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.port() { self.host.to_string() } else { format!("{}:{}", self.host, self.port) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority())
    }
}

/// Splits an authority into host and port. One with a user is refused: it makes another host look like the one that is meant.
pub(super) fn split(authority: &str) -> Result<(&str, Option<&str>), String> {
    if authority.contains('@') {
        return Err(format!("`{authority}` has a user before the `@`; use a header or a secret instead"));
    }
    // The colons of an IPv6 address are inside brackets.
    let after = authority.rfind(']').map_or(0, |end| end + 1);
    let colon = authority.get(after..).and_then(|rest| rest.find(':')).map(|at| at + after);
    let (host, port) = match colon {
        None => (authority, None),
        Some(at) => (authority.get(..at).unwrap_or_default(), authority.get(at + 1..)),
    };
    if host.is_empty() {
        return Err("the host is missing".into());
    }
    Ok((host, port))
}

pub(super) fn parse_port(text: &str) -> Result<u16, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| digits && *port > 0);
    port.ok_or_else(|| format!("the port `{text}` is not a number between 1 and 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_has_one_form() {
        for (text, form) in [
            ("https://API.Example.com", "https://api.example.com"),
            ("HTTPS://api.example.com:443", "https://api.example.com"),
            ("https://api.example.com.", "https://api.example.com"),
            ("http://api.example.com:443", "http://api.example.com:443"),
            ("https://bücher.example", "https://xn--bcher-kva.example"),
            ("https://ＥＸＡＭＰＬＥ.com", "https://example.com"),
            ("https://%65xample.com", "https://example.com"),
            ("http://2130706433", "http://127.0.0.1"),
            ("http://0x7f.1:80", "http://127.0.0.1"),
            ("http://0177.0.0.1", "http://127.0.0.1"),
            ("http://127.1", "http://127.0.0.1"),
            ("http://127.0.0.1.", "http://127.0.0.1"),
            ("http://[::FFFF:127.0.0.1]:8080", "http://127.0.0.1:8080"),
            ("http://[0:0:0:0:0:0:0:1]", "http://[::1]"),
            ("http://my_host", "http://my_host"),
        ] {
            assert_eq!(Origin::parse(text).unwrap().to_string(), form, "{text}");
        }
    }

    #[test]
    fn what_is_no_origin_is_refused_with_the_part() {
        for (text, part) in [
            ("example.com", "`http://`"),
            ("ftp://example.com", "`ftp`"),
            ("https://", "host is missing"),
            ("https://:443", "host is missing"),
            ("https://user@example.com", "before the `@`"),
            ("https://example.com:443@evil.com", "before the `@`"),
            ("https://example.com/v1", "goes on after the host"),
            ("https://example.com?x", "goes on after the host"),
            ("https://example.com\\@evil.com", "goes on after the host"),
            ("https://example.com:0", "the port `0`"),
            ("https://example.com:", "the port ``"),
            ("https://example.com:+80", "the port `+80`"),
            ("https://example.com:65536", "`65536`"),
            ("https://exa mple.com", "is not a host"),
            ("https://example..com", "is not a host"),
            ("https://example.com..", "is not a host"),
            ("https://*.example.com", "is not a host"),
            ("https://[::1", "the port"),
            ("https://[::1%25eth0]", "is not a host"),
            ("https://::1", "host is missing"),
            ("https://1.2.3.4.5", "is not a host"),
        ] {
            let error = Origin::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
