//! The command line of Guesthouse.
fn main() {}
