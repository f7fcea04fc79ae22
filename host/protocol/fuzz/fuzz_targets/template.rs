//! Fuzz target: URI templates and the URIs that they stand for.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| guesthouse_fuzz::checks::template::check(data));
