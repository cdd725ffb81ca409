//! The logs of arbiters and endpoints: what they write to standard output and standard error. Endpoints write events as lines of JSON.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::Deserialize;

/// Bytes at the end of a log that are read.
const TAIL: u64 = 64 << 10;

/// What follows after a message, of the command line and of a panic.
const ADVICE: [&str; 2] = ["For more information", "note: "];

/// Whether an endpoint hears from its arbiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArbiterContact {
    /// It has not heard from it since it started.
    NotYet,
    /// The arbiter answers.
    Answers,
    /// The arbiter has fallen silent.
    Silent,
}

/// A line of an endpoint's log.
#[derive(Deserialize)]
struct Line {
    event: Option<String>,
}

/// Creates an empty log. Both outputs of a process append to it.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    File::create(path)?;
    OpenOptions::new().append(true).open(path)
}

/// Returns the last event about the arbiter in the log of an endpoint.
pub(crate) fn arbiter_contact(path: &Path) -> ArbiterContact {
    let text = tail(path).unwrap_or_default();
    let of_line = |line: &str| match serde_json::from_str::<Line>(line).ok()?.event?.as_str() {
        "arbiter_answers" => Some(ArbiterContact::Answers),
        "arbiter_silent" => Some(ArbiterContact::Silent),
        _ => None,
    };
    text.lines().rev().find_map(of_line).unwrap_or(ArbiterContact::NotYet)
}

/// Returns the last line of a log that is a message for people; `None` if there is none.
pub(crate) fn last_message(path: &Path) -> Option<String> {
    let text = tail(path).ok()?;
    let is_message = |line: &&str| {
        let is_advice = ADVICE.iter().any(|advice| line.starts_with(advice));
        !line.trim().is_empty() && !line.starts_with('{') && !is_advice
    };
    text.lines().rev().find(is_message).map(|line| line.trim().to_owned())
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_last_event_about_the_arbiter_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert_eq!((arbiter_contact(&path), last_message(&path)), (ArbiterContact::NotYet, None));
        let mut log = create(&path).unwrap();
        for (line, contact) in [
            ("", ArbiterContact::NotYet),
            (
                r#"{"type":"event","event":"arbiter_answers","address":"127.0.0.1:6589"}"#,
                ArbiterContact::Answers,
            ),
            (r#"{"type":"event","event":"mtu_changed","mtu":1400}"#, ArbiterContact::Answers),
            (r#"{"type":"status","held":0}"#, ArbiterContact::Answers),
            (r#"{"type":"event","event":"arbiter_silent","silence_ns":100}"#, ArbiterContact::Silent),
            ("thalweg: cannot read a packet", ArbiterContact::Silent),
            (r#"{"type":"event","event":"arbi"#, ArbiterContact::Silent),
        ] {
            writeln!(log, "{line}").unwrap();
            assert_eq!(arbiter_contact(&path), contact, "{line}");
        }
        assert_eq!(last_message(&path).unwrap(), "thalweg: cannot read a packet");
        writeln!(log, "thalweg: invalid value\n\nFor more information, try '--help'.").unwrap();
        assert_eq!(last_message(&path).unwrap(), "thalweg: invalid value");
        // Far behind the part that is read.
        writeln!(log, "{}", " ".repeat(TAIL as usize)).unwrap();
        assert_eq!((arbiter_contact(&path), last_message(&path)), (ArbiterContact::NotYet, None));
    }
}
