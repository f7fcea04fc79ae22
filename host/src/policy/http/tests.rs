//! Tables of patterns and requests, and what no pattern may let pass.

use super::*;
use proptest::prelude::*;

fn ask(text: &str) -> Result<Ask, String> {
    let (method, url) = text.split_once(' ').unwrap_or(("GET", text));
    let (scheme, rest) = url.split_once("://").unwrap();
    let slash = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(slash);
    Ask::new(method, scheme, authority, path)
}

fn allows(patterns: &[&str], request: &str) -> bool {
    let patterns = Patterns::parse(patterns).unwrap();
    ask(request).is_ok_and(|ask| patterns.allows(&ask).is_some())
}

#[test]
fn a_pattern_allows_what_it_says() {
    for (pattern, request) in [
        ("https://api.example.com", "https://api.example.com"),
        ("https://api.example.com", "DELETE https://API.example.com:443/any/thing"),
        ("https://api.example.com.", "https://api.example.com./"),
        ("HTTPS://API.example.com", "https://api.example.com/"),
        ("https://api.example.com/*", "https://api.example.com/"),
        ("https://api.example.com/", "https://api.example.com"),
        ("https://api.example.com/v1", "https://api.example.com/v1"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/a/b"),
        ("https://api.example.com/v1/*", "https://api.example.com/%76%31/a"),
        ("https://api.example.com/%7euser/*", "https://api.example.com/~user/a"),
        ("https://api.example.com/a%2fb", "https://api.example.com/a%2Fb"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/group%2Fproject"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/...;x/..y"),
        ("GET,POST https://api.example.com", "POST https://api.example.com/"),
        ("https://*.example.com", "https://a.example.com/"),
        ("https://*.example.com", "https://a.b.example.com/"),
        ("https://*.bücher.example", "https://www.xn--bcher-kva.example/"),
        ("https://*", "https://anything.example/"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/"),
        ("http://127.0.0.1:8080", "http://[::ffff:127.0.0.1]:8080/"),
        ("http://127.0.0.1:8080", "http://2130706433:8080/"),
        ("http://[::1]:8080/*", "http://[::1]:8080/"),
        ("http://[10.0.0.0/8]:*/v1/*", "http://10.1.2.3:99/v1/x"),
        ("http://[fd00::/8]", "http://[fd00::1]/"),
        ("http://[::ffff:10.0.0.0/104]", "http://10.1.2.3/"),
        ("http://example.com:*", "http://example.com:1/"),
        ("http://example.com:*", "http://example.com/"),
    ] {
        assert!(allows(&[pattern], request), "{pattern} does not allow {request}");
    }
}

#[test]
fn and_nothing_else() {
    for (pattern, request) in [
        ("https://api.example.com", "http://api.example.com/"),
        ("https://api.example.com", "https://api.example.com:8443/"),
        ("https://api.example.com", "https://api.example.com.evil.com/"),
        ("https://api.example.com", "https://xapi.example.com/"),
        ("https://api.example.com", "https://api.example.com@evil.com/"),
        ("https://api.example.com", "https://user@api.example.com/"),
        ("https://api.example.com", "ftp://api.example.com/"),
        ("https://api.example.com", "https://api.example.com../"),
        ("http://api.example.com:443", "https://api.example.com/"),
        ("https://api.example.com/v1", "https://api.example.com/v1/"),
        ("https://api.example.com/v1", "https://api.example.com/v1/a"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1"),
        ("https://api.example.com/v1/*", "https://api.example.com/v10/a"),
        ("https://api.example.com/v1/*", "https://api.example.com/V1/a"),
        ("https://api.example.com/v1/*", "https://api.example.com//v1/a"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/../admin"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/%2e%2e/admin"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/.%2E/admin"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/..%2fadmin"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/%252e%252e/admin"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/%25252e%25252e%25252fadmin"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/..\\admin"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/..%5cadmin"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/..;/admin"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/..;a=b/admin"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/.."),
        ("https://api.example.com", "https://api.example.com/./a"),
        ("GET,POST https://api.example.com", "PUT https://api.example.com/"),
        ("GET https://api.example.com", "get https://api.example.com/"),
        ("https://api.example.com", "TRACE https://api.example.com/"),
        ("https://api.example.com", "CONNECT https://api.example.com/"),
        ("https://api.example.com", "trace https://api.example.com/"),
        ("https://api.example.com", "Connect https://api.example.com/"),
        ("https://*.example.com", "https://example.com/"),
        ("https://*.example.com", "https://evilexample.com/"),
        ("https://*.example.com", "https://a.example.com.evil.com/"),
        ("https://*.example.com", "https://.example.com/"),
        ("https://*", "https://127.0.0.1/"),
        ("https://*", "https://1.1.1.1/"),
        ("https://*", "https://[::1]/"),
        ("http://127.0.0.1:8080", "http://127.0.0.1/"),
        ("http://127.0.0.1", "http://127.0.0.2/"),
        ("http://127.0.0.1", "http://localhost/"),
        ("http://[10.0.0.0/8]", "http://11.0.0.1/"),
    ] {
        assert!(!allows(&[pattern], request), "{pattern} allows {request}");
    }
    assert!(!allows(&[], "https://api.example.com/"));
}

#[test]
fn one_of_many_patterns_is_enough() {
    let patterns = ["GET https://a.example", "POST https://b.example/x"];
    for (request, allowed) in [
        ("GET https://a.example/", true),
        ("POST https://b.example/x", true),
        ("POST https://a.example/x", false),
        ("GET https://b.example/x", false),
    ] {
        assert_eq!(allows(&patterns, request), allowed, "{request}");
    }
}

#[test]
fn exact_names_are_told_from_wild_ones() {
    let patterns = Patterns::parse(&["https://*.example.com", "https://api.example.com/v1/*"]).unwrap();
    for (request, how) in [
        ("https://api.example.com/v1/x", Some(Allowed::Exactly)),
        ("https://api.example.com/v2/x", Some(Allowed::Among)),
        ("https://other.example.com/v1/x", Some(Allowed::Among)),
        ("https://example.com/v1/x", None),
    ] {
        assert_eq!(patterns.allows(&ask(request).unwrap()), how, "{request}");
    }
}

#[test]
fn an_origin_is_reached_where_some_request_to_it_is_allowed() {
    let patterns = ["POST https://api.example.com/v1", "http://*.test:*", "https://[10.0.0.0/8]"];
    for (origin, reached) in [
        ("https://api.example.com", true),
        ("http://a.test:81", true),
        ("https://10.1.2.3", true),
        ("http://api.example.com", false),
        ("https://api.example.com:8443", false),
        ("https://a.test", false),
        ("http://10.1.2.3", false),
    ] {
        assert_eq!(Patterns::parse(&patterns).unwrap().reach(&Origin::parse(origin).unwrap()), reached, "{origin}");
    }
    assert!(!Patterns::default().reach(&Origin::parse("https://api.example.com").unwrap()));
}

#[test]
fn private_addresses_have_to_be_granted_as_addresses() {
    let name = "https://git.example/v1/*";
    for (patterns, address, refused) in [
        (&[name] as &[&str], "93.184.216.34", None),
        (&[name], "10.1.2.3", Some("private")),
        (&[name], "::ffff:127.0.0.1", Some("loopback")),
        (&[name, "https://10.1.2.3"], "10.1.2.3", None),
        (&[name, "https://10.1.2.3"], "::ffff:10.1.2.3", None),
        (&[name, "https://10.1.2.3"], "10.1.2.4", Some("private")),
        (&[name, "https://[10.0.0.0/8]/v1/*"], "10.1.2.4", None),
        (&[name, "https://[10.0.0.0/8]/v2/*"], "10.1.2.4", Some("private")),
        (&[name, "http://[10.0.0.0/8]"], "10.1.2.4", Some("private")),
        (&[name, "https://[10.0.0.0/8]:8443"], "10.1.2.4", Some("private")),
    ] {
        let granted = Patterns::parse(patterns).unwrap();
        let asked = ask("https://git.example/v1/x").unwrap();
        assert_eq!(granted.allows_address(&asked, address.parse().unwrap()).err(), refused, "{patterns:?} {address}");
    }
}

#[test]
fn what_is_no_pattern_is_refused_with_the_pattern_and_the_part() {
    for (text, part) in [
        ("", "does not begin with"),
        ("api.example.com", "does not begin with"),
        ("ftp://example.com", "the scheme `ftp`"),
        ("*://example.com", "the scheme `*`"),
        ("get https://example.com", "`get` is not a method"),
        ("GET, POST https://example.com", "`` is not a method"),
        ("GET,TRACE https://example.com", "TRACE is never allowed"),
        (" https://example.com", "`` is not a method"),
        ("GET  https://example.com", "white space"),
        ("https://", "host is missing"),
        ("https:///v1", "host is missing"),
        ("https://user:pw@example.com", "before the `@`"),
        ("https://a.*.example.com", "the host `a.*.example.com`"),
        ("https://*example.com", "the host `*example.com`"),
        ("https://*.", "is not a host"),
        ("https://*.*.example.com", "the host"),
        ("https://*.127.0.0.1", "is not a name"),
        ("https://[10.0.0.1/8]", "bits set"),
        ("https://[10.0.0.0/8", "not a host"),
        ("https://10.0.0.0/8", ""),
        ("https://example.com:http", "the port `http`"),
        ("https://example.com:", "the port ``"),
        ("https://example.com/v1*", "the path `/v1*`"),
        ("https://example.com/*/x", "the path `/*/x`"),
        ("https://example.com/v1/**", "the path `/v1/**`"),
        ("https://example.com/v1/../x", "dot segments"),
        ("https://example.com/%2e%2e/x", "dot segments"),
        ("https://example.com/ä", "encoded"),
        ("https://example.com/v1?x=*", "`?x=*`"),
        ("https://example.com/#x", "`#x`"),
        ("https://example.com\\v1", "`\\v1`"),
    ] {
        if part.is_empty() {
            // An address and the path `/8`, which is legal, if not what was meant; the range has brackets.
            assert!(!allows(&[text], "https://10.0.0.1/8"));
            continue;
        }
        let error = text.parse::<Pattern>().unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(&format!("`{text}`")), "{text}: {error}");
    }
}

#[test]
fn a_pattern_covers_what_is_narrower() {
    for (wide, narrow, covers) in [
        ("https://a.example", "GET https://a.example/v1/*", true),
        ("https://a.example", "https://a.example", true),
        ("https://a.example/*", "https://a.example", true),
        ("https://a.example/v1/*", "https://a.example/v1/x", true),
        ("https://a.example/v1/*", "https://a.example/v1/x/*", true),
        ("https://*.example", "https://a.b.example", true),
        ("https://*.example", "https://*.b.example", true),
        ("https://*", "https://*.b.example", true),
        ("https://a.example:*", "https://a.example:8443", true),
        ("GET,POST https://a.example", "POST https://a.example", true),
        ("http://[10.0.0.0/8]", "http://10.1.2.3", true),
        ("http://[10.0.0.0/8]", "http://[10.1.0.0/16]", true),
        ("https://a.example/v1/*", "https://a.example", false),
        ("https://a.example/v1/*", "https://a.example/v1", false),
        ("https://a.example/v1", "https://a.example/v1/*", false),
        ("https://a.example", "http://a.example", false),
        ("https://a.example", "https://a.example:*", false),
        ("GET https://a.example", "https://a.example", false),
        ("GET https://a.example", "GET,POST https://a.example", false),
        ("https://*.example", "https://example", false),
        ("https://*.b.example", "https://*.example", false),
        ("https://a.example", "https://*.a.example", false),
        ("https://*", "https://1.1.1.1", false),
        ("http://[10.1.0.0/16]", "http://[10.0.0.0/8]", false),
        ("http://[10.0.0.0/8]", "http://a.example", false),
    ] {
        let [wide_pattern, narrow_pattern] = [wide, narrow].map(|text| text.parse::<Pattern>().unwrap());
        assert_eq!(wide_pattern.covers(&narrow_pattern), covers, "{wide} {narrow}");
    }
}

/// Patterns and requests of few parts, so that they meet often.
fn meeting() -> impl Strategy<Value = (String, String)> {
    let one = |parts: &[&'static str]| prop::sample::select(parts.to_vec());
    let scheme = one(&["http://", "https://"]);
    let host = one(&["a.x", "b.a.x", "*.x", "*.a.x", "*", "10.0.0.1", "[10.0.0.0/8]", "[10.0.0.0/31]", "x"]);
    let pattern = (
        one(&["", "GET ", "POST ", "GET,POST "]),
        scheme.clone(),
        host,
        one(&["", ":80", ":*"]),
        one(&["", "/*", "/v", "/v/*", "/v/w/*", "/v/w"]),
    )
        .prop_map(|(methods, scheme, host, port, path)| format!("{methods}{scheme}{host}{port}{path}"));
    let host = one(&["a.x", "b.a.x", "c.b.a.x", "x", "10.0.0.1", "10.1.1.1"]);
    let request =
        (one(&["GET ", "POST ", "PUT "]), scheme, host, one(&["", ":80", ":81"]), one(&["", "/", "/v", "/v/", "/v/w", "/v/w/", "/w"]))
            .prop_map(|(method, scheme, host, port, path)| format!("{method}{scheme}{host}{port}{path}"));
    (pattern, request)
}

/// Pieces of which paths are made that try to climb.
fn climbing() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/", "..", ".", "%2e", "%2E", "%2f", "%252e", "%252f", "%5c", "\\", ";", ";x", "a", "v1", "admin", "%61", "%", "%%32%65", "//",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| format!("/v1/{}", pieces.concat()))
}

proptest! {
    #[test]
    fn what_is_covered_is_allowed((narrow, request) in meeting(), (wide, _) in meeting()) {
        let [wide_pattern, narrow_pattern] = [&wide, &narrow].map(|text| text.parse::<Pattern>().unwrap());
        if wide_pattern.covers(&narrow_pattern) {
            prop_assert!(!allows(&[&narrow], &request) || allows(&[&wide], &request), "{wide} covers {narrow}, and not {request}");
        }
    }

    #[test]
    fn no_path_climbs_out_of_its_prefix(path in climbing()) {
        let patterns = Patterns::parse(&["https://api.example.com/v1/*"]).unwrap();
        if let Ok(ask) = Ask::new("GET", "https", "api.example.com", &path)
            && patterns.allows(&ask).is_some()
        {
            // What servers make of it: dot segments resolved, however often they decode.
            let mut text = path;
            for _ in 0..4 {
                let url = url::Url::parse(&format!("https://api.example.com{text}")).unwrap();
                prop_assert!(url.path().starts_with("/v1"), "{text} leads to {}", url.path());
                let decoded = decode(text.as_bytes(), |_| true).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                match decoded {
                    // A question mark or a hash that comes out is the end of the path for whoever decodes once more.
                    Some(next) => text = next.replace(['?', '#'], "_"),
                    None => break,
                }
            }
        }
    }

    #[test]
    fn a_wild_name_allows_what_is_below_it_and_nothing_else(name in "[a-z0-9.-]{1,30}") {
        if let Ok(ask) = Ask::new("GET", "https", &name, "/") {
            let patterns = Patterns::parse(&["https://*.example.com"]).unwrap();
            let labels: Vec<&str> = name.trim_end_matches('.').split('.').collect();
            let below = labels.len() > 2 && labels.ends_with(&["example", "com"]);
            prop_assert_eq!(patterns.allows(&ask).is_some(), below);
            let inside = format!("{}.example.com", ask.origin.host);
            if matches!(ask.origin.host, Host::Name(_)) && inside.len() < 200 {
                let allowed = allows(&["https://*.example.com"], &format!("https://{inside}/"));
                prop_assert!(allowed);
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic(pattern: String, method: String, authority: String, path: String) {
        let _ = pattern.parse::<Pattern>();
        let _ = format!("https://{pattern}").parse::<Pattern>();
        let _ = format!("https://example.com/{pattern}").parse::<Pattern>();
        let _ = Ask::new(&method, "https", &authority, &path);
    }

    #[test]
    fn an_allowed_request_is_to_the_granted_origin(authority in "[a-z0-9@:.%\\[\\]/*_-]{0,40}") {
        let patterns = Patterns::parse(&["https://api.example.com"]).unwrap();
        if let Ok(ask) = Ask::new("GET", "https", &authority, "/")
            && patterns.allows(&ask).is_some()
        {
            prop_assert_eq!(ask.origin.to_string(), "https://api.example.com");
        }
    }
}
