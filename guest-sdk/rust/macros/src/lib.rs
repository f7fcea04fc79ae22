//! The macros of `guesthouse-sdk`, which re-exports and documents them.

mod about;
mod attrs;
mod complete;
mod data;
mod docs;
mod literal;
mod params;
mod prompt;
mod resource;
mod schema;
mod serde_attrs;
mod server;
mod template;
mod tool;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, ItemImpl, parse_macro_input};

/// Makes a server of an `impl` block: its marked functions are what clients see, and nothing else is exported.
///
/// Parameters are the arguments, by name; `&str` and `&[T]` may stand for `String` and `Vec<T>`; `Option` means optional; a `&Ctx` anywhere
/// is the request's context. Doc comments are descriptions, of functions and of parameters. `&self` is the server, made by `Default` or `#[init]`.
///
/// - `#[tool]`: `name`, `title`, `description`, `read_only`, `destructive`, `idempotent`, `open_world` (each a flag, or `= false`), `task =
///   "optional"`, `output = Type`, `input_schema` and `output_schema` (constants of JSON text), `meta` (JSON text). Parameters may have `#[arg(…)]` with `name`, `description`,
///   `default`, `min`, `max`, `min_length`, `max_length`, `min_items`, `max_items`, `pattern`, `format`, `one_of`, `header` (mirrored as an HTTP header); or one
///   parameter takes all arguments, `#[args]`. An error is a result with `isError` and the error's text.
/// - `#[resource(uri = "…")]`: `name`, `title`, `description`, `mime`, `meta`.
/// - `#[template(uri = "…/{variable}")]`: the same; its parameters are the variables (`{x}` one segment, `{+x}` several), percent-decoded, of any type that can be
///   parsed; what does not parse is not found.
/// - `#[prompt]`: `name`, `title`, `description`, `meta`. Its parameters may have `#[arg(complete = ["…"])]`, as may a template's.
/// - `#[complete(function, parameter)]`: suggests values for a parameter of a prompt or a template: `fn(value: &str) -> Vec<String>`.
/// - `#[subscribe]`, `#[unsubscribe]`: told of a watched URI: `fn(uri: &str)`.
/// - `#[init]`: makes the server from the operator's configuration: `fn(config: Config) -> Result<Self>`.
///
/// The attribute itself takes `name` and `version` (the package's by default), `title`, `description` (the block's doc comment, or the package's),
/// `website`, `instructions`, and `export(…)` for interfaces whose traits are implemented by hand.
#[proc_macro_attribute]
pub fn server(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let block = parse_macro_input!(item as ItemImpl);
    server::expand(arguments.into(), block).into()
}

/// Makes a type usable as an argument or a structured result: derives serde's `Serialize` and `Deserialize`, and `Schema`. Absent options are left out.
#[proc_macro_attribute]
pub fn data(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    if !arguments.is_empty() {
        return Error::new(proc_macro2::Span::call_site(), "`#[data]` takes no arguments").into_compile_error().into();
    }
    data::expand(input).unwrap_or_else(Error::into_compile_error).into()
}

/// Describes a type's JSON form from its fields, doc comments and serde's attributes. Fields may have `#[schema(…)]` with `min`, `max`,
/// `min_length`, `max_length`, `min_items`, `max_items`, `pattern`, `format`, `default`, `one_of`.
#[proc_macro_derive(Schema, attributes(schema, serde))]
pub fn schema(item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    schema::derive(input).unwrap_or_else(Error::into_compile_error).into()
}
