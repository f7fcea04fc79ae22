//! `#[server]`: collects the handlers of an impl block, and writes the traits of the contract for them.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, Ident, ImplItem, ImplItemFn, ItemImpl, Result, Type};

use crate::attrs::{Attr, distance, list};
use crate::complete::{self, Completer};
use crate::docs;
use crate::params;
use crate::prompt::{self, Prompt};
use crate::resource::{self, Resource};
use crate::tool::{self, Tool, optional};

const KEYS: &[&str] = &["name", "version", "title", "description", "website", "instructions", "export"];
/// The attributes of handlers.
const KINDS: &[&str] = &["tool", "resource", "template", "prompt", "complete", "subscribe", "unsubscribe", "init"];
/// Interfaces whose traits may be implemented by hand beside the block.
const INTERFACES: &[&str] = &["tools", "resources", "subscriptions", "prompts", "completion", "tasks", "migration", "handoff"];

/// Everything that an impl block declares.
#[derive(Default)]
struct Handlers {
    tools: Vec<Tool>,
    /// Resources and templates, in their order.
    resources: Vec<Resource>,
    prompts: Vec<Prompt>,
    completers: Vec<Completer>,
    subscribe: Option<Plain>,
    unsubscribe: Option<Plain>,
    init: Option<Plain>,
}

/// A handler whose parameters are fixed: at most one besides the context.
struct Plain {
    method: Ident,
    has_self: bool,
    params: Vec<params::Param>,
}

