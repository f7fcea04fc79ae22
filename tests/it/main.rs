//! Integration tests: the whole host, over every transport.
#![expect(unreachable_pub, reason = "helpers are shared between the modules of one test program")]

mod cli;
mod dispatch;
mod limits;
mod samples;
mod support;
mod tidy;
