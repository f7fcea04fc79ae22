//! Templates that do not fit their functions.

#[derive(Default)]
struct Server;

#[guesthouse::server]
impl Server {
    #[template(uri = "t://{a}/{b}")]
    fn missing(a: &str) -> String {
        a.into()
    }

    #[template(uri = "t://{style}")]
    fn unknown(stile: &str) -> String {
        stile.into()
    }

    #[template(uri = "t://{style}")]
    fn optional(style: Option<&str>) -> Option<String> {
        style.map(Into::into)
    }

    #[template(uri = "t://{?query}")]
    fn operator(query: &str) -> String {
        query.into()
    }

    #[template(uri = "t://{a}{b}")]
    fn touching(a: &str, b: &str) -> String {
        format!("{a}{b}")
    }

    #[resource(uri = "t://{a}")]
    fn no_template() -> String {
        String::new()
    }

    #[resource(uri = "path/without/scheme")]
    fn no_uri() -> String {
        String::new()
    }
}

fn main() {}
