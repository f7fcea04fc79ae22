//! `#[tool]`

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Error, Ident, ImplItemFn, Result, ReturnType, Type};

use crate::attrs::Attr;
use crate::params::{self, Param, Shape};
use crate::{about, docs, literal};

pub const KEYS: &[&str] = &[
    "name",
    "title",
    "description",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "task",
    "output",
    "input_schema",
    "output_schema",
    "meta",
];
const ARG_KEYS: &[&str] = &[
    "name",
    "description",
    "default",
    "min",
    "max",
    "min_length",
    "max_length",
    "min_items",
    "max_items",
    "pattern",
    "format",
    "one_of",
    "header",
];

pub struct Tool {
    pub name: String,
    attr: Attr,
    description: String,
    method: Ident,
    has_self: bool,
    params: Vec<Param>,
    returns: Type,
    /// The parameter that takes all arguments, marked `#[args]`.
    whole: Option<usize>,
}

/// The type that a handler returns, which must be written out.
pub fn returns(function: &ImplItemFn) -> Result<Type> {
    match &function.sig.output {
        ReturnType::Default => Ok(syn::parse_quote!(())),
        ReturnType::Type(_, ty) if matches!(**ty, Type::ImplTrait(_)) => {
            Err(Error::new(ty.span(), "a handler's return type must be written out, because the description comes from it"))
        }
        ReturnType::Type(_, ty) => Ok((**ty).clone()),
    }
}

