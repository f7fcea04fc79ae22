//! `#[derive(Schema)]`

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Data, DataEnum, DeriveInput, Error, Fields, FieldsNamed, Result, Variant};

use crate::attrs::Attr;
use crate::serde_attrs::{Container, Field, renamed};
use crate::{about, docs, params};

pub fn derive(mut input: DeriveInput) -> Result<TokenStream> {
    let container = Container::of(&input.attrs)?;
    let doc = docs::text(&input.attrs);
    let ident = &input.ident;
    let (object, body) = match &mut input.data {
        Data::Struct(data) => match &mut data.fields {
            Fields::Named(fields) if !container.transparent => {
                let properties = properties(fields, &container, container.rename_all.as_deref())?;
                let closed = container.deny_unknown_fields;
                (quote!(true), quote!(out.object(about, &[#(#properties),*], #closed);))
            }
            fields if fields.len() == 1 => {
                let inner = fields.iter().next().map(|field| &field.ty);
                (quote!(<#inner as ::guesthouse::Schema>::OBJECT), quote!(<#inner as ::guesthouse::Schema>::members(out, about);))
            }
            fields => return Err(Error::new(fields.span(), "`Schema` needs fields with names, or exactly one field")),
        },
        Data::Enum(data) => enumeration(data, &container)?,
        Data::Union(data) => return Err(Error::new(data.union_token.span, "a union has no JSON form")),
    };
    for param in input.generics.type_params_mut() {
        param.bounds.push(syn::parse_quote!(::guesthouse::Schema));
    }
    let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
    let name = ident.unraw().to_string();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::guesthouse::Schema for #ident #ty_generics #where_clause {
            const OBJECT: bool = #object;

            fn members(out: &mut ::guesthouse::rt::Writer, about: &::guesthouse::rt::About) {
                out.named(::core::any::type_name::<Self>(), #name, about, |out, about| {
                    let about = &about.or(#doc);
                    #body
                });
            }
        }
    })
}

/// The properties of named fields.
fn properties(fields: &mut FieldsNamed, container: &Container, rule: Option<&str>) -> Result<Vec<TokenStream>> {
    let mut properties = Vec::new();
    for field in &mut fields.named {
        let serde = Field::of(&field.attrs)?;
        let attr = Attr::take(&mut field.attrs, "schema", about::KEYS)?.unwrap_or_else(|| Attr::empty(field.span()));
        if serde.skip {
            continue;
        }
        let ident = field.ident.as_ref().map(|ident| ident.unraw().to_string()).unwrap_or_default();
        let name = match serde.rename {
            Some(name) => name,
            None => renamed(&ident, rule, true, &field.attrs)?,
        };
        let about = about::tokens(&attr, &docs::text(&field.attrs))?;
        // Without `skip_serializing_if`, an absent value is written as null.
        let inner = params::option(&field.ty);
        let required = inner.is_none() && !serde.default && !container.default;
        let nullable = inner.is_some() && !serde.omits_none;
        let ty = inner.unwrap_or(&field.ty);
        properties.push(quote_spanned! {field.ty.span()=>
            ::guesthouse::rt::Property {
                name: #name, required: #required, nullable: #nullable, members: <#ty as ::guesthouse::Schema>::members, about: #about,
            }
        });
    }
    Ok(properties)
}

/// Whether all values are objects, and the body.
fn enumeration(data: &mut DataEnum, container: &Container) -> Result<(TokenStream, TokenStream)> {
    let mut variants = Vec::new();
    for variant in &mut data.variants {
        let serde = Field::of(&variant.attrs)?;
        if serde.skip {
            continue;
        }
        let name = match serde.rename {
            Some(name) => name,
            None => renamed(&variant.ident.unraw().to_string(), container.rename_all.as_deref(), false, &variant.attrs)?,
        };
        variants.push((name, serde.rename_all, variant));
    }
    let plain = variants.iter().all(|(_, _, variant)| variant.fields.is_empty());
    if plain && container.tag.is_none() && !container.untagged {
        let names = variants.iter().map(|(name, ..)| name);
        return Ok((quote!(false), quote!(out.one_of_strings(about, &[#(#names),*]);)));
    }
    let mut bodies = Vec::new();
    for (name, rule, variant) in variants {
        let rule = rule.as_deref().or(container.rename_all_fields.as_deref());
        let doc = docs::text(&variant.attrs);
        let body = self::variant(&name, variant, container, rule)?;
        bodies.push(quote!(|out: &mut ::guesthouse::rt::Writer, about: &::guesthouse::rt::About| {
            let about = &about.or(#doc);
            #body
        }));
    }
    let object = container.tag.is_some();
    let (keyword, head) = (if container.untagged { "anyOf" } else { "oneOf" }, if object { "\"type\":\"object\"," } else { "" });
    Ok((quote!(#object), quote!(out.one_of(#keyword, #head, about, &[#(#bodies),*]);)))
}

/// The schema of one variant, by how serde tags it.
fn variant(name: &str, variant: &mut Variant, container: &Container, rule: Option<&str>) -> Result<TokenStream> {
    let (mut own, inner) = match &mut variant.fields {
        Fields::Unit => (Vec::new(), None),
        Fields::Named(fields) => {
            let own = properties(fields, container, rule)?;
            let inner =
                quote!(|out: &mut ::guesthouse::rt::Writer, about: &::guesthouse::rt::About| out.object(about, &[#(#own),*], false));
            (own, Some(inner))
        }
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
            let ty = fields.unnamed.first().map(|field| &field.ty);
            (Vec::new(), Some(quote!(<#ty as ::guesthouse::Schema>::members)))
        }
        fields => return Err(Error::new(fields.span(), "`Schema` needs variants with named fields, or with one field")),
    };
    let constant = |name: &str| {
        let text = format!("\"const\":{}", crate::literal::quote(name));
        quote!(|out: &mut ::guesthouse::rt::Writer, _: &::guesthouse::rt::About| out.raw(#text))
    };
    let property = |name: &str, members: &TokenStream| {
        quote!(::guesthouse::rt::Property {
            name: #name, required: true, nullable: false, members: #members, about: ::guesthouse::rt::About::NONE,
        })
    };
    match (&container.tag, &container.content, container.untagged, inner) {
        (_, _, true, Some(inner)) => Ok(quote!((#inner)(out, about);)),
        (_, _, true, None) => Ok(quote!(out.raw("\"type\":\"null\""); let _ = about;)),
        (Some(tag), None, _, inner) => {
            if inner.is_some() && !matches!(variant.fields, Fields::Named(_)) {
                return Err(Error::new(variant.span(), "`Schema` cannot put a tag into another type: give the variant named fields"));
            }
            own.insert(0, property(tag, &constant(name)));
            Ok(quote!(out.object(about, &[#(#own),*], false);))
        }
        (Some(tag), Some(content), _, inner) => {
            let mut members = vec![property(tag, &constant(name))];
            members.extend(inner.map(|inner| property(content, &inner)));
            Ok(quote!(out.object(about, &[#(#members),*], false);))
        }
        (None, _, _, None) => {
            let constant = constant(name);
            Ok(quote!((#constant)(out, about);))
        }
        (None, _, _, Some(inner)) => {
            let member = property(name, &inner);
            Ok(quote!(out.object(about, &[#member], true);))
        }
    }
}
