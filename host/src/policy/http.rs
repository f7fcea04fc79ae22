//! Where a guest may send HTTP requests: patterns, and the requests that they allow.
//!
//! A pattern is `[METHOD[,METHOD] ]SCHEME://HOST[:PORT][PATH]`. Without methods it allows every method. The host is a name,
//! `*.` and a name (anything below it, at any depth, and not the name itself), `*` (any name), an IP address, or a range of
//! them in brackets (`[10.0.0.0/8]`). The port is the scheme's own where it is absent, and any where it is `*`. Without a path
//! it allows every path; `/v1` allows exactly that one, `/v1/*` everything below it.

use super::address::{Range, not_public};
use super::origin::{Host, Origin, Scheme, parse_port, split};
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// How often a path may have been encoded over and over before it is refused.
const ENCODINGS_MAX: usize = 8;

/// Methods that no pattern allows: one makes a tunnel, the other sends a request's headers back, which may have secrets.
const NEVER: [&str; 2] = ["CONNECT", "TRACE"];

/// Whether no pattern allows the method, in whatever case: some servers do not look at it.
fn is_never(method: &str) -> bool {
    NEVER.iter().any(|never| never.eq_ignore_ascii_case(method))
}

/// Why a text is not a pattern; the text, and the part of it that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    pattern: String,
    cause: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a pattern for HTTP requests: {}", self.pattern, self.cause)
    }
}

impl std::error::Error for PatternError {}

/// One pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Empty: all.
    methods: Vec<String>,
    scheme: Scheme,
    host: Hosts,
    /// None: any.
    port: Option<u16>,
    path: Paths,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    Name(String),
    /// Everything that ends so; the dot in front included. A dot alone stands for any name.
    Below(String),
    Addresses(Range),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Paths {
    All,
    Exactly(String),
    /// Everything that begins so; the slash at the end included.
    Below(String),
}

/// A request, as far as patterns speak of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    method: String,
    /// Where to.
    pub origin: Origin,
    /// In its normal form.
    path: String,
}

impl Ask {
    /// A request with this method, scheme, authority and path without query. An error says why no pattern can allow it.
    pub fn new(method: &str, scheme: &str, authority: &str, path: &str) -> Result<Self, String> {
        if is_never(method) {
            return Err(format!("{method} is never allowed"));
        }
        let origin = Origin::of(scheme, authority)?;
        let path = if path.is_empty() { "/" } else { path };
        let path = normal(path).ok_or("its path has dot segments")?;
        Ok(Self { method: method.into(), origin, path })
    }
}

/// How a request was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// By its host's very name or address.
    Exactly,
    /// By a pattern for many names.
    Among,
}

/// All patterns of one guest. Without any, nothing is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns(Vec<Pattern>);

impl Patterns {
    /// Reads them all, or says which one is wrong, and why.
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Self, PatternError> {
        texts.iter().map(|text| text.as_ref().parse()).collect::<Result<_, _>>().map(Self)
    }

    /// Whether any request at all can be allowed to this origin, as far as its name tells.
    pub fn reach(&self, origin: &Origin) -> bool {
        self.0.iter().any(|pattern| pattern.reaches(origin))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the request is allowed, as far as its name tells; where the name leads is for `allows_address`.
    pub fn allows(&self, ask: &Ask) -> Option<Allowed> {
        let by_name = |name: &str| {
            let exact = |pattern: &&Pattern| matches!(&pattern.host, Hosts::Name(own) if own == name);
            let among = |pattern: &&Pattern| matches!(&pattern.host, Hosts::Below(suffix) if is_below(name, suffix));
            let fitting = || self.0.iter().filter(|pattern| pattern.fits(ask));
            let exact = fitting().any(|pattern| exact(&pattern)).then_some(Allowed::Exactly);
            exact.or_else(|| fitting().any(|pattern| among(&pattern)).then_some(Allowed::Among))
        };
        match &ask.origin.host {
            Host::Name(name) => by_name(name),
            Host::Address(address) => self.grants_address(ask, *address).then_some(Allowed::Exactly),
        }
    }

    /// Whether an allowed request may be sent to this address, which is what its host is, or what its name was resolved to.
    /// An error says what kind of address it is. Addresses that are not public have to be granted as such.
    pub fn allows_address(&self, ask: &Ask, address: IpAddr) -> Result<(), &'static str> {
        match not_public(address) {
            Some(what) if !self.grants_address(ask, address) => Err(what),
            _ => Ok(()),
        }
    }

