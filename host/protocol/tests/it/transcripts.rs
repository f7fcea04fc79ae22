//! Replays every transcript: what goes in stands in the file, what comes out must be what stands there, too.
//!
//! Run with `BLESS=1` in the environment to write what came out into the files, and read the difference.

use std::path::{Path, PathBuf};

use crate::replay::Replay;

#[test]
fn every_transcript_replays() {
    let files = files();
    assert!(files.len() > 10, "the transcripts are gone");
    let failed: Vec<String> = files.iter().filter_map(|file| check(file).err()).collect();
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

#[expect(clippy::disallowed_methods, reason = "transcripts are files, and refreshing them is asked for by a variable")]
fn check(file: &Path) -> Result<(), String> {
    let expected = std::fs::read_to_string(file).expect("a readable transcript");
    let mut replay = Replay::new();
    let mut actual = String::new();
    for line in expected.lines() {
        let produced = ["←", "·"].iter().any(|mark| line.starts_with(mark));
        if !produced {
            actual.push_str(line);
            actual.push('\n');
            for line in replay.line(line) {
                actual.push_str(&line);
                actual.push('\n');
            }
        }
    }
    if let Some(problem) = replay.problems().first() {
        return Err(format!("{}: {problem}", file.display()));
    }
    if actual == expected {
        return Ok(());
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(file, actual).expect("a writable transcript");
        return Ok(());
    }
    let differs = actual.lines().zip(expected.lines()).find(|(actual, expected)| actual != expected);
    let (actual, expected) = differs.unwrap_or(("(another length)", ""));
    Err(format!("{}:\n  came out: {actual}\n  expected: {expected}", file.display()))
}

#[expect(clippy::disallowed_methods, reason = "transcripts are files")]
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of transcripts")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    files
}
