//! Parameters of handlers.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Error, FnArg, GenericArgument, Ident, Pat, PathArguments, Result, Signature, Type};

use crate::attrs::Attr;
use crate::docs;

const ARG: &[&str] = &[
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
    "complete",
];

/// One parameter, taken off its function's attributes.
pub struct Param {
    pub ident: Ident,
    /// The name that clients see.
    pub name: String,
    pub description: String,
    pub attr: Attr,
    pub shape: Shape,
    pub span: Span,
}

/// How the parameter is passed.
pub enum Shape {
    /// `&Ctx`
    Ctx,
    /// `T`
    Value(Type),
    /// `&T`: owned by the caller for as long.
    Borrowed(Type),
    /// `Option<T>`
    Optional(Type),
    /// `Option<&T>`
    OptionalBorrowed(Type),
}

/// Takes the attributes off all parameters, and says whether the function has a `&self`.
pub fn take(signature: &mut Signature) -> Result<(bool, Vec<Param>)> {
    if let Some(asyncness) = signature.asyncness {
        return Err(Error::new(asyncness.span(), "a handler is an ordinary function: the host runs others meanwhile, so remove `async`"));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new(signature.generics.span(), "a handler cannot be generic"));
    }
    let mut has_self = false;
    let mut params = Vec::new();
    for input in &mut signature.inputs {
        match input {
            FnArg::Receiver(receiver) if receiver.reference.is_some() && receiver.mutability.is_none() => has_self = true,
            FnArg::Receiver(receiver) => {
                let text = "a handler takes `&self`; keep what changes in a `Cell` or a `RefCell`";
                return Err(Error::new(receiver.span(), text));
            }
            FnArg::Typed(typed) => {
                let attr = Attr::take(&mut typed.attrs, "arg", ARG)?.unwrap_or_else(|| Attr::empty(typed.span()));
                let doc = docs::text(&typed.attrs);
                typed.attrs.retain(|attr| !attr.path().is_ident("doc"));
                let Pat::Ident(pat) = &*typed.pat else {
                    return Err(Error::new(typed.pat.span(), "a handler's parameter needs a plain name, which is the argument's"));
                };
                let name = attr.text("name")?.map_or_else(|| pat.ident.unraw().to_string(), |name| name.value());
                let description = attr.text("description")?.map_or(doc, |text| text.value());
                let shape = shape(&typed.ty)?;
                params.push(Param { ident: pat.ident.clone(), name, description, attr, shape, span: typed.ty.span() });
            }
        }
    }
    Ok((has_self, params))
}

fn shape(ty: &Type) -> Result<Shape> {
    match ty {
        Type::Reference(reference) if reference.mutability.is_some() => {
            Err(Error::new(ty.span(), "a handler's parameter cannot be `&mut`"))
        }
        Type::Reference(reference) if last_segment(&reference.elem) == Some("Ctx".into()) => Ok(Shape::Ctx),
        Type::Reference(reference) => Ok(Shape::Borrowed(owned(&reference.elem)?)),
        Type::ImplTrait(_) => Err(Error::new(ty.span(), "a handler's parameter needs a type of its own, such as `String`")),
        _ if last_segment(ty) == Some("Ctx".into()) => Err(Error::new(ty.span(), "take the context by reference: `&Ctx`")),
        _ => match option(ty) {
            Some(Type::Reference(inner)) => Ok(Shape::OptionalBorrowed(owned(&inner.elem)?)),
            Some(inner) => Ok(Shape::Optional(inner.clone())),
            None => Ok(Shape::Value(ty.clone())),
        },
    }
}

/// The type that owns what a reference to `ty` borrows.
fn owned(ty: &Type) -> Result<Type> {
    match ty {
        Type::Path(path) if path.path.is_ident("str") => Ok(syn::parse_quote_spanned!(ty.span()=> ::std::string::String)),
        Type::Slice(slice) => {
            let elem = &slice.elem;
            Ok(syn::parse_quote_spanned!(ty.span()=> ::std::vec::Vec<#elem>))
        }
        Type::TraitObject(_) => Err(Error::new(ty.span(), "a handler's parameter needs a type of its own")),
        other => Ok(other.clone()),
    }
}

fn last_segment(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

/// `T` of `Option<T>`.
pub fn option(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == "Option")?;
    match &last.arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
            Some(GenericArgument::Type(inner)) => Some(inner),
            _ => None,
        },
        _ => None,
    }
}

impl Param {
    pub fn is_ctx(&self) -> bool {
        matches!(self.shape, Shape::Ctx)
    }

    /// The type of its owned value, without `Option`.
    pub fn value_type(&self) -> Option<&Type> {
        match &self.shape {
            Shape::Ctx => None,
            Shape::Value(ty) | Shape::Borrowed(ty) | Shape::Optional(ty) | Shape::OptionalBorrowed(ty) => Some(ty),
        }
    }

    pub fn is_optional(&self) -> bool {
        matches!(self.shape, Shape::Optional(_) | Shape::OptionalBorrowed(_))
    }

    /// What the function is called with, where `value` is the owned value, or an `Option` of it where optional.
    pub fn passed(&self, value: &TokenStream) -> TokenStream {
        match &self.shape {
            Shape::Ctx => quote!(&ctx),
            Shape::Value(_) | Shape::Optional(_) => quote!(#value),
            Shape::Borrowed(_) => quote!(&#value),
            Shape::OptionalBorrowed(_) => quote!(#value.as_ref().map(::core::borrow::Borrow::borrow)),
        }
    }

    /// A local of the dispatching function that cannot meet a name of the author's.
    pub fn local(&self) -> Ident {
        format_ident!("arg_{}", self.ident.unraw(), span = Span::mixed_site())
    }

    /// Refuses keys of `#[arg]` that mean nothing for this kind of handler.
    pub fn only(&self, kind: &str, keys: &[&str]) -> Result<()> {
        match ARG.iter().find(|key| self.attr.has(key) && !keys.contains(key)) {
            Some(key) => Err(Error::new(self.attr.span, format!("`{key}` means nothing for {kind}"))),
            None => Ok(()),
        }
    }
}

/// The call of a handler.
pub fn call(method: &Ident, has_self: bool, arguments: &[TokenStream]) -> TokenStream {
    let receiver = has_self.then(|| quote!(self,));
    quote_spanned!(method.span()=> Self::#method(#receiver #(#arguments),*))
}
