//! State in tests of handlers: kept where a call finishes, forgotten where it does not.
#![cfg(feature = "state")]

use guesthouse::{Bucket, Error, Result, State, testing};
use serde::{Deserialize, Serialize};

#[derive(Default)]
struct Notes;

#[derive(Default, Serialize, Deserialize)]
struct Pad {
    notes: Vec<String>,
}

#[guesthouse::server]
impl Notes {
    /// Writes a note down, unless it is empty.
    #[tool]
    fn note(text: String) -> Result<String> {
        let mut pad: State<Pad> = State::load(Bucket::Principal, "pad")?;
        pad.notes.push(text.clone());
        let number = Bucket::Guest.increment("notes", 1)?;
        if text.is_empty() {
            return Err(Error::failed("nothing to write"));
        }
        Ok(format!("note {} of {number}", pad.notes.len()))
    }

    /// All notes.
    #[tool]
    fn all() -> Result<String> {
        let pad: State<Pad> = State::load(Bucket::Principal, "pad")?;
        Ok(pad.notes.join(","))
    }
}

#[test]
fn state_is_saved_with_the_calls_that_finish() {
    let server = testing::start::<Notes>("{}").unwrap();
    let note = |text: &str| testing::call(&server, "note", &format!("{{\"text\":\"{text}\"}}")).unwrap();
    assert_eq!(note("a").text(), "note 1 of 1");
    assert!(note("").is_error());
    assert_eq!(note("b").text(), "note 2 of 2");
    assert_eq!(testing::call(&server, "all", "{}").unwrap().text(), "a,b");
    assert_eq!(Bucket::Principal.keys().unwrap(), ["pad"]);
}

#[test]
fn a_value_is_saved_when_it_was_changed_and_only_then() {
    drop(State::<Pad>::load(Bucket::Guest, "pad").unwrap());
    assert!(!Bucket::Guest.exists("pad").unwrap());
    let mut pad: State<Pad> = State::load(Bucket::Guest, "pad").unwrap();
    pad.notes.push("x".into());
    pad.save().unwrap();
    assert_eq!(Bucket::Guest.get("pad").unwrap().as_deref(), Some(&br#"{"notes":["x"]}"#[..]));
    Bucket::Guest.set("pad", b"[1]").unwrap();
    assert!(State::<Pad>::load(Bucket::Guest, "pad").is_err());
    Bucket::Guest.delete("pad").unwrap();
    assert!(Bucket::Guest.set("", b"").is_err() && Bucket::Guest.keys().unwrap().is_empty());
}
