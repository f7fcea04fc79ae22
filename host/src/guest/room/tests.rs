//! Tests of what is put into a room, what is refused, and what the trail says of both.

use std::sync::{Arc, Mutex};

use super::*;
use crate::audit::Sink;
use crate::guest::Exports;
use crate::policy::Declaration;

#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl Sink for Seen {
    fn record(&self, event: &Event<'_>) {
        let Event { what, guest, subject, value, .. } = event;
        self.0.lock().unwrap().push(format!("{what:?} {guest} {subject} {value}"));
    }
}

fn manifest(imports: &[&str], wants: Option<&str>) -> Manifest {
    let declaration = wants.map(|text| Declaration::new("n".into(), "1".into(), Some(toml::from_str(text).unwrap())).unwrap());
    Manifest {
        component_bytes: 0,
        imports: imports.iter().map(|import| (*import).to_owned()).collect(),
        exports: Vec::new(),
        offers: Exports::default(),
        memory_bytes_min: 0,
        table_elements_min: 0,
        core_modules: 0,
        declaration,
    }
}

/// What comes of these grants, and what the trail says of it.
fn furnished(imports: &[&str], wants: Option<&str>, grants: &str) -> (Result<Room, String>, Vec<String>) {
    let grants: Grants = toml::from_str(grants).unwrap();
    let seen = Arc::new(Seen::default());
    let room = Room { audit: Audit::to(seen.clone()), env: grants.environment().unwrap(), ..Room::default() };
    let room = room.furnish("notes", &manifest(imports, wants), &grants).map_err(|unfit| unfit.to_string());
    if let Ok(room) = &room {
        room.note_grants("notes");
    }
    let events = seen.0.lock().unwrap().clone();
    (room, events)
}

#[test]
fn a_room_has_what_is_granted_and_declared_and_the_trail_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let grants = format!(
        "state = true\nhttp = [\"https://a/*\"]\nenv = [\"PATH\", \"HOME\"]\ndirs = [{{ host = \"{path}\", guest = \"/d\", write = true }}]"
    );
    let (room, events) = furnished(&[], None, &grants);
    let room = room.unwrap();
    assert!(room.grants.state && room.env.value("PATH").is_some());
    assert_eq!(format!("{:?}", room.folders), "[\"/d\"]");
    let dirs = format!("Granted notes dirs {path}");
    let expected =
        ["Granted notes state buckets", "Granted notes http https://a/*", &dirs, "Granted notes env PATH", "Granted notes env HOME"];
    assert_eq!(events, expected);

    let (room, events) = furnished(&[], Some("env = [\"PATH\"]"), &grants);
    let room = room.unwrap();
    assert_eq!((room.env.pairs().len(), format!("{:?}", room.folders).as_str(), room.grants.state), (1, "[]", false));
    assert_eq!(events, ["Granted notes env PATH"]);
}

#[test]
fn what_is_missing_is_refused_and_the_trail_says_so() {
    for (imports, wants, grants, said, trail) in [
        (
            &["wasi:keyvalue/store@0.2.0-draft"][..],
            None,
            "",
            "which is not granted it",
            Some("Refused notes state wasi:keyvalue/store@0.2.0-draft"),
        ),
        (&[], Some("http = [{ pattern = \"https://a/*\", required = true }]"), "", "`https://a/*`", Some("Refused notes http https://a/*")),
        (
            &[],
            Some("env = [{ name = \"GUESTHOUSE_TEST_NO_SUCH_VARIABLE\", required = true }]"),
            "env = [\"GUESTHOUSE_TEST_NO_SUCH_VARIABLE\"]",
            "`GUESTHOUSE_TEST_NO_SUCH_VARIABLE` for guest `notes`, which is granted it and not set",
            Some("Refused notes env GUESTHOUSE_TEST_NO_SUCH_VARIABLE"),
        ),
        (
            &[],
            None,
            "dirs = [{ host = \"/no/such/folder\", guest = \"/d\" }]",
            "`/no/such/folder` for guest `notes`, which cannot be opened",
            None,
        ),
    ] {
        let (room, events) = furnished(imports, wants, grants);
        let refusal = room.unwrap_err();
        assert!(refusal.contains(said), "{refusal}");
        assert_eq!(events.first().map(String::as_str), trail);
    }
    let optional = furnished(&[], Some("env = [\"GUESTHOUSE_TEST_NO_SUCH_VARIABLE\"]"), "env = [\"GUESTHOUSE_TEST_NO_SUCH_VARIABLE\"]");
    assert!(optional.0.unwrap().env.pairs().is_empty(), "one that is not set is not there");
}
