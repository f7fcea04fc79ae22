//! Misspelt and misplaced attributes.

#[derive(Default)]
struct Server;

#[guesthouse::server(tilte = "A title")]
impl Server {
    #[tool(readonly)]
    fn misspelt_key() {}

    #[tol]
    fn misspelt_attribute() {}

    #[tool]
    #[prompt]
    fn two_kinds() -> String {
        String::new()
    }

    #[resource]
    fn no_uri() -> String {
        String::new()
    }

    #[tool(name = "a tool")]
    fn no_name() {}
}

fn main() {}
