//! Writes `src/bindings/*.rs` of the SDK from the contract in `wit/`.
//!
//! The bindings are committed, so that authors do not compile a WIT parser before their first guest. Each exported interface has a file of
//! its own, because a guest exports only those for which it declares something.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use wit_bindgen_core::wit_parser::{Resolve, SourceMap};
use wit_bindgen_core::{Files, WorldGenerator as _};
use wit_bindgen_rust::{Opts, WithOption};

const VERSION: &str = "0.1.0";
const IMPORTS: [&str; 3] = ["types", "context", "changes"];
const EXPORTS: [&str; 9] = ["lifecycle", "tools", "resources", "subscriptions", "prompts", "completion", "tasks", "migration", "handoff"];

/// What guests with the feature `state` import, too.
const KEYVALUE: &str = "import wasi:keyvalue/store@0.2.0-draft; import wasi:keyvalue/atomics@0.2.0-draft;";

const WITHOUT_TYPES: [&str; 2] = ["migration", "handoff"];

fn main() -> anyhow::Result<()> {
    for (path, text) in generate()? {
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Every file of bindings, with its text.
fn generate() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the generator has no parent folder")?;
    let wit = sdk.join("../../wit");
    let imports: String = IMPORTS.map(|name| format!("import guesthouse:mcp/{name}@{VERSION};")).concat();
    let mut files = vec![("imports", bindings(&wit, "imports", &imports, false)?)];
    files.push(("keyvalue", bindings(&wit, "keyvalue", KEYVALUE, false)?));
    for name in EXPORTS {
        files.push((name, bindings(&wit, name, &format!("export guesthouse:mcp/{name}@{VERSION};"), true)?));
    }
    Ok(files.into_iter().map(|(name, text)| (sdk.join(format!("src/bindings/{name}.rs")), text)).collect())
}

fn bindings(wit: &Path, world_name: &str, items: &str, export: bool) -> anyhow::Result<String> {
    let mut resolve = Resolve::default();
    resolve.push_dir(wit)?;
    let mut source = SourceMap::new();
    source.push_str("world.wit", format!("package guesthouse:sdk; world {world_name} {{ {items} }}"));
    let group = source.parse().map_err(|(source, error)| anyhow::anyhow!(error.render(&source)))?;
    let package = resolve.push_group(group)?;
    let world = resolve.select_world(&[package], Some(world_name))?;
    // The generator refuses a mapping that it has no use for.
    let with = match export && !WITHOUT_TYPES.contains(&world_name) {
        true => vec![(format!("guesthouse:mcp/types@{VERSION}"), WithOption::Path("crate::bindings::types".into()))],
        false => Vec::new(),
    };
    let options = Opts {
        format: true,
        generate_all: true,
        generate_unused_types: true,
        pub_export_macro: true,
        runtime_path: Some("::wit_bindgen::rt".into()),
        with,
        ..Opts::default()
    };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files)?;
    let Some((_, text)) = files.iter().next() else { bail!("nothing was generated") };
    let text = String::from_utf8(text.to_vec())?;
    Ok(format!("//! Written by `cargo run -p guesthouse-sdk-generate` from the contract.\n{text}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn bindings_are_those_of_the_contract() {
        for (path, text) in super::generate().unwrap() {
            let committed = std::fs::read_to_string(&path).unwrap();
            assert!(committed == text, "{} is out of date: run `cargo run -p guesthouse-sdk-generate`", path.display());
        }
    }
}
