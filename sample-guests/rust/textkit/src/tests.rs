//! Tests of the handlers, natively.

use guesthouse::{Tools as _, testing};

use super::*;
use crate::diff::Change;

const DIFF: &str = "\
diff --git a/src/old name.rs b/src/new name.rs
similarity index 90%
rename from src/old name.rs
rename to src/new name.rs
--- a/src/old name.rs
+++ b/src/new name.rs
@@ -1,3 +1,4 @@ fn main()
 context
--- a deleted line that looks like a header
+++ an added one
+another
\\ No newline at end of file
 context
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
--- /dev/null\t2026-01-01
+++ b/born.txt\t2026-01-01
@@ -0,0 +1,2 @@
+one
+two
";

#[test]
fn words_characters_and_lines_are_counted() {
    let count = |text| {
        let (text, Json(count)) = Textkit::word_count(text);
        (text, count.words, count.characters, count.lines)
    };
    assert_eq!(count(""), ("0 words".into(), 0, 0, 0));
    assert_eq!(count("one\n"), ("1 word".into(), 1, 4, 1));
    assert_eq!(count(" un été\n🦀 \u{a0}x"), ("4 words".into(), 4, 12, 2));
}

#[test]
fn slugs_keep_letters_and_digits() {
    assert_eq!(Textkit::slugify("Ça va? Très bien!").unwrap(), "ça-va-très-bien");
    assert_eq!(Textkit::slugify("--Rust 2024__x--").unwrap(), "rust-2024-x");
    let answer = testing::call(&Textkit, "slugify", r#"{"text":"?!"}"#).unwrap();
    assert!(answer.is_error());
    assert_eq!(answer.text(), "The text has no letter or digit.");
}

#[test]
fn diffs_are_read_line_by_line() {
    let (text, Json(summary)) = Textkit::summarize_diff(DIFF).unwrap();
    assert_eq!(text, "3 files, 4 additions, 2 deletions");
    let files: Vec<_> = summary.files.iter().map(|file| (file.path.as_str(), &file.change, file.additions, file.deletions)).collect();
    assert_eq!(
        files,
        [("src/new name.rs", &Change::Renamed, 2, 1), ("gone.txt", &Change::Deleted, 0, 1), ("born.txt", &Change::Added, 2, 0),]
    );
    let error = testing::call(&Textkit, "summarize_diff", r#"{"diff":"hello"}"#).unwrap();
    assert!(error.is_error() && error.text().starts_with("This is no unified diff"));
}

#[test]
fn case_changes_by_uri() {
    use guesthouse::Resources as _;
    use guesthouse::wit::{Body, Error, ReadOutcome};

    let read = |uri| match Textkit.read_resource(uri) {
        Ok(ReadOutcome::Complete(result)) => match &result.contents[0].body {
            Body::Text(text) => Ok(text.clone()),
            Body::Blob(_) => panic!("a text was expected"),
        },
        Ok(ReadOutcome::InputRequired(_)) => panic!("nothing is asked"),
        Err(Error::NotFound(uri)) => Err(uri),
        Err(error) => panic!("{error:?}"),
    };
    assert_eq!(read("textkit://case/title/the%20qUICK%20%C3%A9t%C3%A9").unwrap(), "The Quick Été");
    assert_eq!(read("textkit://case/upper/a/b").unwrap_err(), "textkit://case/upper/a/b");
    assert_eq!(read("textkit://case/camel/a").unwrap_err(), "textkit://case/camel/a");
    assert!(read("textkit://stopwords").unwrap().starts_with("a\nan\n"));
}

#[test]
fn tools_describe_themselves() {
    let tools = Textkit.list_tools(None).unwrap().tools;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["word_count", "slugify", "summarize_diff"]);
    assert_eq!(
        tools[0].input_schema,
        r#"{"type":"object","properties":{"text":{"type":"string","description":"The text to count."}},"required":["text"],"additionalProperties":false}"#
    );
    let schema = tools[2].output_schema.as_deref().unwrap();
    assert!(schema.contains(
        r#""change":{"type":"string","description":"What happened to the file.","enum":["added","deleted","renamed","modified"]}"#
    ));
}
