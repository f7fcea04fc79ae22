//! Guests as tests need them: built once, by the host's own builder.

use guesthouse::build::{self, BuildContext, Project};
use guesthouse::config::paths;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

static BUILT: LazyLock<Mutex<HashMap<String, PathBuf>>> = LazyLock::new(Mutex::default);

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The component of the project in this folder of the repository.
pub fn component(folder: &str) -> PathBuf {
    let mut built = BUILT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(file) = built.get(folder) {
        return file.clone();
    }
    let project = Project::detect(&root().join(folder)).unwrap().unwrap_or_else(|| panic!("{folder} is no project"));
    let mut context = BuildContext::new(paths::cache().unwrap(), true);
    let file = build::build(&project, &mut context).unwrap_or_else(|error| panic!("{folder}: {error:#}")).component;
    built.insert(folder.into(), file.clone());
    file
}
