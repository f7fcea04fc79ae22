//! The seeds of the fuzz targets, through the same checks: what fuzzing has found once is tested for ever.

use crate::support::root;

/// Where the checks find the host's parts.
mod host {
    pub use guesthouse::registry::{schema, template};
    pub use guesthouse::seal;
}

#[path = "../../host/protocol/fuzz/src/checks/mod.rs"]
mod checks;

#[test]
fn every_seed_passes_its_check() {
    for (target, check) in checks::TARGETS {
        let folder = root().join("host/protocol/fuzz/seeds").join(target);
        let mut seeds = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            eprintln!("{}", path.display());
            check(&std::fs::read(&path).unwrap());
            seeds += 1;
        }
        assert!(seeds > 3, "{target} has lost its seeds");
    }
}

#[test]
fn every_target_is_there_to_be_run() {
    let folder = root().join("host/protocol/fuzz/fuzz_targets");
    let mut found: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
    found.sort();
    assert_eq!(found, checks::TARGETS.map(|(target, _)| target));
}
