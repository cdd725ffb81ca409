//! `thalweg emulate` with least slack time first: `least-slack experiment.toml`.

use std::process::ExitCode;

use least_slack::LeastSlack;
use thalweg::cli::own_program::emulate_with;
use thalweg_experiment::experiment::own_scheme::AddedScheme;

fn main() -> ExitCode {
    emulate_with(env!("CARGO_PKG_NAME"), &[AddedScheme::of::<LeastSlack>()])
}
