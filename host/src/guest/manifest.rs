//! What a component says about itself: its exports, imports and sizes, read from its bytes without running it.

use wasmparser::{Encoding, Parser, Payload};

use super::engine::SizeClass;
use super::log::clean;
use crate::policy::declared::SECTION;
use crate::policy::{Declaration, Wants};

/// The contract that this host speaks.
pub(crate) const CONTRACT: &str = "guesthouse:mcp";
pub(crate) const CONTRACT_VERSION: &str = "0.1.0";
const WASM_PAGE_BYTES: u64 = 64 << 10;
/// Longest quotation from a component in an error.
const QUOTED_BYTES_MAX: usize = 500;

/// The optional interfaces that a component exports; clients are offered exactly what follows from them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the interface of its name")]
pub struct Exports {
    pub tools: bool,
    pub resources: bool,
    pub subscriptions: bool,
    pub prompts: bool,
    pub completion: bool,
    pub tasks: bool,
    pub migration: bool,
    pub handoff: bool,
}

/// A component's own description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Size of the component.
    pub component_bytes: usize,
    /// Names of all imports, in order, such as `wasi:io/streams@0.2.6`.
    pub imports: Vec<String>,
    /// Names of all exports, in order.
    pub exports: Vec<String>,
    /// Which interfaces of the contract are among the exports.
    pub offers: Exports,
    /// What the component's memories take before its code runs.
    pub memory_bytes_min: u64,
    /// What its tables take before its code runs.
    pub table_elements_min: u64,
    /// Number of core modules inside.
    pub core_modules: usize,
    /// What its build wrote down about it.
    pub declaration: Option<Declaration>,
}

/// Why bytes are no guest: the cause, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// What is wrong, as the rest of a sentence that begins with the file.
    pub cause: String,
    /// What the reader can do, as an imperative.
    pub remedy: String,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.cause, self.remedy)
    }
}

fn unfit(cause: impl Into<String>, remedy: impl Into<String>) -> Unfit {
    Unfit { cause: cause.into(), remedy: remedy.into() }
}

impl Manifest {
    /// Reads the manifest of a guest, and refuses what cannot be one.
    pub fn read(bytes: &[u8]) -> Result<Manifest, Unfit> {
        if Parser::is_core_wasm(bytes) {
            return Err(unfit(
                "is a core WebAssembly module, not a component",
                "run `guesthouse build` in the guest's project to make a component of it",
            ));
        }
        if !Parser::is_component(bytes) {
            return Err(unfit("is not a WebAssembly component", "name a .wasm file such as `guesthouse build` makes"));
        }
        let (mut manifest, declarations) = Manifest::parse(bytes).map_err(|error| {
            unfit(format!("is a damaged WebAssembly component ({})", clean(&error.to_string(), QUOTED_BYTES_MAX)), "build or copy it again")
        })?;
        manifest.check_contract()?;
        manifest.declaration = declaration(&declarations)?;
        Ok(manifest)
    }

    /// What the component wants to be granted; None where it says nothing of it.
    pub fn wants(&self) -> Option<&Wants> {
        self.declaration.as_ref().and_then(|declaration| declaration.wants.as_ref())
    }

    /// The class of engine that the component will run on.
    pub fn class(&self) -> SizeClass {
        SizeClass::of(self.component_bytes, self.memory_bytes_min, self.table_elements_min)
    }

