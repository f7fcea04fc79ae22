//! A guest that keeps notes in its state, written with the SDK.

use guesthouse::{Bucket, Result, State};

/// Keeps notes.
#[derive(Default)]
struct Notes;

#[guesthouse::server]
impl Notes {
    /// Writes a note down.
    #[tool]
    fn note(
        /// What to write.
        text: String,
    ) -> Result<String> {
        let mut notes: State<Vec<String>> = State::load(Bucket::Principal, "notes")?;
        notes.push(text);
        let all = Bucket::Guest.increment("count", 1)?;
        Ok(format!("{}; {all} by all", notes.join(", ")))
    }

    /// Writes more down than there is room for, and does not look whether it was saved.
    #[tool]
    fn flood() -> Result<String> {
        let mut notes: State<Vec<String>> = State::load(Bucket::Principal, "notes")?;
        notes.push("x".repeat(2 << 20));
        Ok("all is well".into())
    }

    /// All keys.
    #[tool]
    fn keys() -> Result<String> {
        Ok([Bucket::Guest.keys()?, Bucket::Principal.keys()?].concat().join(", "))
    }
}
