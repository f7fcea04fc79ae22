//! Finds or makes a Rust compiler that can target WebAssembly.
