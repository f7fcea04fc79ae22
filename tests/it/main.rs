//! Integration tests: the whole host, over every transport.

mod changes;
mod cli;
mod dispatch;
mod limits;
mod matrix;
mod questions;
mod samples;
mod support;
mod tasks;
mod tidy;
