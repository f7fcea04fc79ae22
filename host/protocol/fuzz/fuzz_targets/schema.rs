//! Fuzz target: JSON Schemas of tools, and values against them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| guesthouse_fuzz::checks::schema::check(data));
