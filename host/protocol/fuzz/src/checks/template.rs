//! URI templates: a template, and a URI on the next line; an expansion always matches its template.

use std::fmt::Write as _;

use super::super::host::template::UriTemplate;
use super::split;

/// The first line is a template, the rest a URI and a value for every variable.
pub fn check(data: &[u8]) {
    let (template, rest) = split(data, b"\n");
    let (Ok(template), Ok(uri)) = (std::str::from_utf8(template), std::str::from_utf8(rest)) else { return };
    let Ok(parsed) = UriTemplate::parse(template) else { return };
    assert!(parsed.literal_len() <= template.len());
    parsed.matches(uri);
    if let Some(expansion) = expand(template, uri) {
        assert!(parsed.matches(&expansion), "{template} does not match its own expansion {expansion}");
    }
}

/// Every variable with the same text, as RFC 6570 expands it; none if the template asks for more than plain, `+` and `#`
/// expressions without modifiers.
fn expand(template: &str, value: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        out.push_str(literal);
        let (expression, tail) = after.split_once('}')?;
        if expression.contains([':', '*']) {
            return None;
        }
        let (operator, names) = match expression.split_at_checked(1) {
            Some((operator @ ("+" | "#" | "." | "/" | ";" | "?" | "&"), names)) => (operator, names),
            _ => ("", expression),
        };
        let encoded = encode(value, matches!(operator, "+" | "#"));
        let (first, separator, named) = match operator {
            "+" | "" => ("", ",", false),
            "#" => ("#", ",", false),
            "." | "/" => (operator, operator, false),
            ";" => (";", ";", true),
            "?" => ("?", "&", true),
            _ => ("&", "&", true),
        };
        let values: Vec<String> = names.split(',').map(|name| if named { format!("{name}={encoded}") } else { encoded.clone() }).collect();
        out.push_str(first);
        out.push_str(&values.join(separator));
        rest = tail;
    }
    out.push_str(rest);
    Some(out)
}

fn encode(value: &str, keeps_reserved: bool) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        let kept = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || keeps_reserved && b":/?#[]@!$&'()*+,;=".contains(&byte);
        if kept {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("memory takes everything");
        }
    }
    out
}
