//! HTTP requests to where the operator granted them. For guests on WASI, with the feature `http`.
//!
//! ```no_run
//! # fn weather() -> guesthouse::Result<String> {
//! use guesthouse::http::Request;
//!
//! let answer = Request::get("https://api.example.com/v1/now").header("accept", "text/plain").send()?.success()?;
//! Ok(answer.text()?.to_owned())
//! # }
//! ```
//!
//! Redirects are not followed. Credentials belong into the operator's `secrets`: the host adds them on the way, and the guest has
//! nothing to lose. Where no grant allows a request, it fails, and the error says so.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result, bail};

/// A request that is being put together.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// A request with any method, which is written in capitals.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self { method: method.into(), url: url.into(), headers: Vec::new(), body: Vec::new() }
    }

    /// A request for what is at an address.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// A request that brings something to an address.
    pub fn post(url: impl Into<String>) -> Self {
        Self::new("POST", url)
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the body to a value in JSON, and says that it is JSON.
    pub fn json<T: Serialize + ?Sized>(self, value: &T) -> Result<Self> {
        let body = serde_json::to_vec(value)?;
        Ok(self.header("content-type", "application/json").body(body))
    }

    /// Sends it, and waits for the whole response, whatever its status is.
    pub fn send(self) -> Result<Response> {
        wire::send(&self)
    }
}

/// A whole response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status, such as 200.
    pub status: u16,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Response {
    /// This response, if its status is one of success.
    pub fn success(self) -> Result<Self> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        bail!("the server answered with status {}", self.status)
    }

    /// The first header of that name, if it is text. The name is in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        let value = self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value)?;
        std::str::from_utf8(value).ok()
    }

    /// The body.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The body, which has to be text.
    pub fn text(&self) -> Result<&str> {
        std::str::from_utf8(&self.body).map_err(|_| Error::failed("the server's answer is not text"))
    }

    /// The body as a value in JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| Error::failed(format!("the server's answer is not what was expected: {error}")))
    }
}

/// Scheme, authority, and path with query of an address; what follows a `#` is nobody's business but the client's.
#[cfg_attr(not(target_os = "wasi"), allow(dead_code))]
fn parts(url: &str) -> Result<(&str, &str, String)> {
    let whole = url.split('#').next().unwrap_or_default();
    let Some((scheme, rest)) = whole.split_once("://") else { bail!("`{url}` is not an address that begins with http:// or https://") };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((scheme, authority, path))
}

#[cfg(not(target_os = "wasi"))]
mod wire {
    use super::{Request, Response};
    use crate::Result;

    pub(super) fn send(request: &Request) -> Result<Response> {
        crate::bail!("{} {} needs the host: there is none here", request.method, request.url)
    }
}

#[cfg(target_os = "wasi")]
mod wire {
    use wasip2::http::outgoing_handler::handle;
    use wasip2::http::types::{ErrorCode, Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme};
    use wasip2::io::streams::StreamError;

    use super::{Request, Response, parts};
    use crate::{Error, Result, bail};

    /// What a stream takes at once, for certain.
    const PIECE_BYTES: usize = 4096;
    /// What is read at once.
    const READ_BYTES: u64 = 64 << 10;

