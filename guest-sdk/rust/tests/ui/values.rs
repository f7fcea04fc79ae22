//! Values that an attribute cannot have.

#![allow(unused_variables)]

#[derive(Default)]
struct Literal;

#[guesthouse::server]
impl Literal {
    #[tool]
    fn no_literal(#[arg(min = 1 + 1)] count: u8) {}
}

#[derive(Default)]
struct Text;

#[guesthouse::server]
impl Text {
    #[tool(title = 1)]
    fn no_text() {}
}

#[derive(Default)]
struct Task;

#[guesthouse::server]
impl Task {
    #[tool(task = "sometimes")]
    fn no_task_support() {}
}

#[derive(Default)]
struct List;

#[guesthouse::server]
impl List {
    #[prompt]
    fn no_list(#[arg(complete = Self::values)] value: &str) -> String {
        value.into()
    }
}

fn main() {}