impl Tool {
    pub fn parse(function: &mut ImplItemFn, attr: Attr) -> Result<Tool> {
        let whole = take_args(function)?;
        let (has_self, params) = params::take(&mut function.sig)?;
        let method = function.sig.ident.clone();
        let name = attr.text("name")?.map_or_else(|| syn::ext::IdentExt::unraw(&method).to_string(), |name| name.value());
        if name.is_empty() || name.len() > 128 || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)) {
            let text = format!("`{name}` is no name for a tool: use 1 to 128 of A-Z a-z 0-9 _ - .");
            return Err(Error::new(attr.span, text));
        }
        for param in &params {
            param.only("a tool", ARG_KEYS)?;
            if param.attr.has("default") && !matches!(param.shape, Shape::Value(_) | Shape::Borrowed(_)) {
                return Err(Error::new(param.attr.span, "an argument with a default is never absent: remove `Option`"));
            }
        }
        if whole.is_some() && params.iter().filter(|param| !param.is_ctx()).count() > 1 {
            return Err(Error::new(attr.span, "where one parameter takes all arguments (`#[args]`), there can be no other"));
        }
        let whole = whole.and_then(|ident| params.iter().position(|param| param.ident == ident));
        let description = attr.text("description")?.map_or_else(|| docs::text(&function.attrs), |text| text.value());
        Ok(Tool { name, description, method, has_self, params, returns: returns(function)?, attr, whole })
    }

    pub fn method(&self) -> &Ident {
        &self.method
    }

    fn arguments(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|param| !param.is_ctx())
    }

    /// The constant that describes the tool.
    pub fn spec(&self) -> Result<TokenStream> {
        let Tool { name, description, attr, returns, .. } = self;
        let title = optional(attr.text("title")?);
        let meta = optional(attr.text("meta")?);
        let [read_only, destructive, idempotent, open_world] =
            [attr.flag("read_only")?, attr.flag("destructive")?, attr.flag("idempotent")?, attr.flag("open_world")?].map(optional);
        let task = match attr.text("task")? {
            None => quote!(Forbidden),
            Some(text) => match text.value().as_str() {
                "forbidden" => quote!(Forbidden),
                "optional" => quote!(Optional),
                "required" => quote!(Required),
                _ => return Err(Error::new(text.span(), "`task` is \"forbidden\", \"optional\" or \"required\"")),
            },
        };
        let input = match attr.expr("input_schema")? {
            Some(schema) => quote!(::guesthouse::rt::SchemaSource::Text(#schema)),
            None => self.input()?,
        };
        let output = match (attr.expr("output_schema")?, attr.expr("output")?) {
            (Some(schema), None) => quote!(::core::option::Option::Some(::guesthouse::rt::SchemaSource::Text(#schema))),
            (None, Some(ty)) => quote_spanned! {ty.span()=>
                ::core::option::Option::Some(::guesthouse::rt::SchemaSource::Body(<#ty as ::guesthouse::Schema>::members))
            },
            (None, None) => quote_spanned! {returns.span()=>
                <#returns as ::guesthouse::ToolReturn>::OUTPUT.map(::guesthouse::rt::SchemaSource::Body)
            },
            (Some(_), Some(ty)) => return Err(Error::new(ty.span(), "give `output` or `output_schema`, not both")),
        };
        Ok(quote! {
            ::guesthouse::rt::ToolSpec {
                name: #name, title: #title, description: #description, input: #input, output: #output,
                read_only: #read_only, destructive: #destructive, idempotent: #idempotent, open_world: #open_world,
                task: ::guesthouse::wit::TaskSupport::#task, meta: #meta,
            }
        })
    }

    fn input(&self) -> Result<TokenStream> {
        if let Some(param) = self.whole.and_then(|index| self.params.get(index)) {
            let ty = param.value_type();
            return Ok(quote_spanned!(param.span=> ::guesthouse::rt::SchemaSource::Body(<#ty as ::guesthouse::Schema>::members)));
        }
        let mut properties = Vec::new();
        for param in self.arguments() {
            let (name, ty) = (&param.name, param.value_type());
            let required = !param.is_optional() && !param.attr.has("default");
            let about = about::tokens(&param.attr, &param.description)?;
            properties.push(quote_spanned! {param.span=>
                ::guesthouse::rt::Property {
                    name: #name, required: #required, nullable: false, members: <#ty as ::guesthouse::Schema>::members, about: #about,
                }
            });
        }
        Ok(quote! {
            ::guesthouse::rt::SchemaSource::Body(|out, about| out.object(about, &[#(#properties),*], true))
        })
    }

    /// The arm of `call_tool` that runs the tool.
    pub fn arm(&self) -> Result<TokenStream> {
        let name = &self.name;
        let ctx = self.params.iter().any(Param::is_ctx).then(|| quote!(let ctx = ::guesthouse::Ctx::new();));
        let (parse, passed) = match self.whole.and_then(|index| self.params.get(index)) {
            Some(whole) => {
                let ty = whole.value_type();
                let parse = quote_spanned!(whole.span=> let arguments: #ty = ::guesthouse::rt::arguments(arguments)?;);
                (parse, self.params.iter().map(|param| param.passed(&quote!(arguments))).collect::<Vec<_>>())
            }
            None => self.one_by_one()?,
        };
        let call = params::call(&self.method, self.has_self, &passed);
        let returns = self.returns.span();
        let finish = quote_spanned!(returns=> ::guesthouse::rt::finish_tool);
        Ok(quote!(#name => { #ctx #parse #finish(#call) }))
    }

    fn one_by_one(&self) -> Result<(TokenStream, Vec<TokenStream>)> {
        let mut reads = Vec::new();
        let mut passed = Vec::new();
        for param in &self.params {
            let Some(ty) = param.value_type() else {
                passed.push(param.passed(&quote!()));
                continue;
            };
            let (local, name) = (param.local(), &param.name);
            let read = quote_spanned!(param.span=> |text| (&::guesthouse::rt::As::<#ty>::NEW).read(text));
            reads.push(match (param.is_optional(), param.attr.expr("default")?) {
                (false, None) => quote_spanned!(param.span=> let #local: #ty = arguments.required(#name, #read)?;),
                (true, _) => quote_spanned!(param.span=> let #local: ::core::option::Option<#ty> = arguments.optional(#name, #read)?;),
                (false, Some(default)) => {
                    let default = match literal::is_text(default) {
                        true => quote!(unwrap_or_else(|| #default.into())),
                        false => quote!(unwrap_or(#default)),
                    };
                    quote_spanned!(param.span=> let #local: #ty = arguments.optional(#name, #read)?.#default;)
                }
            });
            passed.push(param.passed(&quote!(#local)));
        }
        if reads.is_empty() {
            return Ok((quote!(), passed));
        }
        let parse = quote! {
            #[allow(unused_imports)]
            use ::guesthouse::rt::{BySerde as _, Direct as _};
            let arguments = ::guesthouse::rt::Arguments::of(arguments)?;
            #(#reads)*
        };
        Ok((parse, passed))
    }
}

/// The name of the parameter that is marked `#[args]`.
fn take_args(function: &mut ImplItemFn) -> Result<Option<Ident>> {
    for input in &mut function.sig.inputs {
        let syn::FnArg::Typed(typed) = input else { continue };
        if Attr::take(&mut typed.attrs, "args", &[])?.is_some()
            && let syn::Pat::Ident(pat) = &*typed.pat
        {
            return Ok(Some(pat.ident.clone()));
        }
    }
    Ok(None)
}

/// `Some(value)` or `None`.
pub fn optional<T: quote::ToTokens>(value: Option<T>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}
