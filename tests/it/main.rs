//! Integration tests: the whole host, over every transport.

mod admin;
mod apps;
mod cancel;
mod changes;
mod cli;
mod dispatch;
mod faults;
mod files;
mod folders;
mod forge;
mod fuzz_seeds;
mod grants;
mod hostile;
mod http;
mod identity;
mod instances;
mod limits;
mod matrix;
mod questions;
mod rules;
mod samples;
mod state;
mod support;
mod swap;
mod tasks;
mod tidy;