    fn grants_address(&self, ask: &Ask, address: IpAddr) -> bool {
        let granted = |pattern: &Pattern| matches!(&pattern.host, Hosts::Addresses(range) if range.contains(address));
        self.0.iter().any(|pattern| pattern.fits(ask) && granted(pattern))
    }
}

/// Whether a name ends with the suffix and has something before it. A suffix of one dot is for any name.
fn is_below(name: &str, suffix: &str) -> bool {
    suffix == "." || name.strip_suffix(suffix).is_some_and(|before| !before.is_empty())
}

impl Pattern {
    /// Whether all but the host is as the pattern says.
    fn fits(&self, ask: &Ask) -> bool {
        let methods = self.methods.is_empty() || self.methods.contains(&ask.method);
        let port = self.port.is_none_or(|port| port == ask.origin.port);
        let path = match &self.path {
            Paths::All => true,
            Paths::Exactly(path) => *path == ask.path,
            Paths::Below(prefix) => ask.path.starts_with(prefix),
        };
        methods && self.scheme == ask.origin.scheme && port && path
    }

    /// Whether it allows some request to the origin.
    fn reaches(&self, origin: &Origin) -> bool {
        let host = match (&self.host, &origin.host) {
            (Hosts::Name(own), Host::Name(name)) => own == name,
            (Hosts::Below(suffix), Host::Name(name)) => is_below(name, suffix),
            (Hosts::Addresses(range), Host::Address(address)) => range.contains(*address),
            (Hosts::Name(_) | Hosts::Below(_), Host::Address(_)) | (Hosts::Addresses(_), Host::Name(_)) => false,
        };
        host && self.scheme == origin.scheme && self.port.is_none_or(|port| port == origin.port)
    }

    /// Whether everything that the other pattern allows is allowed by this one.
    pub fn covers(&self, other: &Pattern) -> bool {
        let methods =
            self.methods.is_empty() || (!other.methods.is_empty() && other.methods.iter().all(|method| self.methods.contains(method)));
        let port = self.port.is_none() || self.port == other.port;
        let host = match (&self.host, &other.host) {
            (Hosts::Name(own), Hosts::Name(other)) => own == other,
            (Hosts::Below(suffix), Hosts::Name(name)) => is_below(name, suffix),
            (Hosts::Below(suffix), Hosts::Below(other)) => suffix == "." || other.ends_with(suffix),
            (Hosts::Addresses(range), Hosts::Addresses(other)) => range.covers(other),
            (Hosts::Name(_), Hosts::Below(_)) | (Hosts::Name(_) | Hosts::Below(_), Hosts::Addresses(_)) | (Hosts::Addresses(_), _) => false,
        };
        let path = match (&self.path, &other.path) {
            (Paths::All, _) => true,
            (Paths::Exactly(own), Paths::Exactly(other)) => own == other,
            (Paths::Below(prefix), Paths::Exactly(path) | Paths::Below(path)) => path.starts_with(prefix),
            (Paths::Exactly(_) | Paths::Below(_), Paths::All) | (Paths::Exactly(_), Paths::Below(_)) => false,
        };
        methods && self.scheme == other.scheme && port && host && path
    }

    fn read(text: &str) -> Result<Self, String> {
        let (methods, url) = match text.split_once(' ') {
            Some((methods, url)) => (read_methods(methods)?, url),
            None => (Vec::new(), text),
        };
        if url.contains(char::is_whitespace) {
            return Err(format!("`{url}` has white space in it; write `GET,POST https://…`"));
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("`{url}` does not begin with `http://` or `https://`"))?;
        let scheme = Scheme::parse(scheme).ok_or_else(|| format!("the scheme `{scheme}` is not `http` or `https`"))?;
        if let Some(part) = rest.find(['?', '#', '\\']).and_then(|at| rest.get(at..)) {
            return Err(format!("`{part}` is no part of a pattern, which ends with the path"));
        }
        // The slash of a range of addresses is inside brackets.
        let bracket = if rest.starts_with('[') { rest.find(']').unwrap_or(0) } else { 0 };
        let slash = rest.get(bracket..).and_then(|rest| rest.find('/')).map_or(rest.len(), |at| at + bracket);
        let (authority, path) = rest.split_at_checked(slash).unwrap_or((rest, ""));
        let (host, port) = split(authority)?;
        let port = match port {
            None => Some(scheme.port()),
            Some("*") => None,
            Some(port) => Some(parse_port(port)?),
        };
        Ok(Self { methods, scheme, host: Hosts::read(host)?, port, path: Paths::read(path)? })
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        Self::read(text).map_err(|cause| PatternError { pattern: text.into(), cause })
    }
}

