//! `#[complete]`, and completion from a list beside the parameter.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned as _;
use syn::{Error, Expr, Ident, ImplItemFn, LitStr, Result};

use crate::attrs::list;
use crate::params::{self, Param};
use crate::prompt::Prompt;
use crate::resource::Resource;

/// A function that completes one argument of a prompt or variable of a template.
pub struct Completer {
    /// The prompt's or template's function, and its parameter.
    target: (Ident, Ident),
    method: Ident,
    has_self: bool,
    params: Vec<Param>,
}

impl Completer {
    pub fn parse(function: &mut ImplItemFn, tokens: TokenStream, attr: &syn::Attribute) -> Result<Completer> {
        let usage = "write `#[complete(prompt, argument)]`, with the names of the prompt's (or template's) function and of its parameter";
        let parser = syn::punctuated::Punctuated::<Ident, syn::Token![,]>::parse_terminated;
        let names = syn::parse::Parser::parse2(parser, tokens).map_err(|error| Error::new(error.span(), usage))?;
        let mut names = names.into_iter();
        let (Some(target), Some(argument), None) = (names.next(), names.next(), names.next()) else {
            return Err(Error::new(attr.span(), usage));
        };
        let (has_self, params) = params::take(&mut function.sig)?;
        let values = params.iter().filter(|param| !param.is_ctx()).count();
        if !(1..=2).contains(&values) {
            let text = "a completing function takes what was typed, `value: &str`, and, if it wants, `resolved: &[(String, String)]`";
            return Err(Error::new(function.sig.span(), text));
        }
        Ok(Completer { target: (target, argument), method: function.sig.ident.clone(), has_self, params })
    }

    fn call(&self) -> TokenStream {
        let mut values = [quote!(value), quote!(resolved)].into_iter();
        let passed: Vec<_> =
            self.params.iter().map(|param| if param.is_ctx() { quote!(&ctx) } else { values.next().unwrap_or_default() }).collect();
        let ctx = self.params.iter().any(Param::is_ctx).then(|| quote!(let ctx = ::guesthouse::Ctx::new();));
        let call = params::call(&self.method, self.has_self, &passed);
        quote!({ #ctx ::guesthouse::rt::finish_completion(#call) })
    }
}

/// What may be completed: a prompt or a template, by what requests call it.
struct Target<'a> {
    pattern: TokenStream,
    key: LitStr,
    method: &'a Ident,
    params: &'a [Param],
}

/// The body of `complete`; none where nothing is completed.
pub fn body(prompts: &[Prompt], resources: &[Resource], completers: &[Completer]) -> Result<Option<TokenStream>> {
    let prompt = |prompt: &'_ Prompt| LitStr::new(&prompt.name, prompt.method.span());
    let mut targets: Vec<Target> = Vec::new();
    for item in prompts {
        targets.push(Target { pattern: quote!(Prompt), key: prompt(item), method: &item.method, params: &item.params });
    }
    for item in resources.iter().filter(|resource| resource.template.is_some()) {
        targets.push(Target { pattern: quote!(ResourceTemplate), key: item.uri.clone(), method: &item.method, params: &item.params });
    }
    let mut arms = Vec::new();
    for completer in completers {
        arms.push(function_arm(completer, &targets)?);
    }
    for target in &targets {
        for param in target.params {
            let Some(values) = param.attr.expr("complete")? else { continue };
            let Expr::Array(_) = values else {
                let text = "`complete` is a list, `[\"a\", \"b\"]`; for a function, put `#[complete(…)]` on it";
                return Err(Error::new(values.span(), text));
            };
            let call = quote!(::guesthouse::rt::finish_completion(::guesthouse::rt::from_list(&#values, value)));
            arms.push(arm(target, &param.name, &call));
        }
    }
    if arms.is_empty() {
        return Ok(None);
    }
    let known = targets.iter().map(|target| {
        let (pattern, key) = (&target.pattern, &target.key);
        quote!((::guesthouse::wit::Reference::#pattern(name), _) if name == #key => {
            ::guesthouse::rt::finish_completion(::std::vec::Vec::<::std::string::String>::new())
        })
    });
    Ok(Some(quote! {
        match (reference, argument) {
            #(#arms)*
            #(#known)*
            (::guesthouse::wit::Reference::Prompt(name) | ::guesthouse::wit::Reference::ResourceTemplate(name), _) => {
                ::guesthouse::rt::unknown(name)
            }
        }
    }))
}

fn function_arm(completer: &Completer, targets: &[Target]) -> Result<TokenStream> {
    let (method, argument) = &completer.target;
    let Some(target) = targets.iter().find(|target| target.method == method) else {
        let names: Vec<String> = targets.iter().map(|target| target.method.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        return Err(Error::new(method.span(), format!("no prompt or template has a function `{method}`; there is {}", list(&names))));
    };
    let mut params = target.params.iter().filter(|param| !param.is_ctx());
    let Some(param) = params.clone().find(|param| param.ident == *argument) else {
        let names: Vec<String> = params.by_ref().map(|param| param.ident.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        return Err(Error::new(argument.span(), format!("`{method}` has no parameter `{argument}`; it has {}", list(&names))));
    };
    if param.attr.has("complete") {
        return Err(Error::new(param.attr.span, format!("`{argument}` is completed by a list and by a function; keep one")));
    }
    Ok(arm(target, &param.name, &completer.call()))
}

fn arm(target: &Target, argument: &str, call: &TokenStream) -> TokenStream {
    let (pattern, key) = (&target.pattern, &target.key);
    quote!((::guesthouse::wit::Reference::#pattern(name), #argument) if name == #key => #call,)
}