    /// The manifest without its declaration, and the contents of the sections that should hold it.
    fn parse(bytes: &[u8]) -> wasmparser::Result<(Manifest, Vec<&[u8]>)> {
        let mut declarations = Vec::new();
        let mut manifest = Manifest {
            component_bytes: bytes.len(),
            imports: Vec::new(),
            exports: Vec::new(),
            offers: Exports::default(),
            memory_bytes_min: 0,
            table_elements_min: 0,
            core_modules: 0,
            declaration: None,
        };
        // Components nest; only the outermost one's imports and exports are the guest's.
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::Version { encoding, .. } => {
                    depth += 1;
                    manifest.core_modules += usize::from(encoding == Encoding::Module);
                }
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(section) if depth == 1 => {
                    for import in section {
                        manifest.imports.push(import?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if depth == 1 => {
                    for export in section {
                        manifest.exports.push(export?.name.name.to_owned());
                    }
                }
                Payload::CustomSection(section) if depth == 1 && section.name() == SECTION => declarations.push(section.data()),
                Payload::MemorySection(section) => {
                    for memory in section {
                        let bytes = memory?.initial.saturating_mul(WASM_PAGE_BYTES);
                        manifest.memory_bytes_min = manifest.memory_bytes_min.saturating_add(bytes);
                    }
                }
                Payload::TableSection(section) => {
                    for table in section {
                        manifest.table_elements_min = manifest.table_elements_min.saturating_add(table?.ty.initial);
                    }
                }
                _ => {}
            }
        }
        manifest.offers = manifest.offers();
        Ok((manifest, declarations))
    }

    fn offers(&self) -> Exports {
        let has = |interface| self.exports_interface(interface);
        Exports {
            tools: has("tools"),
            resources: has("resources"),
            subscriptions: has("subscriptions"),
            prompts: has("prompts"),
            completion: has("completion"),
            tasks: has("tasks"),
            migration: has("migration"),
            handoff: has("handoff"),
        }
    }

    fn exports_interface(&self, interface: &str) -> bool {
        self.exports.iter().any(|export| split_name(export).is_some_and(|(package, name, _)| package == CONTRACT && name == interface))
    }

    fn check_contract(&self) -> Result<(), Unfit> {
        let names = self.imports.iter().chain(&self.exports);
        for (package, _, version) in names.filter_map(|name| split_name(name)) {
            if package == CONTRACT && !same_release_line(version, CONTRACT_VERSION) {
                let version = clean(version, QUOTED_BYTES_MAX);
                return Err(unfit(
                    format!("was built for {CONTRACT} {version}, and this host speaks {CONTRACT} {CONTRACT_VERSION}"),
                    "build it with the SDK that belongs to this host, or use the host that it was built for",
                ));
            }
        }
        if !self.exports_interface("lifecycle") {
            let found = match self.exports.as_slice() {
                [] => "nothing".to_owned(),
                exports => clean(&exports.join(", "), QUOTED_BYTES_MAX),
            };
            return Err(unfit(
                format!("is a component of another world: it exports {found}, and not {CONTRACT}/lifecycle"),
                "build it with a Guesthouse SDK",
            ));
        }
        Ok(())
    }
}

/// The declaration, of which there can be one.
fn declaration(sections: &[&[u8]]) -> Result<Option<Declaration>, Unfit> {
    let problem = match sections {
        [] => return Ok(None),
        [section] => match Declaration::parse(section) {
            Ok(declaration) => return Ok(Some(declaration)),
            Err(problem) => clean(&problem, QUOTED_BYTES_MAX),
        },
        more => format!("there are {} of them", more.len()),
    };
    Err(unfit(format!("has a section `{SECTION}` that cannot be used ({problem})"), "build it with this host's `guesthouse build`"))
}

/// Splits `package:name/interface@version`; None for plain names.
pub(crate) fn split_name(name: &str) -> Option<(&str, &str, &str)> {
    let (package, interface) = name.split_once('/')?;
    let (interface, version) = interface.split_once('@').unwrap_or((interface, ""));
    Some((package, interface, version))
}

/// Whether two versions promise compatibility: the same major version, and before 1.0 the same minor one.
pub(crate) fn same_release_line(one: &str, other: &str) -> bool {
    release_line(one).is_some_and(|line| release_line(other) == Some(line))
}

fn release_line(version: &str) -> Option<(&str, &str)> {
    let mut parts = version.splitn(3, '.');
    let (major, minor) = (parts.next()?, parts.next()?);
    // Pre-releases promise nothing, not even to themselves under another name.
    if version.contains('-') {
        return Some((version, ""));
    }
    Some((major, if major == "0" { minor } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_lines() {
        let table = [
            ("0.1.0", "0.1.0", true),
            ("0.1.7", "0.1.0", true),
            ("0.2.0", "0.1.0", false),
            ("1.2.0", "1.3.9", true),
            ("1.0.0", "2.0.0", false),
            ("0.1.0-rc.1", "0.1.0", false),
            ("0.1.0-rc.1", "0.1.0-rc.1", true),
            ("", "0.1.0", false),
        ];
        for (one, other, same) in table {
            assert_eq!(same_release_line(one, other), same, "{one} {other}");
        }
    }

    #[test]
    fn names_split() {
        let table = [("wasi:io/streams@0.2.6", Some(("wasi:io", "streams", "0.2.6"))), ("a:b/c", Some(("a:b", "c", ""))), ("plain", None)];
        for (name, parts) in table {
            assert_eq!(split_name(name), parts);
        }
    }

    #[test]
    fn what_a_component_calls_its_parts_is_quoted_clean_and_cut() {
        let manifest = |imports: Vec<String>, exports: Vec<String>| Manifest {
            component_bytes: 0,
            imports,
            exports,
            offers: Exports::default(),
            memory_bytes_min: 0,
            table_elements_min: 0,
            core_modules: 0,
            declaration: None,
        };
        let forged = "x\n2026-01-01 ERROR forged\u{1b}[2J".to_owned();
        for wrong in [
            manifest(Vec::new(), vec![forged.clone(), "y".repeat(100_000)]),
            manifest(vec![format!("{CONTRACT}/context@9.9.9-{forged}{}", "y".repeat(100_000))], Vec::new()),
        ] {
            let said = wrong.check_contract().unwrap_err().to_string();
            assert!(said.contains("ERROR forged") && !said.contains(['\n', '\u{1b}']), "{said:?}");
            assert!(said.len() < 1_000, "{}", said.len());
        }
    }
}
