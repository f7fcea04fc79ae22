//! Which URIs a URI template stands for (RFC 6570, read backwards).
//!
//! The host expands no templates; it only needs to know whose template a URI could have come from, and whose fits most
//! literally. Each expression becomes what its operator can expand to, and the whole is compiled to a regular expression
//! that runs in linear time.

use anyhow::{Result, bail};
use regex::Regex;
use std::fmt::Write as _;

/// Longest template that is compiled.
const TEMPLATE_LEN_MAX: usize = 2_048;
/// Bound of the compiled expression, in bytes.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// A compiled URI template.
#[derive(Clone, Debug)]
pub struct UriTemplate {
    pattern: Regex,
    literal_len: usize,
}

impl UriTemplate {
    /// Compiles a template, or says where it is wrong.
    pub fn parse(template: &str) -> Result<Self> {
        if template.len() > TEMPLATE_LEN_MAX {
            bail!("the URI template is longer than {TEMPLATE_LEN_MAX} bytes");
        }
        let mut pattern = String::from(r"\A");
        let mut literal_len = 0;
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            let (literal, after) = rest.split_at(open);
            push_literal(&mut pattern, literal, template)?;
            literal_len += literal.len();
            let Some((expression, tail)) = after.strip_prefix('{').and_then(|inner| inner.split_once('}')) else {
                bail!("the URI template `{template}` has a `{{` without a `}}`");
            };
            push_expression(&mut pattern, expression, template)?;
            rest = tail;
        }
        push_literal(&mut pattern, rest, template)?;
        literal_len += rest.len();
        pattern.push_str(r"\z");
        let pattern = regex::RegexBuilder::new(&pattern).size_limit(COMPILED_BYTES_MAX).build()?;
        Ok(Self { pattern, literal_len })
    }

    /// Whether an expansion of the template can be `uri`.
    pub fn matches(&self, uri: &str) -> bool {
        self.pattern.is_match(uri)
    }

    /// How many bytes of the template are fixed; of two that match, the greater fits more literally.
    pub fn literal_len(&self) -> usize {
        self.literal_len
    }
}

fn push_literal(pattern: &mut String, literal: &str, template: &str) -> Result<()> {
    if literal.contains('}') {
        bail!("the URI template `{template}` has a `}}` without a `{{`");
    }
    pattern.push_str(&regex::escape(literal));
    Ok(())
}

/// RFC 6570, section 3.2: per operator, the first character, the separator, and whether reserved characters pass unencoded.
fn push_expression(pattern: &mut String, expression: &str, template: &str) -> Result<()> {
    const PLAIN: &str = r"[^:/?#\[\]@!$&'()*+,;=]";
    const ANY: &str = r"[\s\S]";
    let operator = expression.chars().next().filter(|c| "+#./;?&".contains(*c));
    let names = operator.map_or(expression, |c| expression.get(c.len_utf8()..).unwrap_or_default());
    let mut count = 0usize;
    let mut explode = false;
    for name in names.split(',') {
        let bare = name
            .strip_suffix('*')
            .or_else(|| name.split_once(':').filter(|(_, n)| n.parse::<u16>().is_ok()).map(|(name, _)| name))
            .unwrap_or(name);
        if bare.is_empty() || !bare.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '%')) {
            bail!("the URI template `{template}` has the variable `{name}`, which is none of RFC 6570");
        }
        explode |= name.ends_with('*');
        count += 1;
    }
    // Without `*` a list is joined by commas inside one value, so a comma may occur in each.
    let value = format!("(?:{PLAIN}|,)*");
    let written = match operator {
        None if count == 1 && !explode => write!(pattern, "{PLAIN}*"),
        None => write!(pattern, "(?:{PLAIN}|[,=])*"),
        Some('+') => write!(pattern, "{ANY}*"),
        Some('#') => write!(pattern, "(?:#{ANY}*)?"),
        Some(c @ ('.' | '/')) => {
            let first = regex::escape(&c.to_string());
            if explode { write!(pattern, "(?:{first}(?:{PLAIN}|[,=])*)*") } else { write!(pattern, "(?:{first}{value}){{0,{count}}}") }
        }
        Some(c) => {
            let first = regex::escape(&c.to_string());
            let next = if c == ';' { ";" } else { "&" };
            write!(pattern, r"(?:{first}[^#{next}]*(?:{next}[^#{next}]*)*)?")
        }
    };
    Ok(written?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_matches_the_templates_it_can_come_from() {
        for (template, uri, matches) in [
            ("textkit://case/{style}/{text}", "textkit://case/upper/hello%20world", true),
            ("textkit://case/{style}/{text}", "textkit://case/upper/a/b", false),
            ("textkit://case/{style}/{text}", "textkit://case/upper", false),
            ("file:///{+path}", "file:///a/b/c.txt", true),
            ("file:///{+path}", "file:///a\n", true),
            ("x://{id}", "x://1\n/", false),
            ("x://a.b/{id}", "x://aXb/1", false),
            ("x://list{?page,size}", "x://list", true),
            ("x://list{?page,size}", "x://list?page=2&size=10", true),
            ("x://list{?page,size}", "x://lists", false),
            ("x://a{/b*}", "x://a/1/2/3", true),
            ("x://a{/b}", "x://a/1/2", false),
            ("x://a{/b,c}", "x://a/1/2", true),
            ("x://{b}{.ext}", "x://name.txt", true),
            ("x://{b}{;p}", "x://name;p=1", true),
            ("x://{b}{#frag}", "x://name#top", true),
            ("plain://uri", "plain://uri", true),
            ("plain://uri", "plain://uri\n", false),
        ] {
            assert_eq!(UriTemplate::parse(template).unwrap().matches(uri), matches, "{template} {uri}");
        }
    }

    #[test]
    fn a_malformed_template_is_refused() {
        for template in ["x://{a", "x://a}", "x://{}", "x://{a b}", "x://{!a}", "x://{a:x}", &"a".repeat(3_000)] {
            assert!(UriTemplate::parse(template).is_err(), "{template}");
        }
    }

    #[test]
    fn the_more_literal_template_is_told_by_its_length() {
        let loose = UriTemplate::parse("x://{+rest}").unwrap();
        let exact = UriTemplate::parse("x://items/{id}").unwrap();
        assert!(exact.literal_len() > loose.literal_len());
    }
}
