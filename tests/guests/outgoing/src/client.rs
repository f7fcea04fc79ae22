//! One request over `wasi:http`, without a library in between that would tidy it up.

use std::cell::RefCell;
use std::collections::BTreeMap;

use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingResponse, Method, OutgoingBody, OutgoingRequest, RequestOptions, Scheme,
};
use wasip2::io::streams::StreamError;

use crate::{Answer, Ask};

const HOPS_MAX: usize = 5;
const PIECE_BYTES: u64 = 4096;

/// Sends it, follows where it may, and reads the response.
pub fn send(ask: &Ask) -> Answer {
    let mut target = Target::of(ask);
    for _ in 0..HOPS_MAX {
        let answer = once(ask, &target);
        let location = answer.headers.as_ref().and_then(|headers| headers.get("location").cloned());
        match location {
            Some(location) if ask.follow == Some(true) => target = target.join(&location),
            _ => return answer,
        }
    }
    failed("too many redirects")
}

/// Begins several, then waits for each.
pub fn together(ask: &Ask, count: u32) -> Vec<Answer> {
    let target = Target::of(ask);
    let begun: Vec<_> = (0..count).map(|_| begin(ask, &target)).collect();
    begun.into_iter().map(|begun| begun.and_then(|(future, _)| wait(&future)).map_or_else(|error| failed(&error), |r| read(r, ask))).collect()
}

thread_local! {
    static HOARD: RefCell<Vec<IncomingResponse>> = const { RefCell::new(Vec::new()) };
}

/// Sends it, and keeps what comes back.
pub fn hoard(ask: &Ask) -> Answer {
    match begin(ask, &Target::of(ask)).and_then(|(future, _)| wait(&future)) {
        Err(error) => failed(&error),
        Ok(response) => {
            let answer = Answer { status: Some(response.status()), ..Answer::default() };
            HOARD.with_borrow_mut(|hoard| hoard.push(response));
            answer
        }
    }
}

struct Target {
    scheme: Option<String>,
    authority: String,
    path: Option<String>,
}

impl Target {
    fn of(ask: &Ask) -> Self {
        Self { scheme: ask.scheme.clone(), authority: ask.authority.clone(), path: ask.path.clone() }
    }

    /// Where a redirect leads.
    fn join(&self, location: &str) -> Self {
        match location.split_once("://") {
            None => Self { scheme: self.scheme.clone(), authority: self.authority.clone(), path: Some(location.into()) },
            Some((scheme, rest)) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                Self { scheme: Some(scheme.into()), authority: authority.into(), path: Some(path.into()) }
            }
        }
    }
}

fn failed(error: &str) -> Answer {
    Answer { error: Some(error.into()), ..Answer::default() }
}

fn once(ask: &Ask, target: &Target) -> Answer {
    let (future, sent) = match begin(ask, target) {
        Ok(begun) => begun,
        Err(error) => return failed(&error),
    };
    let mut answer = match wait(&future) {
        Ok(response) => read(response, ask),
        Err(error) => failed(&error),
    };
    answer.sent = Some(map(&sent));
    answer
}

/// Sends the request and its body. The headers that come back are a copy of the request's own.
fn begin(ask: &Ask, target: &Target) -> Result<(FutureIncomingResponse, Fields), String> {
    let headers = Fields::new();
    for (name, value) in ask.headers.iter().flatten() {
        headers.append(name, &value.clone().into_bytes()).map_err(|error| format!("header: {error:?}"))?;
    }
    let request = OutgoingRequest::new(headers);
    let method = ask.method.as_deref().unwrap_or("GET");
    request.set_method(&self::method(method)).map_err(|()| "method")?;
    let scheme = match target.scheme.as_deref() {
        None | Some("http") => Scheme::Http,
        Some("https") => Scheme::Https,
        Some(other) => Scheme::Other(other.into()),
    };
    request.set_scheme(Some(&scheme)).map_err(|()| "scheme")?;
    request.set_authority(Some(&target.authority)).map_err(|()| "authority")?;
    request.set_path_with_query(Some(target.path.as_deref().unwrap_or("/"))).map_err(|()| "path")?;
    let body = ask.body_bytes.map(|_| request.body()).transpose().map_err(|()| "body")?;
    let sent = request.headers();
    let options = (ask.patience_ms.is_some() || ask.connect_ms.is_some()).then(|| {
        let options = RequestOptions::new();
        let _ = options.set_first_byte_timeout(ask.patience_ms.map(|ms| ms * 1_000_000));
        let _ = options.set_connect_timeout(ask.connect_ms.map(|ms| ms * 1_000_000));
        options
    });
    let future = outgoing_handler::handle(request, options).map_err(|error| name(&error))?;
    if let Some(body) = body {
        // Where the host has had enough, the response says why.
        let _ = write(body, ask.body_bytes.unwrap_or_default());
    }
    Ok((future, sent))
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "CONNECT" => Method::Connect,
        "TRACE" => Method::Trace,
        other => Method::Other(other.into()),
    }
}

fn write(body: OutgoingBody, bytes: u64) -> Option<()> {
    let stream = body.write().ok()?;
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(PIECE_BYTES);
        stream.blocking_write_and_flush(&vec![b'x'; usize::try_from(piece).ok()?]).ok()?;
        left -= piece;
    }
    drop(stream);
    OutgoingBody::finish(body, None).ok()
}

fn wait(future: &FutureIncomingResponse) -> Result<IncomingResponse, String> {
    loop {
        match future.get() {
            Some(Ok(Ok(response))) => return Ok(response),
            Some(Ok(Err(error))) => return Err(name(&error)),
            Some(Err(())) => return Err("taken".into()),
            None => future.subscribe().block(),
        }
    }
}

fn read(response: IncomingResponse, ask: &Ask) -> Answer {
    let mut answer = Answer { status: Some(response.status()), headers: Some(map(&response.headers())), ..Answer::default() };
    if ask.head_only == Some(true) {
        return answer;
    }
    let Ok(body) = response.consume() else { return failed("consumed") };
    let Ok(stream) = body.stream() else { return failed("no stream") };
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(1 << 16) {
            Ok(piece) => bytes.extend(piece),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(error)) => {
                let code = wasip2::http::types::http_error_code(&error);
                answer.error = Some(code.map_or_else(|| error.to_debug_string(), |code| name(&code)));
                break;
            }
        }
    }
    answer.body_bytes = bytes.len() as u64;
    answer.body = Some(String::from_utf8_lossy(&bytes).chars().take(10_000).collect());
    answer
}

fn map(fields: &Fields) -> BTreeMap<String, String> {
    fields.entries().into_iter().map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned())).collect()
}

/// `HttpRequestDenied` of `ErrorCode::HttpRequestDenied`.
fn name(error: &ErrorCode) -> String {
    let debug = format!("{error:?}");
    debug.strip_prefix("ErrorCode::").unwrap_or(&debug).to_owned()
}
