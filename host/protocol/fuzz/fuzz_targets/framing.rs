//! Fuzz target: lines out of a byte stream, and server-sent events.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| guesthouse_fuzz::checks::framing::check(data));
