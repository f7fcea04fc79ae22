//! The attributes of serde that change what JSON looks like.

use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, LitStr, Result, Token};

/// Those of a type.
#[derive(Default)]
pub struct Container {
    pub rename_all: Option<String>,
    pub rename_all_fields: Option<String>,
    pub tag: Option<String>,
    pub content: Option<String>,
    pub untagged: bool,
    pub transparent: bool,
    pub deny_unknown_fields: bool,
    pub default: bool,
}

/// Those of a field or a variant.
#[derive(Default)]
pub struct Field {
    pub rename: Option<String>,
    pub rename_all: Option<String>,
    pub skip: bool,
    pub default: bool,
    pub omits_none: bool,
}

fn each(attrs: &[Attribute], mut act: impl FnMut(&ParseNestedMeta) -> Result<()>) -> Result<()> {
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("serde")) {
        attr.parse_nested_meta(|meta| act(&meta))?;
    }
    Ok(())
}

fn text(meta: &ParseNestedMeta) -> Result<String> {
    match meta.input.peek(Token![=]) {
        true => Ok(meta.value()?.parse::<LitStr>()?.value()),
        false => Err(meta.error("`Schema` understands only names that are the same in both directions: write `= \"…\"`")),
    }
}

/// Passes over a value that does not matter here.
fn ignore(meta: &ParseNestedMeta) -> Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<syn::Expr>()?;
    } else if meta.input.peek(syn::token::Paren) {
        let inner;
        syn::parenthesized!(inner in meta.input);
        Punctuated::<syn::Meta, Token![,]>::parse_terminated(&inner)?;
    }
    Ok(())
}

impl Container {
    pub fn of(attrs: &[Attribute]) -> Result<Container> {
        let mut found = Container::default();
        each(attrs, |meta| {
            match meta.path.get_ident().map(ToString::to_string).unwrap_or_default().as_str() {
                "rename_all" => found.rename_all = Some(text(meta)?),
                "rename_all_fields" => found.rename_all_fields = Some(text(meta)?),
                "tag" => found.tag = Some(text(meta)?),
                "content" => found.content = Some(text(meta)?),
                "untagged" => found.untagged = true,
                "transparent" => found.transparent = true,
                "deny_unknown_fields" => found.deny_unknown_fields = true,
                "default" => {
                    ignore(meta)?;
                    found.default = true;
                }
                name @ ("from" | "try_from" | "into" | "remote") => {
                    return Err(meta.error(format!("`Schema` cannot see through `{name}`; implement `guesthouse::Schema` by hand")));
                }
                _ => ignore(meta)?,
            }
            Ok(())
        })?;
        Ok(found)
    }
}

impl Field {
    pub fn of(attrs: &[Attribute]) -> Result<Field> {
        let mut found = Field::default();
        each(attrs, |meta| {
            match meta.path.get_ident().map(ToString::to_string).unwrap_or_default().as_str() {
                "rename" => found.rename = Some(text(meta)?),
                "rename_all" => found.rename_all = Some(text(meta)?),
                "skip" | "skip_serializing" | "skip_deserializing" => found.skip = true,
                "default" => {
                    ignore(meta)?;
                    found.default = true;
                }
                "skip_serializing_if" => {
                    ignore(meta)?;
                    found.omits_none = true;
                }
                name @ ("flatten" | "with" | "serialize_with" | "deserialize_with") => {
                    return Err(meta.error(format!("`Schema` cannot see through `{name}`; implement `guesthouse::Schema` by hand")));
                }
                _ => ignore(meta)?,
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// A name as `rename_all` makes it; `is_field` says whether it comes in snake case rather than Pascal case.
pub fn renamed(name: &str, rule: Option<&str>, is_field: bool, attrs: &[Attribute]) -> Result<String> {
    let Some(rule) = rule else { return Ok(name.into()) };
    let words: Vec<String> = match is_field {
        true => name.split('_').filter(|word| !word.is_empty()).map(str::to_lowercase).collect(),
        false => split_pascal(name),
    };
    let capital = |word: &String| word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect::<String>();
    Ok(match rule {
        "lowercase" => {
            if is_field {
                name.into()
            } else {
                words.concat()
            }
        }
        "UPPERCASE" => {
            if is_field {
                name.to_uppercase()
            } else {
                words.concat().to_uppercase()
            }
        }
        "PascalCase" => words.iter().map(capital).collect(),
        "camelCase" => words.iter().take(1).cloned().chain(words.iter().skip(1).map(capital)).collect(),
        "snake_case" => words.join("_"),
        "SCREAMING_SNAKE_CASE" => words.join("_").to_uppercase(),
        "kebab-case" => words.join("-"),
        "SCREAMING-KEBAB-CASE" => words.join("-").to_uppercase(),
        other => {
            let span = attrs.first().map_or_else(proc_macro2::Span::call_site, syn::spanned::Spanned::span);
            return Err(Error::new(span, format!("`rename_all = \"{other}\"` is no rule of serde")));
        }
    })
}

/// serde begins a word at every capital.
fn split_pascal(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for c in name.chars() {
        match words.last_mut().filter(|_| !c.is_uppercase()) {
            Some(word) => word.push(c),
            None => words.push(c.to_lowercase().collect()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::renamed;

    #[test]
    fn names_become_what_serde_makes_of_them() {
        for (rule, field, variant) in [
            ("lowercase", "first_name", "firstname"),
            ("UPPERCASE", "FIRST_NAME", "FIRSTNAME"),
            ("PascalCase", "FirstName", "FirstName"),
            ("camelCase", "firstName", "firstName"),
            ("snake_case", "first_name", "first_name"),
            ("SCREAMING_SNAKE_CASE", "FIRST_NAME", "FIRST_NAME"),
            ("kebab-case", "first-name", "first-name"),
            ("SCREAMING-KEBAB-CASE", "FIRST-NAME", "FIRST-NAME"),
        ] {
            assert_eq!(renamed("first_name", Some(rule), true, &[]).unwrap(), field);
            assert_eq!(renamed("FirstName", Some(rule), false, &[]).unwrap(), variant);
        }
    }
}
