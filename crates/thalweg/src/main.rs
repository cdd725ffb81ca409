//! The `thalweg` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    thalweg::cli::run(std::env::args_os()).into()
}
