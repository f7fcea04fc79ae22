//! Integration tests: the whole host, over every transport.

mod cli;
mod dispatch;
mod faults;
mod fuzz_seeds;
mod limits;
mod rules;
mod samples;
mod support;
mod tidy;
