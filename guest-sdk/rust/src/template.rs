//! Matches URIs against templates that the macro has taken apart.

use std::borrow::Cow;

/// One part of a URI template.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// Text as it stands.
    Text(&'static str),
    /// `{name}`: at least one character, none of `/?#`.
    Segment,
    /// `{+name}`: at least one character of any kind.
    Rest,
}

/// The variables of a URI in their order, percent-decoded; none where it does not fit the template.
#[doc(hidden)]
pub fn matches<'u, const N: usize>(parts: &[Part], uri: &'u str) -> Option<[Cow<'u, str>; N]> {
    let mut values = [const { Cow::Borrowed("") }; N];
    let mut slots = values.iter_mut();
    let mut left = uri;
    let mut parts = parts.iter().copied().peekable();
    while let Some(part) = parts.next() {
        if let Part::Text(text) = part {
            left = left.strip_prefix(text)?;
            continue;
        }
        // The macro lets no two variables follow each other, so a text or the end is next.
        let end = match (parts.peek(), part) {
            (Some(Part::Text(text)), Part::Rest) => left.rfind(text)?,
            (Some(Part::Text(text)), _) => left.find(text)?,
            _ => left.len(),
        };
        let (value, rest) = left.split_at_checked(end)?;
        if value.is_empty() || (matches!(part, Part::Segment) && value.contains(['/', '?', '#'])) {
            return None;
        }
        *slots.next()? = percent_decoded(value)?;
        left = rest;
    }
    left.is_empty().then_some(values)
}

/// None where an escape is broken, or what it spells is not UTF-8.
fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        decoded.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &[Part] = &[Part::Text("t://case/"), Part::Segment, Part::Text("/"), Part::Segment];
    const FILE: &[Part] = &[Part::Text("file:///"), Part::Rest];
    const ENDED: &[Part] = &[Part::Text("t://"), Part::Rest, Part::Text("/data")];

    fn found<const N: usize>(parts: &[Part], uri: &str) -> Option<Vec<String>> {
        matches::<N>(parts, uri).map(|values| values.into_iter().map(Cow::into_owned).collect())
    }

    #[test]
    fn variables_are_segments_and_decoded() {
        assert_eq!(found::<2>(CASE, "t://case/upper/a%20b%2Fc"), Some(vec!["upper".into(), "a b/c".into()]));
        assert_eq!(found::<2>(CASE, "t://case/upper/%C3%A9"), Some(vec!["upper".into(), "é".into()]));
        assert_eq!(found::<1>(FILE, "file:///a/b%20c?x#y"), Some(vec!["a/b c?x#y".into()]));
        assert_eq!(found::<1>(ENDED, "t://a/data/b/data"), Some(vec!["a/data/b".into()]));
    }

    #[test]
    fn what_does_not_fit_is_nothing() {
        for uri in
            ["t://case/upper", "t://case/upper/", "t://case//x", "t://case/upper/a/b", "t://case/upper/a?b", "x", "", "t://case/upper/a\n/"]
        {
            assert_eq!(found::<2>(CASE, uri), None, "{uri}");
        }
        for uri in ["t://case/upper/%", "t://case/upper/%2", "t://case/upper/%zz", "t://case/upper/%FF", "t://case/upper/%+1"] {
            assert_eq!(found::<2>(CASE, uri), None, "{uri}");
        }
        assert_eq!(found::<1>(FILE, "file:///"), None);
        assert_eq!(found::<1>(ENDED, "t:///data"), None);
    }
}
