//! Fuzz target: a sequence of texts and endings, in every mode.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| guesthouse_fuzz::checks::peer::check(data));
