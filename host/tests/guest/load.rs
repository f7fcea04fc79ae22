//! What is no guest is refused in one sentence that names the file, the cause and the remedy.

use std::path::Path;

use guesthouse::guest::{CallLimits, load_bytes, load_file};
use wasm_encoder::{
    Component, ComponentExportKind, ComponentExportSection, ComponentImportSection, ComponentTypeRef, ComponentTypeSection, InstanceType,
    Module,
};

use crate::support::{engines, hostile, limits, settings};

/// A component that imports, and exports again, an empty instance under each of these names.
fn component(imports: &[&str], exports: &[&str]) -> Vec<u8> {
    let mut types = ComponentTypeSection::new();
    types.instance(&InstanceType::new());
    let mut importing = ComponentImportSection::new();
    for name in imports {
        importing.import(*name, ComponentTypeRef::Instance(0));
    }
    let mut exporting = ComponentExportSection::new();
    for name in exports {
        exporting.export(*name, ComponentExportKind::Instance, 0, None);
    }
    let mut component = Component::new();
    component.section(&types).section(&importing).section(&exporting);
    component.finish()
}

#[test]
fn each_kind_of_wrong_file_has_its_sentence() {
    const LIFECYCLE: &str = "guesthouse:mcp/lifecycle@0.1.0";
    let cut = &hostile()[..hostile().len() / 2];
    let table: [(&[u8], &[&str]); 10] = [
        (b"", &["x.wasm is not a WebAssembly component"]),
        (b"#!/bin/sh", &["x.wasm is not a WebAssembly component", "guesthouse build"]),
        (&Module::new().finish(), &["x.wasm is a core WebAssembly module", "guesthouse build"]),
        (cut, &["x.wasm is a damaged WebAssembly component", "again"]),
        (
            &component(&["wasi:cli/environment@0.2.0"], &["wasi:cli/run@0.2.0"]),
            &["another world", "exports wasi:cli/run@0.2.0", "guesthouse:mcp/lifecycle", "SDK"],
        ),
        (
            &component(&["guesthouse:mcp/context@0.2.0"], &["guesthouse:mcp/lifecycle@0.2.0"]),
            &["built for guesthouse:mcp 0.2.0", "speaks guesthouse:mcp 0.1.0"],
        ),
        (
            &component(&["wasi:http/outgoing-handler@0.2.4"], &[LIFECYCLE]),
            &[
                "imports wasi:http/outgoing-handler@0.2.4",
                "guest `hostile`",
                "not granted",
                "http = [\"https://HOST/*\"]",
                "[guest.hostile.grants]",
            ],
        ),
        (
            &component(&["wasi:keyvalue/store@0.2.0-draft"], &[LIFECYCLE]),
            &["imports wasi:keyvalue/store@0.2.0-draft", "guest `hostile`", "not granted", "`state = true` to [guest.hostile.grants]"],
        ),
        (&component(&["wasi:nn/graph@0.2.0"], &[LIFECYCLE]), &["imports wasi:nn/graph@0.2.0", "guest `hostile`", "offered are"]),
        (&component(&["wasi:cli/environment@0.2.0"], &[LIFECYCLE]), &["does not fit guesthouse:mcp 0.1.0", "SDK"]),
    ];
    for (bytes, parts) in table {
        let error = load_bytes(engines(), "x.wasm", bytes, settings(limits())).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        for part in parts {
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
    }
}

#[test]
fn what_cannot_be_read_or_cannot_fit_is_refused() {
    let error = load_file(engines(), Path::new("/no/such.wasm"), settings(limits())).unwrap_err().to_string();
    assert!(error.contains("/no/such.wasm cannot be read"), "{error}");
    let error = load_file(engines(), Path::new("/"), settings(limits())).unwrap_err().to_string();
    assert!(error.contains("is not a file"), "{error}");
    let tight = CallLimits { memory_bytes: 64 << 10, ..limits() };
    let error = load_bytes(engines(), "x.wasm", hostile(), settings(tight)).unwrap_err().to_string();
    assert!(error.contains("declares a memory of") && error.contains("may have 65536; raise `limits.memory`"), "{error}");
}
