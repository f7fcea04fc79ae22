//! JSON of a guest as clients can take it: valid JSON may still nest deeper than their parsers go, or hold numbers that they
//! refuse, and a client that cannot read a message may give up the whole connection.

/// Objects and arrays within each other. Parsers that call themselves stop at 128, say, the message around the value counted.
const DEPTH_MAX: usize = 100;
/// Longest number that is surely finite, where it has no exponent.
const FINITE_LEN_MAX: usize = 300;

/// What clients could not read of a text that is valid JSON, if anything.
pub(super) fn problem(json: &str) -> Option<String> {
    let (mut deepest, mut open) = (0_usize, 0_usize);
    let mut rest = json.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        match byte {
            b'"' => rest = after_string(tail),
            b'-' | b'0'..=b'9' => {
                let end = rest.iter().position(|byte| !is_of_number(*byte)).unwrap_or(rest.len());
                let (number, tail) = rest.split_at(end);
                if !is_finite(number) {
                    return Some("holds a number beyond those of IEEE 754".into());
                }
                rest = tail;
            }
            _ => {
                match byte {
                    b'{' | b'[' => open = open.saturating_add(1),
                    b'}' | b']' => open = open.saturating_sub(1),
                    _ => {}
                }
                deepest = deepest.max(open);
                rest = tail;
            }
        }
    }
    (deepest > DEPTH_MAX).then(|| format!("nests deeper than {DEPTH_MAX} levels"))
}

/// What follows the string whose opening quote was just read.
fn after_string(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        let escaped = rest.get(at) == Some(&b'\\');
        rest = rest.get(at.saturating_add(if escaped { 2 } else { 1 })..).unwrap_or_default();
        if !escaped {
            return rest;
        }
    }
    &[]
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

fn is_finite(number: &[u8]) -> bool {
    let is_plain = number.len() <= FINITE_LEN_MAX && !number.iter().any(|byte| matches!(byte, b'e' | b'E'));
    is_plain || std::str::from_utf8(number).ok().and_then(|number| number.parse::<f64>().ok()).is_some_and(f64::is_finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_and_numbers_have_an_end_and_strings_do_not_count() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        for (json, part) in [
            (nested(DEPTH_MAX), None),
            (nested(DEPTH_MAX + 1), Some("100 levels")),
            (nested(1_000_000), Some("100 levels")),
            (format!("[{0},{0}]", nested(DEPTH_MAX - 1)), None),
            (format!("\"\\\"{}\"", "[".repeat(1_000)), None),
            (format!("{{\"{}\":1}}", "[1e999".repeat(1_000)), None),
            ("[1e308,-1.5E+308,0.0,12345678901234567890]".into(), None),
            ("{\"a\":1e309}".into(), Some("IEEE 754")),
            ("-1E999999999999999999999".into(), Some("IEEE 754")),
            ("1e-999999999999".into(), None),
            ("9".repeat(308), None),
            ("9".repeat(310), Some("IEEE 754")),
            (format!("0.{}", "1".repeat(100_000)), None),
        ] {
            let found = problem(&json);
            assert_eq!(found.is_some(), part.is_some(), "{json:.80}: {found:?}");
            assert!(part.is_none_or(|part| found.unwrap().contains(part)));
        }
    }

    #[test]
    fn what_it_lets_through_can_be_parsed_within_a_message() {
        let deepest = format!("{}1{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
        let message = format!("{{\"result\":{{\"content\":[{{\"resource\":{{\"_meta\":{deepest}}}}}]}}}}");
        assert!(serde_json::from_str::<serde_json::Value>(&message).is_ok());
    }
}
