//! Topology files.

use thalweg_network::Topology;

/// Name of the file, as messages have it.
const NAME: &str = "net.toml";

/// Any text is a topology, which is sound and is read again as it is printed, or is refused, each problem on a line
/// of its own that names the line of the file.
///
/// # Panics
/// If it does not hold.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Topology::from_toml(text, NAME) {
        Ok(topology) => {
            topology.check_invariants();
            assert_eq!(Topology::from_toml(&topology.to_toml(), NAME).as_ref(), Ok(&topology));
        }
        Err(error) => {
            let message = error.to_string();
            let last_line = text.split('\n').count();
            assert!(!error.problems.is_empty());
            for (line, problem) in message.split('\n').zip(&error.problems) {
                assert!((1..=last_line).contains(&problem.line), "{message}");
                assert!(line.starts_with(&format!("{NAME}:{}: ", problem.line)), "{message}");
                assert!(!line.contains(char::is_control), "{message:?}");
            }
        }
    }
}
