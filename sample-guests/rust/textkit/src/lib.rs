//! Small, exact tools for plain text.

mod case;
mod diff;

use case::Style;
use diff::DiffSummary;
use guesthouse::{Json, Result, data, ensure};

#[derive(Default)]
struct Textkit;

#[data]
struct WordCount {
    /// Words, separated by white space.
    words: usize,
    /// Unicode code points.
    characters: usize,
    /// Lines; the last needs no line feed.
    lines: usize,
}

#[guesthouse::server(title = "Textkit", instructions = "Count with word_count instead of estimating.")]
impl Textkit {
    /// Counts the words, characters and lines of a text.
    #[tool(title = "Count words", read_only, idempotent, open_world = false)]
    fn word_count(
        /// The text to count.
        text: &str,
    ) -> (String, Json<WordCount>) {
        let words = text.split_whitespace().count();
        let lines = text.split_terminator('\n').count();
        (counted(words, "word"), Json(WordCount { words, characters: text.chars().count(), lines }))
    }

    /// Turns a text into a slug for a URL: lower case, words joined by hyphens.
    #[tool(title = "Make a slug", read_only, idempotent, open_world = false)]
    fn slugify(
        /// The text to turn into a slug.
        text: &str,
    ) -> Result<String> {
        let lower = text.to_lowercase();
        let words: Vec<_> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        ensure!(!words.is_empty(), "The text has no letter or digit.");
        Ok(words.join("-"))
    }

    /// Lists the files that a unified diff changes, with the lines that it adds and deletes.
    #[tool(title = "Summarize a diff", read_only, idempotent, open_world = false)]
    fn summarize_diff(
        /// A unified diff, as `git diff` prints it.
        diff: &str,
    ) -> Result<(String, Json<DiffSummary>)> {
        let summary = diff::summarize(diff);
        ensure!(!summary.files.is_empty(), "This is no unified diff: no line begins with \"diff --git\", \"--- \" or \"+++ \".");
        let parts = [(summary.files.len(), "file"), (summary.additions, "addition"), (summary.deletions, "deletion")];
        Ok((parts.map(|(count, noun)| counted(count, noun)).join(", "), Json(summary)))
    }

    /// English words too common to search for, one per line.
    #[resource(uri = "textkit://stopwords", title = "Stop words")]
    fn stopwords() -> &'static str {
        include_str!("../stopwords.txt")
    }

    /// A text in upper, lower or title case.
    #[template(uri = "textkit://case/{style}/{text}", title = "Change case")]
    fn case(#[arg(complete = ["upper", "lower", "title"])] style: Style, text: &str) -> String {
        style.apply(text)
    }

    /// Rewrites a text in a chosen tone.
    #[prompt(title = "Rewrite")]
    fn rewrite(
        /// The text to rewrite.
        text: &str,
        /// How it should sound; plain if not given.
        #[arg(complete = ["concise", "formal", "friendly", "plain", "playful"])]
        tone: Option<&str>,
    ) -> String {
        let tone = tone.unwrap_or("plain");
        format!("Rewrite the text below in a {tone} tone. Keep its meaning and its language, and answer with the new text only.\n\n{text}")
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
