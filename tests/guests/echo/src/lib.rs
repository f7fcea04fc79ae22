//! The smallest useful guest: one tool that answers with its argument. Benchmarks call it.

#[derive(Default)]
struct Echo;

#[guesthouse::server]
impl Echo {
    /// Answers with the message.
    #[tool(read_only, idempotent, open_world = false)]
    fn echo(
        /// What to say.
        message: String,
    ) -> String {
        message
    }
}

#[cfg(test)]
mod tests {
    use guesthouse::testing;

    use super::Echo;

    #[test]
    fn the_message_comes_back() {
        let answer = testing::call(&Echo, "echo", r#"{"message":"h\u00e9 \"x\""}"#).unwrap();
        assert_eq!(answer.text(), "hé \"x\"");
        assert!(testing::call(&Echo, "echo", "{}").unwrap_err().contains("`message` is missing"));
    }
}
