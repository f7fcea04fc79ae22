//! Fuzz target: sealed tokens.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| guesthouse_fuzz::checks::seal::check(data));
