//! `#[resource]` and `#[template]`

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Error, Ident, ImplItemFn, LitStr, Result, Type};

use crate::attrs::{Attr, list};
use crate::docs;
use crate::params::{self, Param, Shape};
use crate::template::Template;
use crate::tool::{optional, returns};

pub const KEYS: &[&str] = &["uri", "name", "title", "description", "mime", "meta"];

pub struct Resource {
    pub uri: LitStr,
    /// For a resource template, the URI's parts.
    pub template: Option<Template>,
    pub method: Ident,
    pub params: Vec<Param>,
    attr: Attr,
    name: String,
    description: String,
    has_self: bool,
    returns: Type,
}

impl Resource {
    pub fn parse(function: &mut ImplItemFn, attr: Attr, is_template: bool) -> Result<Resource> {
        let kind = if is_template { "template" } else { "resource" };
        let Some(uri) = attr.text("uri")? else {
            return Err(Error::new(attr.span, format!("a {kind} needs a URI: `#[{kind}(uri = \"…\")]`")));
        };
        let scheme_end = uri.value().find(':').unwrap_or(0);
        if !uri.value().starts_with(|c: char| c.is_ascii_alphabetic()) || scheme_end == 0 {
            return Err(Error::new(uri.span(), "a URI begins with a scheme, such as `notes://`"));
        }
        let (has_self, params) = params::take(&mut function.sig)?;
        let template = match is_template {
            true => Some(checked_template(&uri, &params)?),
            false => {
                refuse_params(&uri, &params)?;
                None
            }
        };
        let method = function.sig.ident.clone();
        let name = attr.text("name")?.map_or_else(|| syn::ext::IdentExt::unraw(&method).to_string(), |name| name.value());
        let description = attr.text("description")?.map_or_else(|| docs::text(&function.attrs), |text| text.value());
        Ok(Resource { uri, template, method, params, name, description, has_self, returns: returns(function)?, attr })
    }

    fn mime_type(&self) -> Result<TokenStream> {
        let returns = &self.returns;
        Ok(match self.attr.text("mime")? {
            Some(mime) => quote!(#mime),
            None => quote_spanned!(returns.span()=> <#returns as ::guesthouse::ResourceReturn>::MIME_TYPE),
        })
    }

    /// The constant that describes the resource.
    pub fn spec(&self) -> Result<TokenStream> {
        let Resource { uri, name, description, .. } = self;
        let (title, meta, mime_type) = (optional(self.attr.text("title")?), optional(self.attr.text("meta")?), self.mime_type()?);
        Ok(quote! {
            ::guesthouse::rt::ResourceSpec {
                uri: #uri, name: #name, title: #title, description: #description, mime_type: #mime_type, meta: #meta,
            }
        })
    }

    /// What `read_resource` does to see whether `uri` is of this resource, and to read it.
    pub fn attempt(&self) -> Result<TokenStream> {
        let uri = &self.uri;
        let mime_type = self.mime_type()?;
        let ctx = self.params.iter().any(Param::is_ctx).then(|| quote!(let ctx = ::guesthouse::Ctx::new();));
        let finish = quote_spanned!(self.returns.span()=> ::guesthouse::rt::finish_resource);
        let Some(template) = &self.template else {
            let passed: Vec<_> = self.params.iter().map(|param| param.passed(&quote!())).collect();
            let call = params::call(&self.method, self.has_self, &passed);
            return Ok(quote!(if uri == #uri { #ctx return #finish(#call, uri, #mime_type); }));
        };
        let names = template.names();
        let parts = template.tokens();
        let mut locals = Vec::new();
        let mut conversions = Vec::new();
        for name in &names {
            let Some(param) = self.params.iter().find(|param| param.name == *name) else { continue };
            let local = param.local();
            if let (Some(ty), false) = (param.value_type(), is_string(param)) {
                conversions.push(quote_spanned! {param.span=>
                    let ::core::result::Result::Ok(#local) = #local.parse::<#ty>() else { return ::guesthouse::rt::unknown(uri); };
                });
            }
            locals.push(local);
        }
        let pass = |param: &Param| {
            let local = param.local();
            match (&param.shape, is_string(param)) {
                (Shape::Value(_), true) => quote!(#local.into_owned()),
                _ => param.passed(&quote!(#local)),
            }
        };
        let passed: Vec<_> = self.params.iter().map(pass).collect();
        let call = params::call(&self.method, self.has_self, &passed);
        Ok(quote! {
            if let ::core::option::Option::Some([#(#locals),*]) = ::guesthouse::rt::matches(#parts, uri) {
                #(#conversions)* #ctx
                return #finish(#call, uri, #mime_type);
            }
        })
    }
}

fn is_string(param: &Param) -> bool {
    matches!(param.value_type(), Some(Type::Path(path)) if path.path.segments.last().is_some_and(|segment| segment.ident == "String"))
}

fn refuse_params(uri: &LitStr, params: &[Param]) -> Result<()> {
    if uri.value().contains(['{', '}']) {
        return Err(Error::new(uri.span(), "a URI with variables is a template: write `#[template(uri = …)]`"));
    }
    match params.iter().find(|param| !param.is_ctx()) {
        Some(param) => {
            Err(Error::new(param.ident.span(), "a resource takes no arguments (only `&Ctx`); one with variables is a `#[template]`"))
        }
        None => Ok(()),
    }
}

fn checked_template(uri: &LitStr, params: &[Param]) -> Result<Template> {
    let template = Template::parse(uri)?;
    let names = template.names();
    for param in params.iter().filter(|param| !param.is_ctx()) {
        param.only("a template", &["name", "description", "complete"])?;
        if !names.contains(&param.name.as_str()) {
            let text = format!("the URI has no variable `{}`; it has {}", param.name, list(&names));
            return Err(Error::new(param.ident.span(), text));
        }
        if param.is_optional() {
            return Err(Error::new(param.span, "a variable of a template is never absent: remove `Option`"));
        }
    }
    match names.iter().find(|name| !params.iter().any(|param| param.name == **name)) {
        Some(name) => Err(Error::new(uri.span(), format!("the variable `{name}` has no parameter: add `{name}: &str`"))),
        None => Ok(template),
    }
}
