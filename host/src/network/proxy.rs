//! Proxies that the operator's environment names, and which requests go through them.

use crate::policy::address::Range;
use crate::policy::http::decoded;
use crate::policy::origin::{Host, Origin, Scheme};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use std::fmt;
use std::net::IpAddr;

/// A proxy that speaks HTTP in the clear.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    pub(super) host: Host,
    pub(super) port: u16,
    /// Value of `Proxy-Authorization`.
    pub(super) authorization: Option<HeaderValue>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Proxy {
    /// Reads `[http://][USER[:PASSWORD]@]HOST[:PORT]`. The error never repeats the text, which may have a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rest = match text.split_once("://") {
            None => text,
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err("only proxies with `http://` are supported".into()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, authority) = match rest.rsplit_once('@') {
            None => (None, rest),
            Some((user, authority)) => (Some(user), authority),
        };
        let origin = Origin::parse(&format!("http://{authority}")).map_err(|_| "it has no valid host and port".to_owned())?;
        let authorization = user.map(basic).transpose()?;
        Ok(Self { host: origin.host, port: origin.port, authorization })
    }
}

/// The header for a user and a password that are percent-encoded, as in a URL.
fn basic(user: &str) -> Result<HeaderValue, String> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let credentials = [decoded(name), vec![b':'], decoded(password)].concat();
    let value = format!("Basic {}", STANDARD.encode(credentials));
    let mut value = HeaderValue::try_from(value).map_err(|_| "its user cannot be sent".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// Which proxy is for what. The default has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    except: Vec<Exception>,
}

/// What is reached directly: an entry of `NO_PROXY`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exception {
    All,
    /// This name and all below it; on this port, if there is one.
    Name(String, Option<u16>),
    Addresses(Range),
}

impl Proxies {
    /// Reads the usual variables, each in small letters before capitals. An error names the variable, and never its value.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let value = |name: &'static str| {
            let capitals = name.to_ascii_uppercase();
            let set = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
            set(name).map(|value| (name.to_owned(), value)).or_else(|| set(&capitals).map(|value| (capitals, value)))
        };
        let proxy = |name: &'static str| {
            let Some((name, text)) = value(name).or_else(|| value("all_proxy")) else { return Ok(None) };
            Proxy::parse(&text).map(Some).map_err(|error| format!("the proxy in the environment variable {name} cannot be used: {error}"))
        };
        let except = value("no_proxy").map(|(_, text)| text.split([',', ' ']).filter_map(Exception::parse).collect());
        Ok(Self { http: proxy("http_proxy")?, https: proxy("https_proxy")?, except: except.unwrap_or_default() })
    }

    /// The proxy for an origin. This machine itself is always reached directly.
    pub(super) fn for_origin(&self, origin: &Origin) -> Option<&Proxy> {
        let proxy = match origin.scheme {
            Scheme::Http => self.http.as_ref(),
            Scheme::Https => self.https.as_ref(),
        };
        proxy.filter(|_| !is_here(&origin.host) && !self.except.iter().any(|exception| exception.holds(origin)))
    }
}

fn is_here(host: &Host) -> bool {
    match host {
        Host::Name(name) => name == "localhost",
        Host::Address(IpAddr::V4(address)) => address.is_loopback(),
        Host::Address(IpAddr::V6(address)) => address.is_loopback(),
    }
}

impl Exception {
    /// Reads an entry; what cannot be read excepts nothing.
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::All);
        }
        if let Ok(range) = Range::parse(text.trim_start_matches('[').trim_end_matches(']')) {
            return Some(Self::Addresses(range));
        }
        let text = text.strip_prefix("*.").or_else(|| text.strip_prefix('.')).unwrap_or(text);
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (text, None),
        };
        match Host::parse(name).ok()? {
            Host::Name(name) => Some(Self::Name(name, port)),
            Host::Address(address) => Some(Self::Addresses(Range::single(address))),
        }
    }

    fn holds(&self, origin: &Origin) -> bool {
        match (self, &origin.host) {
            (Self::All, _) => true,
            (Self::Name(own, port), Host::Name(name)) => {
                let below = name.strip_suffix(own.as_str()).is_some_and(|before| before.is_empty() || before.ends_with('.'));
                below && port.is_none_or(|port| port == origin.port)
            }
            (Self::Addresses(range), Host::Address(address)) => range.contains(*address),
            (Self::Name(..), Host::Address(_)) | (Self::Addresses(_), Host::Name(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Result<Proxies, String> {
        Proxies::read(|name| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned()))
    }

    fn chosen(variables: &[(&str, &str)], origin: &str) -> Option<String> {
        let origin = Origin::parse(origin).unwrap();
        proxies(variables).unwrap().for_origin(&origin).map(|proxy| format!("{proxy:?}"))
    }

    #[test]
    fn variables_choose_by_scheme() {
        let both = [("http_proxy", "http://plain:3128"), ("HTTPS_PROXY", "secure:3129/")];
        for (variables, origin, proxy) in [
            (&[] as &[_], "https://a.example", None),
            (&both, "http://a.example", Some("plain:3128")),
            (&both, "https://a.example", Some("secure:3129")),
            (&[("ALL_PROXY", "all")], "https://a.example", Some("all:80")),
            (&[("ALL_PROXY", "all"), ("https_proxy", "own:1")], "https://a.example", Some("own:1")),
            (&[("http_proxy", "small:1"), ("HTTP_PROXY", "big:1")], "http://a.example", Some("small:1")),
            (&[("http_proxy", " ")], "http://a.example", None),
        ] {
            assert_eq!(chosen(variables, origin).as_deref(), proxy, "{variables:?} {origin}");
        }
    }

    #[test]
    fn exceptions_are_reached_directly() {
        for (except, origin, direct) in [
            ("", "http://127.0.0.1:80", true),
            ("", "http://[::1]:80", true),
            ("", "http://localhost", true),
            ("*", "http://a.example", true),
            ("a.example", "http://a.example", true),
            ("a.example", "http://b.a.example:81", true),
            (".a.example", "http://b.a.example", true),
            ("*.a.example", "http://b.a.example", true),
            ("A.Example", "http://a.example", true),
            ("x, a.example", "http://a.example", true),
            ("a.example:81", "http://a.example:81", true),
            ("10.0.0.0/8", "http://10.1.2.3", true),
            ("[fd00::1]", "http://[fd00::1]", true),
            ("a.example", "http://ba.example", false),
            ("a.example", "http://a.example.com", false),
            ("a.example:81", "http://a.example", false),
            ("10.0.0.0/8", "http://11.1.2.3", false),
            ("", "http://a.example", false),
        ] {
            let went = chosen(&[("http_proxy", "p"), ("no_proxy", except)], origin);
            assert_eq!(went.is_none(), direct, "{except} {origin}");
        }
    }

    #[test]
    fn passwords_go_into_the_header_and_nowhere_else() {
        let proxy = Proxy::parse("http://us%65r:p%40ss:word@proxy:3128").unwrap();
        assert_eq!(proxy.authorization.as_ref().unwrap().as_bytes(), b"Basic dXNlcjpwQHNzOndvcmQ=");
        assert!(!format!("{proxy:?}").contains("dXNl"));
        for bad in ["socks5://u:secret@proxy", "https://u:secret@proxy", "http://u:secret@", "http://u:secret@proxy:x"] {
            let error = proxies(&[("HTTPS_PROXY", bad)]).unwrap_err();
            assert!(error.contains("HTTPS_PROXY") && !error.contains("secret"), "{error}");
        }
    }
}