fn read_methods(text: &str) -> Result<Vec<String>, String> {
    let read = |method: &str| {
        if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') {
            return Err(format!("`{method}` is not a method; methods are in capitals, with commas between them and a space at the end"));
        }
        if is_never(method) {
            return Err(format!("{method} is never allowed"));
        }
        Ok(method.to_owned())
    };
    text.split(',').map(read).collect()
}

impl Hosts {
    fn read(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Below(".".into()));
        }
        if let Some(range) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|inside| inside.contains('/')) {
            return Range::parse(range).map(Self::Addresses);
        }
        let (wild, name) = text.strip_prefix("*.").map_or((false, text), |name| (true, name));
        if name.contains('*') {
            return Err(format!("the host `{text}` has a `*` that is not its whole first label, as in `*.example.com`"));
        }
        match Host::parse(name)? {
            Host::Name(name) if wild => Ok(Self::Below(format!(".{name}"))),
            Host::Name(name) => Ok(Self::Name(name)),
            Host::Address(_) if wild => Err(format!("the host `{text}` is not a name; a range of addresses is written `[10.0.0.0/8]`")),
            Host::Address(address) => Ok(Self::Addresses(Range::single(address))),
        }
    }
}

impl Paths {
    fn read(text: &str) -> Result<Self, String> {
        let (prefix, below) = text.strip_suffix('*').map_or((text, false), |prefix| (prefix, true));
        if prefix.contains('*') || (below && !prefix.ends_with('/')) {
            return Err(format!("the path `{text}` has a `*` that is not its whole last segment, as in `/v1/*`"));
        }
        if text.is_empty() || text == "/*" {
            return Ok(Self::All);
        }
        if !prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("the path `{text}` has characters that have to be encoded, as in `%20`"));
        }
        let path = normal(prefix).ok_or_else(|| format!("the path `{text}` has dot segments"))?;
        Ok(if below { Self::Below(path) } else { Self::Exactly(path) })
    }
}

/// The path in the one form in which paths are compared: what need not be encoded is not, and what is encoded is so in capitals.
/// None where it has dot segments, now or once some server has decoded it: such a path does not lead where it seems to.
fn normal(path: &str) -> Option<String> {
    let mut decoded = Cow::Borrowed(path.as_bytes());
    for _ in 0..ENCODINGS_MAX {
        if has_dot_segments(&decoded) {
            return None;
        }
        match decode(&decoded, |_| true) {
            Some(once) => decoded = Cow::Owned(once),
            None => {
                let plain = decode(path.as_bytes(), |byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
                return plain.map_or_else(|| Some(path.to_owned()), |plain| String::from_utf8(plain).ok());
            }
        }
    }
    None
}

/// Some servers take a backslash for a slash, and drop what follows a semicolon.
fn has_dot_segments(path: &[u8]) -> bool {
    path.split(|byte| matches!(byte, b'/' | b'\\')).any(|segment| {
        let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
        matches!(name, b"." | b"..")
    })
}

/// A text without its percent-encoding.
pub(crate) fn decoded(text: &str) -> Vec<u8> {
    decode(text.as_bytes(), |_| true).unwrap_or_else(|| text.as_bytes().to_vec())
}

/// Decodes the bytes that `which` chooses, once, and writes the other encoded ones in capitals. None where nothing changes.
fn decode(text: &[u8], which: impl Fn(u8) -> bool) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let byte = match after {
            [high, low, ..] if *first == b'%' => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        match byte {
            Some(byte) if which(byte) => decoded.push(byte),
            Some(_) => decoded.extend(rest.iter().take(3).map(u8::to_ascii_uppercase)),
            None => decoded.push(*first),
        }
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    (decoded != text).then_some(decoded)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests;
