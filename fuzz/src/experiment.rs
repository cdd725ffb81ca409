//! Experiment files of the emulator.

use thalweg_experiment::experiment::{Experiment, ExperimentError};

/// Name of the file, as messages have it.
const NAME: &str = "experiment.toml";

/// Any text is an experiment, which prints and reads back, or is refused, each problem on a line of its own that names
/// the line of the file. What the values mean together is not looked at: that takes memory as networks do.
///
/// # Panics
/// If it does not hold.
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
        Err(error) => panic!("nothing was read from a file or typed: {error}"),
    }
}

/// The line that says how many more problems there are.
fn is_rest(line: &str) -> bool {
    line.starts_with(&format!("{NAME}: and ")) && line.ends_with(" more")
}
