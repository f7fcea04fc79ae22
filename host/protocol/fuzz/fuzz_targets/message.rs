//! Fuzz target: one text from a client.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| guesthouse_fuzz::checks::message::check(data));