/// The block without our attributes, and what they amount to. With errors, the block is kept so that they are the only ones.
pub fn expand(arguments: TokenStream, mut block: ItemImpl) -> TokenStream {
    let generated = collect(arguments, &mut block).unwrap_or_else(Error::into_compile_error);
    quote!(#block #generated)
}

fn collect(arguments: TokenStream, block: &mut ItemImpl) -> Result<TokenStream> {
    let mut errors: Option<Error> = None;
    let mut note = |error: Error| match &mut errors {
        Some(errors) => errors.combine(error),
        None => errors = Some(error),
    };
    let attr = Attr::parse(arguments, proc_macro2::Span::call_site(), "server", KEYS).unwrap_or_else(|error| {
        note(error);
        Attr::empty(proc_macro2::Span::call_site())
    });
    let mut handlers = Handlers::default();
    for item in &mut block.items {
        if let ImplItem::Fn(function) = item
            && let Err(error) = handlers.add(function)
        {
            note(error);
            strip(function);
        }
    }
    if let Some((_, path, _)) = &block.trait_ {
        note(Error::new(
            path.span(),
            "`#[server]` goes on an `impl` block without a trait; the traits of the contract are exported with `guesthouse::export!`",
        ));
    }
    if !block.generics.params.is_empty() {
        note(Error::new(block.generics.span(), "a server cannot be generic: there is one per component"));
    }
    if let Err(error) = handlers.refuse_duplicates() {
        note(error);
    }
    match errors {
        Some(errors) => Err(errors),
        None => handlers.generate(&attr, &block.self_ty, &block.attrs),
    }
}

/// After an error: nothing of ours may stay, or the compiler would complain about it too.
fn strip(function: &mut ImplItemFn) {
    let ours = |name: &Ident| KINDS.iter().any(|kind| distance(kind, &name.to_string()) <= 1);
    function.attrs.retain(|attr| !attr.path().get_ident().is_some_and(ours));
    for input in &mut function.sig.inputs {
        if let syn::FnArg::Typed(typed) = input {
            typed.attrs.retain(|attr| !["arg", "args", "doc"].iter().any(|name| attr.path().is_ident(name)));
        }
    }
}

impl Handlers {
    fn add(&mut self, function: &mut ImplItemFn) -> Result<()> {
        let Some(kind) = kind(&function.attrs)? else { return Ok(()) };
        let take = |function: &mut ImplItemFn, keys| {
            Attr::take(&mut function.attrs, kind, keys).map(|attr| attr.unwrap_or_else(|| Attr::empty(function.sig.span())))
        };
        match kind {
            "tool" => {
                let attr = take(function, tool::KEYS)?;
                self.tools.push(Tool::parse(function, attr)?);
            }
            "resource" | "template" => {
                let attr = take(function, resource::KEYS)?;
                self.resources.push(Resource::parse(function, attr, kind == "template")?);
            }
            "prompt" => {
                let attr = take(function, prompt::KEYS)?;
                self.prompts.push(Prompt::parse(function, attr)?);
            }
            "complete" => {
                let index = function.attrs.iter().position(|attr| attr.path().is_ident("complete")).unwrap_or_default();
                let attr = function.attrs.remove(index);
                let tokens = attr.meta.require_list().map(|list| list.tokens.clone()).unwrap_or_default();
                self.completers.push(Completer::parse(function, tokens, &attr)?);
            }
            _ => {
                let attr = take(function, &[])?;
                let slot = match kind {
                    "subscribe" => &mut self.subscribe,
                    "unsubscribe" => &mut self.unsubscribe,
                    _ => &mut self.init,
                };
                let plain = Plain::parse(function, kind)?;
                if slot.replace(plain).is_some() {
                    return Err(Error::new(attr.span, format!("there is another `#[{kind}]`")));
                }
            }
        }
        Ok(())
    }

    fn refuse_duplicates(&self) -> Result<()> {
        let tools = self.tools.iter().map(|tool| ("tool", tool.name.clone(), tool.method().span()));
        let prompts = self.prompts.iter().map(|prompt| ("prompt", prompt.name.clone(), prompt.method.span()));
        let resources = self.resources.iter().map(|resource| ("URI", resource.uri.value(), resource.uri.span()));
        let all: Vec<_> = tools.chain(prompts).chain(resources).collect();
        for (index, (kind, name, span)) in all.iter().enumerate() {
            if all.iter().take(index).any(|(other_kind, other, _)| kind == other_kind && name == other) {
                return Err(Error::new(*span, format!("the {kind} `{name}` is there twice")));
            }
        }
        if self.unsubscribe.is_some() && self.subscribe.is_none() {
            return Err(Error::new(proc_macro2::Span::call_site(), "`#[unsubscribe]` needs a `#[subscribe]`"));
        }
        Ok(())
    }

    fn generate(&self, attr: &Attr, ty: &Type, attrs: &[Attribute]) -> Result<TokenStream> {
        let mut exports = by_hand(attr)?;
        let mut code = self.server(attr, ty, attrs)?;
        let mut implement = |interface: &str, name: &str, body: Option<TokenStream>| {
            let Some(body) = body else { return };
            let name = Ident::new(name, proc_macro2::Span::call_site());
            exports.push(Ident::new(interface, proc_macro2::Span::call_site()));
            code.extend(quote! {
                #[automatically_derived]
                impl ::guesthouse::#name for #ty { #body }
            });
        };
        implement("tools", "Tools", self.tools()?);
        implement("resources", "Resources", self.resources()?);
        implement("subscriptions", "Subscriptions", self.subscriptions());
        implement("prompts", "Prompts", self.prompts()?);
        let complete = complete::body(&self.prompts, &self.resources, &self.completers)?.map(|body| {
            quote! {
                fn complete(
                    &self, reference: &::guesthouse::wit::Reference, argument: &str, value: &str,
                    resolved: &[(::std::string::String, ::std::string::String)],
                ) -> ::core::result::Result<::guesthouse::wit::Completions, ::guesthouse::wit::Error> { #body }
            }
        });
        implement("completion", "Completion", complete);
        Ok(quote!(#code ::guesthouse::export!(#ty: #(#exports),*);))
    }

    fn server(&self, attr: &Attr, ty: &Type, attrs: &[Attribute]) -> Result<TokenStream> {
        let or_env = |key: &str, variable: &str| {
            Ok::<_, Error>(attr.text(key)?.map_or_else(|| quote!(::core::env!(#variable)), |text| quote!(#text)))
        };
        let (name, version) = (or_env("name", "CARGO_PKG_NAME")?, or_env("version", "CARGO_PKG_VERSION")?);
        let doc = docs::text(attrs);
        let description = match doc.is_empty() {
            true => or_env("description", "CARGO_PKG_DESCRIPTION")?,
            false => attr.text("description")?.map_or(quote!(#doc), |text| quote!(#text)),
        };
        let [title, website, instructions] = [attr.text("title")?, attr.text("website")?, attr.text("instructions")?]
            .map(|text| optional(text.map(|text| quote!(#text.into()))));
        let init = match &self.init {
            None => quote!({
                let _ = config;
                ::core::result::Result::Ok(<Self as ::guesthouse::rt::Start>::start())
            }),
            Some(init) => init.init_body(),
        };
        Ok(quote! {
            #[automatically_derived]
            impl ::guesthouse::Server for #ty {
                fn describe() -> ::guesthouse::wit::ServerInfo {
                    let description: &str = #description;
                    ::guesthouse::wit::ServerInfo {
                        name: ::core::convert::Into::into(#name),
                        version: ::core::convert::Into::into(#version),
                        title: #title,
                        description: (!description.is_empty()).then(|| description.into()),
                        website_url: #website,
                        instructions: #instructions,
                        ..::core::default::Default::default()
                    }
                }

                fn init(config: &str) -> ::core::result::Result<Self, ::std::string::String> #init
            }
        })
    }

    fn tools(&self) -> Result<Option<TokenStream>> {
        if self.tools.is_empty() {
            return Ok(None);
        }
        let specs = self.tools.iter().map(Tool::spec).collect::<Result<Vec<_>>>()?;
        let arms = self.tools.iter().map(Tool::arm).collect::<Result<Vec<_>>>()?;
        Ok(Some(quote! {
            fn list_tools(
                &self, _cursor: ::core::option::Option<&str>,
            ) -> ::core::result::Result<::guesthouse::wit::ToolPage, ::guesthouse::wit::Error> {
                ::core::result::Result::Ok(::guesthouse::rt::tool_page(&[#(#specs),*]))
            }

            fn call_tool(
                &self, name: &str, arguments: &str,
            ) -> ::core::result::Result<::guesthouse::wit::ToolOutcome, ::guesthouse::wit::Error> {
                let _ = arguments;
                match name {
                    #(#arms)*
                    _ => ::guesthouse::rt::unknown(name),
                }
            }
        }))
    }

    fn resources(&self) -> Result<Option<TokenStream>> {
        if self.resources.is_empty() {
            return Ok(None);
        }
        let (templates, resources): (Vec<_>, Vec<_>) = self.resources.iter().partition(|resource| resource.template.is_some());
        let specs = |items: &[&Resource]| items.iter().map(|item| item.spec()).collect::<Result<Vec<_>>>();
        let (template_specs, resource_specs) = (specs(&templates)?, specs(&resources)?);
        // A URI that is a resource's own wins over a template that it fits.
        let attempts = resources.iter().chain(&templates).map(|item| item.attempt()).collect::<Result<Vec<_>>>()?;
        Ok(Some(quote! {
            fn list_resources(
                &self, _cursor: ::core::option::Option<&str>,
            ) -> ::core::result::Result<::guesthouse::wit::ResourcePage, ::guesthouse::wit::Error> {
                ::core::result::Result::Ok(::guesthouse::rt::resource_page(&[#(#resource_specs),*]))
            }

            fn list_templates(
                &self, _cursor: ::core::option::Option<&str>,
            ) -> ::core::result::Result<::guesthouse::wit::TemplatePage, ::guesthouse::wit::Error> {
                ::core::result::Result::Ok(::guesthouse::rt::template_page(&[#(#template_specs),*]))
            }

            fn read_resource(&self, uri: &str) -> ::core::result::Result<::guesthouse::wit::ReadOutcome, ::guesthouse::wit::Error> {
                #(#attempts)*
                ::guesthouse::rt::unknown(uri)
            }
        }))
    }

    fn prompts(&self) -> Result<Option<TokenStream>> {
        if self.prompts.is_empty() {
            return Ok(None);
        }
        let specs = self.prompts.iter().map(Prompt::spec).collect::<Result<Vec<_>>>()?;
        let arms = self.prompts.iter().map(Prompt::arm).collect::<Result<Vec<_>>>()?;
        Ok(Some(quote! {
            fn list_prompts(
                &self, _cursor: ::core::option::Option<&str>,
            ) -> ::core::result::Result<::guesthouse::wit::PromptPage, ::guesthouse::wit::Error> {
                ::core::result::Result::Ok(::guesthouse::rt::prompt_page(&[#(#specs),*]))
            }

            fn get_prompt(
                &self, name: &str, arguments: &[(::std::string::String, ::std::string::String)],
            ) -> ::core::result::Result<::guesthouse::wit::PromptOutcome, ::guesthouse::wit::Error> {
                let _ = arguments;
                match name {
                    #(#arms)*
                    _ => ::guesthouse::rt::unknown(name),
                }
            }
        }))
    }

    fn subscriptions(&self) -> Option<TokenStream> {
        let function = |name: &str, plain: &Plain| {
            let name = Ident::new(name, proc_macro2::Span::call_site());
            let (ctx, call) = plain.call(&quote!(uri));
            quote! {
                fn #name(&self, uri: &str) -> ::core::result::Result<(), ::guesthouse::wit::Error> {
                    #ctx
                    ::guesthouse::rt::finish_subscription(#call)
                }
            }
        };
        let mut body = function("subscribe", self.subscribe.as_ref()?);
        body.extend(self.unsubscribe.as_ref().map(|plain| function("unsubscribe", plain)));
        Some(body)
    }
}

impl Plain {
    fn parse(function: &mut ImplItemFn, kind: &str) -> Result<Plain> {
        let (has_self, params) = params::take(&mut function.sig)?;
        let values = params.iter().filter(|param| !param.is_ctx()).count();
        if kind == "init" {
            if has_self || values != params.len() || values > 1 {
                return Err(Error::new(
                    function.sig.span(),
                    "an `#[init]` function takes nothing, or the operator's configuration by value",
                ));
            }
        } else if values != 1 {
            return Err(Error::new(function.sig.span(), format!("a `#[{kind}]` function takes the URI: `uri: &str`")));
        }
        Ok(Plain { method: function.sig.ident.clone(), has_self, params })
    }

    fn call(&self, value: &TokenStream) -> (Option<TokenStream>, TokenStream) {
        let passed: Vec<_> = self.params.iter().map(|param| if param.is_ctx() { quote!(&ctx) } else { value.clone() }).collect();
        let ctx = self.params.iter().any(params::Param::is_ctx).then(|| quote!(let ctx = ::guesthouse::Ctx::new();));
        (ctx, params::call(&self.method, self.has_self, &passed))
    }

    fn init_body(&self) -> TokenStream {
        let method = &self.method;
        let (parse, passed) = match self.params.first().map(|param| (param.value_type(), param.passed(&quote!(config)))) {
            Some((Some(ty), passed)) => (quote!(let config: #ty = ::guesthouse::rt::config(config)?;), passed),
            _ => (quote!(let _ = config;), quote!()),
        };
        quote!({ #parse ::guesthouse::rt::InitReturn::<Self>::server(Self::#method(#passed)) })
    }
}

/// What an item is, by its attributes.
fn kind(attrs: &[Attribute]) -> Result<Option<&'static str>> {
    let mut found = None;
    for attr in attrs {
        let Some(name) = attr.path().get_ident().map(Ident::to_string) else { continue };
        match KINDS.iter().find(|kind| **kind == name) {
            Some(kind) if found.is_none() => found = Some(*kind),
            Some(kind) => {
                let first = found.unwrap_or_default();
                return Err(Error::new(attr.span(), format!("a function cannot be both `#[{first}]` and `#[{kind}]`")));
            }
            None => {
                if let Some(near) = KINDS.iter().find(|kind| distance(kind, &name) == 1) {
                    return Err(Error::new(attr.span(), format!("there is no `#[{name}]`; did you mean `#[{near}]`?")));
                }
            }
        }
    }
    Ok(found)
}

/// `export(tasks, handoff)`: interfaces whose traits the author implements.
fn by_hand(attr: &Attr) -> Result<Vec<Ident>> {
    let names = attr.idents("export")?;
    match names.iter().find(|name| !INTERFACES.contains(&name.to_string().as_str())) {
        Some(name) => Err(Error::new(name.span(), format!("there is no interface `{name}`; there are {}", list(INTERFACES)))),
        None => Ok(names),
    }
}
