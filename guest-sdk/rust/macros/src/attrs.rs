//! Arguments of our attributes: `#[tool(read_only, title = "…")]`.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, Expr, ExprLit, Ident, Lit, LitStr, Meta, Result, Token};

/// One attribute, taken off its item.
pub struct Attr {
    pub span: Span,
    items: Vec<Item>,
}

struct Item {
    key: Ident,
    value: Option<Expr>,
}

impl Parse for Item {
    fn parse(input: ParseStream) -> Result<Self> {
        let key: Ident = input.call(syn::ext::IdentExt::parse_any)?;
        let value = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None if input.peek(syn::token::Paren) => {
                let list;
                let paren = syn::parenthesized!(list in input);
                let elems = Punctuated::<Expr, Token![,]>::parse_terminated(&list)?;
                let bracket_token = syn::token::Bracket(paren.span);
                Some(Expr::Array(syn::ExprArray { attrs: Vec::new(), bracket_token, elems }))
            }
            None => None,
        };
        Ok(Item { key, value })
    }
}

impl Attr {
    /// An attribute without arguments.
    pub fn empty(span: Span) -> Attr {
        Attr { span, items: Vec::new() }
    }

    /// Parses the arguments; unknown keys and repeated ones are errors.
    pub fn parse(input: proc_macro2::TokenStream, span: Span, name: &str, keys: &[&str]) -> Result<Attr> {
        let parser = Punctuated::<Item, Token![,]>::parse_terminated;
        let items: Vec<Item> = syn::parse::Parser::parse2(parser, input)?.into_iter().collect();
        for (index, item) in items.iter().enumerate() {
            let key = item.key.to_string();
            if !keys.contains(&key.as_str()) {
                return Err(Error::new(item.key.span(), unknown(&key, name, keys)));
            }
            if items.iter().take(index).any(|earlier| earlier.key == item.key) {
                return Err(Error::new(item.key.span(), format!("`{key}` is given twice")));
            }
        }
        Ok(Attr { span, items })
    }

    /// Takes `#[name]` or `#[name(…)]` off an item.
    pub fn take(attrs: &mut Vec<Attribute>, name: &str, keys: &[&str]) -> Result<Option<Attr>> {
        let Some(index) = attrs.iter().position(|attr| attr.path().is_ident(name)) else { return Ok(None) };
        let attr = attrs.remove(index);
        if let Some(again) = attrs.iter().find(|attr| attr.path().is_ident(name)) {
            return Err(Error::new(again.span(), format!("`#[{name}]` is given twice")));
        }
        let span = attr.path().span();
        match attr.meta {
            Meta::Path(_) => Ok(Some(Attr::empty(span))),
            Meta::List(list) => Attr::parse(list.tokens, span, name, keys).map(Some),
            Meta::NameValue(value) => Err(Error::new(value.span(), format!("write `#[{name}(…)]`"))),
        }
    }

    fn item(&self, key: &str) -> Option<&Item> {
        self.items.iter().find(|item| item.key == key)
    }

    /// Whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.item(key).is_some()
    }

    /// `key = …`
    pub fn expr(&self, key: &str) -> Result<Option<&Expr>> {
        match self.item(key) {
            None => Ok(None),
            Some(Item { value: Some(value), .. }) => Ok(Some(value)),
            Some(item) => Err(Error::new(item.key.span(), format!("`{key}` needs a value: `{key} = …`"))),
        }
    }

    /// `key = "…"`
    pub fn text(&self, key: &str) -> Result<Option<LitStr>> {
        match self.expr(key)? {
            None => Ok(None),
            Some(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) => Ok(Some(text.clone())),
            Some(other) => Err(Error::new(other.span(), format!("`{key}` needs a text: `{key} = \"…\"`"))),
        }
    }

    /// `key`, `key = true` or `key = false`.
    pub fn flag(&self, key: &str) -> Result<Option<bool>> {
        match self.item(key) {
            None => Ok(None),
            Some(Item { value: None, .. }) => Ok(Some(true)),
            Some(Item { value: Some(Expr::Lit(ExprLit { lit: Lit::Bool(value), .. })), .. }) => Ok(Some(value.value)),
            Some(item) => Err(Error::new(item.key.span(), format!("write `{key}` or `{key} = false`"))),
        }
    }

    /// `key(a, b)`: a list of names.
    pub fn idents(&self, key: &str) -> Result<Vec<Ident>> {
        let Some(value) = self.expr(key)? else { return Ok(Vec::new()) };
        let Expr::Array(list) = value else {
            return Err(Error::new(value.span(), format!("write `{key}(…)`")));
        };
        let ident = |expr: &Expr| match expr {
            Expr::Path(path) => path.path.require_ident().cloned(),
            other => Err(Error::new(other.span(), "a name is needed here")),
        };
        list.elems.iter().map(ident).collect()
    }
}

fn unknown(key: &str, name: &str, keys: &[&str]) -> String {
    let plain = |text: &str| text.replace('_', "").to_lowercase();
    let near =
        keys.iter().min_by_key(|known| distance(&plain(known), &plain(key))).filter(|known| distance(&plain(known), &plain(key)) <= 2);
    match near {
        Some(near) => format!("`#[{name}]` has no `{key}`; did you mean `{near}`?"),
        None if keys.is_empty() => format!("`#[{name}]` takes no arguments"),
        None => format!("`#[{name}]` has no `{key}`; it has {}", list(keys)),
    }
}

/// `a`, `b` and `c`, in code quotes.
pub fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => "none".into(),
    }
}

/// Edits that turn one text into the other.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
