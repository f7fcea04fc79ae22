//! Fuzz target: headers and body of one HTTP request.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| guesthouse_fuzz::checks::http::check(data));
