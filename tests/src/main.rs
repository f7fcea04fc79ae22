//! The `guesthouse` program, for integration tests to start.

use std::process::ExitCode;

fn main() -> ExitCode {
    guesthouse::cli::main()
}
