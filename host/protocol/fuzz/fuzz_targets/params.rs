//! Fuzz target: `Mcp-Param-*` headers and their Base64 form.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| guesthouse_fuzz::checks::params::check(data));
