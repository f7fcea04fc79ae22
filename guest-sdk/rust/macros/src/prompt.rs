//! `#[prompt]`

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Ident, ImplItemFn, Result, Type};

use crate::attrs::Attr;
use crate::docs;
use crate::params::{self, Param, Shape};
use crate::tool::{optional, returns};

pub const KEYS: &[&str] = &["name", "title", "description", "meta"];

pub struct Prompt {
    pub name: String,
    pub method: Ident,
    pub params: Vec<Param>,
    attr: Attr,
    description: String,
    has_self: bool,
    returns: Type,
}

impl Prompt {
    pub fn parse(function: &mut ImplItemFn, attr: Attr) -> Result<Prompt> {
        let (has_self, params) = params::take(&mut function.sig)?;
        for param in &params {
            param.only("a prompt", &["name", "description", "complete"])?;
        }
        let method = function.sig.ident.clone();
        let name = attr.text("name")?.map_or_else(|| syn::ext::IdentExt::unraw(&method).to_string(), |name| name.value());
        let description = attr.text("description")?.map_or_else(|| docs::text(&function.attrs), |text| text.value());
        Ok(Prompt { name, method, params, description, has_self, returns: returns(function)?, attr })
    }

    /// The constant that describes the prompt.
    pub fn spec(&self) -> Result<TokenStream> {
        let Prompt { name, description, .. } = self;
        let (title, meta) = (optional(self.attr.text("title")?), optional(self.attr.text("meta")?));
        let arguments = self.params.iter().filter(|param| !param.is_ctx()).map(|param| {
            let (name, description, required) = (&param.name, &param.description, !param.is_optional());
            quote!(::guesthouse::rt::ArgumentSpec { name: #name, description: #description, required: #required })
        });
        Ok(quote! {
            ::guesthouse::rt::PromptSpec {
                name: #name, title: #title, description: #description, arguments: &[#(#arguments),*], meta: #meta,
            }
        })
    }

    /// The arm of `get_prompt` that makes the messages.
    pub fn arm(&self) -> Result<TokenStream> {
        let (name, description) = (&self.name, &self.description);
        let ctx = self.params.iter().any(Param::is_ctx).then(|| quote!(let ctx = ::guesthouse::Ctx::new();));
        let passed: Vec<_> = self.params.iter().map(passed).collect();
        let call = params::call(&self.method, self.has_self, &passed);
        let finish = quote_spanned!(self.returns.span()=> ::guesthouse::rt::finish_prompt);
        Ok(quote!(#name => { #ctx #finish(#call, #description) }))
    }
}

/// An argument of a prompt is a text; other types are parsed from it.
fn passed(param: &Param) -> TokenStream {
    let name = &param.name;
    let given = quote!(::guesthouse::rt::argument(arguments, #name));
    let required = quote!(::guesthouse::rt::required(arguments, #name)?);
    let is_string =
        |ty: &Type| matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|segment| segment.ident == "String"));
    match &param.shape {
        Shape::Ctx => quote!(&ctx),
        Shape::Borrowed(ty) if is_string(ty) => required,
        Shape::OptionalBorrowed(ty) if is_string(ty) => given,
        Shape::Value(ty) => quote_spanned!(param.span=> ::guesthouse::rt::parse::<#ty>(#name, #required)?),
        Shape::Borrowed(ty) => quote_spanned!(param.span=> &::guesthouse::rt::parse::<#ty>(#name, #required)?),
        Shape::Optional(ty) => {
            quote_spanned!(param.span=> #given.map(|value| ::guesthouse::rt::parse::<#ty>(#name, value)).transpose()?)
        }
        Shape::OptionalBorrowed(ty) => {
            quote_spanned!(param.span=> #given.map(|value| ::guesthouse::rt::parse::<#ty>(#name, value)).transpose()?.as_ref())
        }
    }
}
