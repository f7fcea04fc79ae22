//! The Rust side of the contract in `wit/`: the only place that generates bindings.

#[expect(missing_docs, reason = "generated; the documentation is in wit/")]
mod generated {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "guesthouse:mcp/everything",
        imports: {
            // These two wait for the client's connection, and must not hold a thread meanwhile.
            "guesthouse:mcp/context.report-progress": async,
            "guesthouse:mcp/context.log": async,
        },
        exports: { default: async },
        additional_derives: [PartialEq],
    });
}

#[expect(missing_docs, reason = "generated; the documentation is in wit/deps/")]
mod wasi_keyvalue {
    wasmtime::component::bindgen!({
        path: "../wit/deps/keyvalue",
        world: "wasi:keyvalue/imports",
        // All of them may wait for the storage.
        imports: { default: async },
        with: { "wasi:keyvalue/store.bucket": crate::capability::keyvalue::Bucket },
    });
}

pub use generated::exports::guesthouse::mcp::{completion, handoff, lifecycle, migration, prompts, resources, subscriptions, tasks, tools};
pub use generated::guesthouse::mcp::{changes, context, types};
pub use wasi_keyvalue::wasi::keyvalue;
