//! Names that are taken or unknown.

#[derive(Default)]
struct Server;

#[guesthouse::server]
impl Server {
    #[tool(name = "same")]
    fn first() {}

    #[tool]
    fn same() {}
}

#[derive(Default)]
struct Completing;

#[guesthouse::server]
impl Completing {
    #[prompt]
    fn rewrite(tone: &str) -> String {
        tone.into()
    }

    #[complete(rewrite, tune)]
    fn tunes(_value: &str) -> Vec<String> {
        Vec::new()
    }
}

#[derive(Default)]
struct Exporting;

#[guesthouse::server(export(task))]
impl Exporting {
    #[tool]
    fn tool() {}
}

fn main() {}
