//! URI templates (RFC 6570, the part of it that can be matched backwards), taken apart at compile time.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, LitStr, Result};

/// A template in parts.
pub struct Template {
    pub parts: Vec<Part>,
}

pub enum Part {
    Text(String),
    Segment(String),
    Rest(String),
}

impl Template {
    pub fn parse(literal: &LitStr) -> Result<Template> {
        let wrong = |text: String| Error::new(literal.span(), text);
        let template = literal.value();
        let mut parts: Vec<Part> = Vec::new();
        let mut left = template.as_str();
        while let Some((text, rest)) = left.split_once('{') {
            if !text.is_empty() {
                parts.push(Part::Text(text.into()));
            }
            let (variable, after) = rest.split_once('}').ok_or_else(|| wrong("a `{` has no `}`".into()))?;
            let (name, is_rest) = match variable.strip_prefix('+') {
                Some(name) => (name, true),
                None => (variable, false),
            };
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                return Err(wrong(format!(
                    "`{{{variable}}}` cannot be matched; write `{{name}}` for one segment or `{{+name}}` for several"
                )));
            }
            if parts.iter().any(|part| part.name() == Some(name)) {
                return Err(wrong(format!("the variable `{name}` is there twice")));
            }
            if let Some(before) = parts.last().and_then(Part::name) {
                return Err(wrong(format!("`{before}` and `{name}` touch, so it is unclear where one ends; put a character between them")));
            }
            parts.push(if is_rest { Part::Rest(name.into()) } else { Part::Segment(name.into()) });
            left = after;
        }
        if left.contains('}') {
            return Err(wrong("a `}` has no `{`".into()));
        }
        if !left.is_empty() {
            parts.push(Part::Text(left.into()));
        }
        if !parts.iter().any(|part| part.name().is_some()) {
            return Err(wrong("a template needs a variable, such as `{name}`; without one, write `#[resource(uri = …)]`".into()));
        }
        Ok(Template { parts })
    }

    pub fn names(&self) -> Vec<&str> {
        self.parts.iter().filter_map(Part::name).collect()
    }

    /// The parts as the runtime wants them.
    pub fn tokens(&self) -> TokenStream {
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(text) => quote!(::guesthouse::rt::Part::Text(#text)),
            Part::Segment(_) => quote!(::guesthouse::rt::Part::Segment),
            Part::Rest(_) => quote!(::guesthouse::rt::Part::Rest),
        });
        quote!(&[#(#parts),*])
    }
}

impl Part {
    fn name(&self) -> Option<&str> {
        match self {
            Part::Text(_) => None,
            Part::Segment(name) | Part::Rest(name) => Some(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> std::result::Result<Vec<String>, String> {
        match Template::parse(&LitStr::new(text, proc_macro2::Span::call_site())) {
            Ok(template) => Ok(template.names().into_iter().map(str::to_owned).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn templates_are_taken_apart_or_refused_with_the_reason() {
        assert_eq!(parse("t://{a}/x/{+b_1}").unwrap(), ["a", "b_1"]);
        for (text, reason) in [
            ("t://x", "needs a variable"),
            ("t://{a", "has no `}`"),
            ("t://{a}}", "has no `{`"),
            ("t://{?q}", "cannot be matched"),
            ("t://{a,b}", "cannot be matched"),
            ("t://{}", "cannot be matched"),
            ("t://{a}{b}", "touch"),
            ("t://{a}/{a}", "twice"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
