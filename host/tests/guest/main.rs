//! The sandbox seen from outside: hostile guests fail their own calls, and what is no guest is refused.
#![expect(clippy::unwrap_used, clippy::panic, unreachable_pub, reason = "helpers of tests may panic, and are shared")]

mod support;

mod cache;
mod context;
mod hostile;
mod http;
mod instances;
mod load;
mod resident;
mod share;
mod wasi;
