//! Topology files and network state files.

use thalweg_network::topology::file::TopologyFileError;
use thalweg_network::{NetworkState, Topology};

/// The name of the file in messages.
const NAME: &str = "net.toml";

/// Checks that any text is a valid topology that round-trips, or an error with one line for each problem
/// that has the line of the file.
///
/// # Panics
/// When the property does not hold.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Topology::from_toml(text, NAME) {
        Ok(topology) => {
            topology.check_invariants();
            assert_eq!(Topology::from_toml(&topology.to_toml(), NAME).as_ref(), Ok(&topology));
        }
        Err(error) => check_error(text, &error),
    }
}

/// Checks the same for the state of a network, in both formats.
///
/// # Panics
/// When the property does not hold.
pub fn check_state(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for read in [NetworkState::from_toml, NetworkState::from_json] {
        match read(text, NAME) {
            Ok(state) => {
                state.topology().check_invariants();
                assert_eq!(NetworkState::from_toml(&state.to_toml(), NAME).as_ref(), Ok(&state));
                assert_eq!(NetworkState::from_json(&state.to_json(), NAME).as_ref(), Ok(&state));
            }
            Err(error) => check_error(text, &error),
        }
    }
}

fn check_error(text: &str, error: &TopologyFileError) {
    let message = error.to_string();
    let last_line = text.split('\n').count();
    assert!(!error.problems.is_empty());
    for (line, problem) in message.split('\n').zip(&error.problems) {
        let number = problem.line().unwrap_or(0);
        assert!((1..=last_line).contains(&number), "{message}");
        assert!(line.starts_with(&format!("{NAME}:{number}: ")), "{message}");
        assert!(!line.contains(char::is_control), "{message:?}");
    }
}
