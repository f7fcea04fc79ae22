//! Parameters that a handler cannot have.

#![allow(unused_variables)]

use guesthouse::Ctx;

#[derive(Default)]
struct Server;

#[guesthouse::server]
impl Server {
    #[tool]
    async fn asynchronous() {}

    #[tool]
    fn generic<T>(value: T) {}

    #[tool]
    fn mutable(&mut self) {}

    #[tool]
    fn pattern((a, b): (u8, u8)) {}

    #[tool]
    fn by_value(ctx: Ctx) {}

    #[tool]
    fn default_and_option(#[arg(default = 1)] count: Option<u8>) {}

    #[prompt]
    fn prompt(#[arg(min = 1)] count: u8) -> String {
        String::new()
    }

    #[tool]
    fn impl_trait() -> impl Into<String> {
        ""
    }
}

fn main() {}
