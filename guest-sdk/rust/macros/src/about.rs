//! What an attribute says about a place in a schema.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Result;

use crate::attrs::Attr;
use crate::literal;

/// Keys that become members of a schema, with their JSON names, where a number is needed.
const NUMBERS: [(&str, &str); 4] =
    [("min_length", "minLength"), ("max_length", "maxLength"), ("min_items", "minItems"), ("max_items", "maxItems")];
const OTHERS: [(&str, &str); 4] = [("pattern", "pattern"), ("format", "format"), ("default", "default"), ("one_of", "enum")];
/// All keys that [`tokens`] reads.
pub const KEYS: &[&str] =
    &["min", "max", "min_length", "max_length", "min_items", "max_items", "pattern", "format", "default", "one_of", "header"];

/// The `About` that an attribute and a description amount to.
pub fn tokens(attr: &Attr, description: &str) -> Result<TokenStream> {
    let bound = |key: &str| attr.expr(key)?.map_or(Ok(String::new()), literal::number);
    let (minimum, maximum) = (bound("min")?, bound("max")?);
    let mut more = String::new();
    for (key, name) in NUMBERS {
        if let Some(value) = attr.expr(key)? {
            more.push_str(&format!(",\"{name}\":{}", literal::number(value)?));
        }
    }
    for (key, name) in OTHERS {
        if let Some(value) = attr.expr(key)? {
            more.push_str(&format!(",\"{name}\":{}", literal::json(value)?));
        }
    }
    if let Some(header) = attr.text("header")? {
        more.push_str(&format!(",\"x-mcp-header\":{}", literal::quote(&header.value())));
    }
    Ok(quote! {
        ::guesthouse::rt::About { description: #description, minimum: #minimum, maximum: #maximum, more: #more }
    })
}