    pub(super) fn send(request: &Request) -> Result<Response> {
        let (scheme, authority, path) = parts(&request.url)?;
        let wrong = |what: &str| Error::failed(format!("the {what} of the request to `{}` cannot be sent", request.url));
        let headers = Fields::new();
        for (name, value) in &request.headers {
            headers.append(name, value.as_bytes()).map_err(|_| wrong(&format!("header `{name}`")))?;
        }
        if !request.body.is_empty() {
            headers.append("content-length", request.body.len().to_string().as_bytes()).map_err(|_| wrong("length"))?;
        }
        let outgoing = OutgoingRequest::new(headers);
        outgoing.set_method(&method(&request.method)).map_err(|()| wrong("method"))?;
        let scheme = match scheme {
            "https" => Scheme::Https,
            "http" => Scheme::Http,
            other => Scheme::Other(other.to_owned()),
        };
        outgoing.set_scheme(Some(&scheme)).map_err(|()| wrong("scheme"))?;
        outgoing.set_authority(Some(authority)).map_err(|()| wrong("host"))?;
        outgoing.set_path_with_query(Some(&path)).map_err(|()| wrong("path"))?;
        let body = if request.body.is_empty() { None } else { Some(outgoing.body().map_err(|()| wrong("body"))?) };
        let failed = |code: &ErrorCode| Error::failed(format!("the request to {authority} failed: {}", said(code)));
        let future = handle(outgoing, None).map_err(|code| failed(&code))?;
        if let Some(body) = body {
            // A server that does not want all of it answers nevertheless.
            let _ = write(body, &request.body);
        }
        let response = loop {
            match future.get() {
                Some(Ok(response)) => break response.map_err(|code| failed(&code))?,
                Some(Err(())) => bail!("the response from {authority} is gone"),
                None => future.subscribe().block(),
            }
        };
        read(&response, authority)
    }

    fn write(body: OutgoingBody, bytes: &[u8]) -> Option<()> {
        let stream = body.write().ok()?;
        for piece in bytes.chunks(PIECE_BYTES) {
            stream.blocking_write_and_flush(piece).ok()?;
        }
        drop(stream);
        OutgoingBody::finish(body, None).ok()
    }

    fn read(response: &IncomingResponse, authority: &str) -> Result<Response> {
        let (status, headers) = (response.status(), response.headers().entries());
        let gone = || Error::failed(format!("the response from {authority} is gone"));
        let body = response.consume().map_err(|()| gone())?;
        let stream = body.stream().map_err(|()| gone())?;
        let mut bytes = Vec::new();
        loop {
            match stream.blocking_read(READ_BYTES) {
                Ok(piece) => bytes.extend(piece),
                Err(StreamError::Closed) => return Ok(Response { status, headers, body: bytes }),
                Err(StreamError::LastOperationFailed(error)) => {
                    bail!("the response from {authority} broke off: {}", error.to_debug_string())
                }
            }
        }
    }

    fn method(name: &str) -> Method {
        match name {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "PATCH" => Method::Patch,
            "OPTIONS" => Method::Options,
            other => Method::Other(other.to_owned()),
        }
    }

    /// What is worth saying in words; the rest has names that say it.
    fn said(code: &ErrorCode) -> String {
        match code {
            ErrorCode::HttpRequestDenied => "no grant allows it".into(),
            ErrorCode::DestinationIpProhibited => "it leads to an address that is not granted".into(),
            other => {
                let debug = format!("{other:?}");
                debug.strip_prefix("ErrorCode::").unwrap_or(&debug).to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (url, scheme, authority, path) in [
            ("https://a.example", "https", "a.example", "/"),
            ("https://a.example:8443/v1?x=1#top", "https", "a.example:8443", "/v1?x=1"),
            ("http://a.example?x=/", "http", "a.example", "/?x=/"),
        ] {
            assert_eq!(parts(url).unwrap(), (scheme, authority, path.to_owned()));
        }
        assert!(parts("a.example/v1").is_err());
    }

    #[test]
    fn responses_are_read() {
        let headers = vec![("x-a".to_owned(), b"1".to_vec()), ("x-b".to_owned(), vec![0xff])];
        let response = Response { status: 404, headers, body: b"{\"a\":1}".to_vec() };
        assert_eq!((response.header("x-a"), response.header("x-b"), response.header("x-c")), (Some("1"), None, None));
        assert_eq!(response.json::<serde_json::Value>().unwrap()["a"], 1);
        assert_eq!(response.text().unwrap(), "{\"a\":1}");
        assert!(response.success().is_err());
        assert!(Request::get("https://a.example").send().is_err(), "there is no host here");
    }
}
