//! `#[data]`: serde's derives and `Schema` in one, with absent values left out rather than null.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields, Result, parse_quote};

use crate::params;
use crate::serde_attrs::Field;

pub fn expand(mut input: DeriveInput) -> Result<TokenStream> {
    match &mut input.data {
        Data::Struct(data) => omit_none(&mut data.fields)?,
        Data::Enum(data) => {
            for variant in &mut data.variants {
                omit_none(&mut variant.fields)?;
            }
        }
        Data::Union(_) => {}
    }
    Ok(quote! {
        #[derive(::guesthouse::serde::Serialize, ::guesthouse::serde::Deserialize, ::guesthouse::Schema)]
        #[serde(crate = "::guesthouse::serde")]
        #input
    })
}

fn omit_none(fields: &mut Fields) -> Result<()> {
    let Fields::Named(fields) = fields else { return Ok(()) };
    for field in &mut fields.named {
        let serde = Field::of(&field.attrs)?;
        if params::option(&field.ty).is_none() || serde.skip {
            continue;
        }
        if !serde.omits_none {
            field.attrs.push(parse_quote!(#[serde(skip_serializing_if = "::core::option::Option::is_none")]));
        }
        if !serde.default {
            field.attrs.push(parse_quote!(#[serde(default)]));
        }
    }
    Ok(())
}
