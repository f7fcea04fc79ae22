//! Measures how deep a JSON text nests, before anything parses it.

/// How deep objects and arrays nest, without regard to whether the text is valid JSON.
pub(super) fn depth(text: &[u8]) -> usize {
    let mut deepest = 0usize;
    let mut open = 0usize;
    let mut rest = text;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'"' => rest = after_string(rest),
            b'{' | b'[' => {
                open = open.saturating_add(1);
                deepest = deepest.max(open);
            }
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// What follows the string literal whose opening quote was just read.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_do_not_count() {
        for (text, expected) in [
            ("1", 0),
            ("{}", 1),
            ("[[],[[]]]", 3),
            (r#"{"a":"[[[[","b":[]}"#, 2),
            (r#"{"a\"[[":[]}"#, 2),
            (r#"["\\",[]]"#, 2),
            ("]]]]", 0),
            (r#"["[["#, 1),
        ] {
            assert_eq!(depth(text.as_bytes()), expected, "{text}");
        }
    }
}
