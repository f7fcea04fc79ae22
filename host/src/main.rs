//! The `guesthouse` program: reads the arguments, runs the command, reports how it ended.

use std::process::ExitCode;

fn main() -> ExitCode {
    guesthouse::cli::main()
}
