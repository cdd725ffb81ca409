//! Experiment files of the emulator.

use thalweg_experiment::experiment::{Experiment, ExperimentError};

/// The name of the file in messages.
const NAME: &str = "experiment.toml";

/// Checks that any text is an experiment that round-trips, or an error with one line for each problem that has
/// the line of the file. The experiment is not prepared, since that takes as much memory as its network.
///
/// # Panics
/// When the property does not hold.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Experiment::parse(text, NAME) {
        Ok(experiment) => {
            let printed = experiment.print();
            let again =
                Experiment::parse(&printed, NAME).unwrap_or_else(|error| panic!("{error}\n{printed}"));
            assert_eq!(printed, again.print());
        }
        Err(error @ ExperimentError::Invalid(_)) => {
            let last_line = text.split('\n').count();
            let message = error.to_string();
            assert!(!message.is_empty());
            for line in message.split('\n').filter(|line| !is_rest(line)) {
                assert!(!line.contains(char::is_control), "{message:?}");
                let of_file = line.strip_prefix(&format!("{NAME}:")).and_then(|rest| rest.split_once(": "));
                let number: usize = of_file.and_then(|(number, _)| number.parse().ok()).unwrap_or(0);
                assert!((1..=last_line).contains(&number), "{message}");
            }
        }
        Err(error) => panic!("unexpected error without a file: {error}"),
    }
}

/// Returns whether the line is the count of further problems.
fn is_rest(line: &str) -> bool {
    line.starts_with(&format!("{NAME}: and ")) && line.ends_with(" more")
}
