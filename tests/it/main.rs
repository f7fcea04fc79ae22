//! Integration tests: the whole host, over every transport.

mod apps;
mod changes;
mod cli;
mod dispatch;
mod limits;
mod matrix;
mod questions;
mod samples;
mod support;
mod tidy;
