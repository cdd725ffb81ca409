//! The logs of arbiters and endpoints: what they write to standard output and standard error. Endpoints write events as lines of JSON.

use std::collections::BTreeMap;
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

/// What an endpoint has written about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointNews {
    /// Whether it hears from the arbiter.
    pub contact: ArbiterContact,
    /// Whether the interface of the host is up.
    pub is_interface_up: bool,
    /// Packets that were lost in the endpoint, by reason, without reasons of which there are none: the emulated network has not decided on them.
    pub lost: BTreeMap<String, u64>,
}

impl Default for EndpointNews {
    fn default() -> EndpointNews {
        EndpointNews { contact: ArbiterContact::NotYet, is_interface_up: true, lost: BTreeMap::new() }
    }
}

/// A line of an endpoint's log.
#[derive(Deserialize)]
struct Line {
    event: Option<String>,
    lost: Option<BTreeMap<String, u64>>,
}

/// Opens a log, to which both outputs of a process append.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Returns what an endpoint has written about itself, from this byte of its log on.
pub(crate) fn endpoint_news(path: &Path, from: u64) -> EndpointNews {
    let mut news = EndpointNews::default();
    let text = tail(path, from).unwrap_or_default();
    for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
        match line.event.as_deref() {
            Some("arbiter_answers") => news.contact = ArbiterContact::Answers,
            Some("arbiter_silent") => news.contact = ArbiterContact::Silent,
            Some("interface_down") => news.is_interface_up = false,
            Some("interface_up") => news.is_interface_up = true,
            _ => {}
        }
        news.lost = line.lost.unwrap_or(news.lost);
    }
    news.lost.retain(|_, packets| *packets > 0);
    news
}

/// Returns the last line of a log that is a message for people; `None` if there is none.
pub(crate) fn last_message(path: &Path) -> Option<String> {
    let text = tail(path, 0).ok()?;
    let is_message = |line: &&str| {
        let is_advice = ADVICE.iter().any(|advice| line.starts_with(advice));
        !line.trim().is_empty() && !line.starts_with('{') && !is_advice
    };
    text.lines().rev().find(is_message).map(|line| line.trim().to_owned())
}

/// Reads the end of a file, from this byte at the earliest.
fn tail(path: &Path, from: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL).max(from)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_last_line_about_a_subject_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let news = || endpoint_news(&path, 0);
        assert_eq!((news(), last_message(&path)), (EndpointNews::default(), None));
        let mut log = open(&path).unwrap();
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
            assert_eq!(news().contact, contact, "{line}");
        }
        assert_eq!(last_message(&path).unwrap(), "thalweg: cannot read a packet");
        for (line, is_interface_up, expired) in [
            (r#"{"type":"event","event":"interface_down"}"#, false, None),
            (r#"{"type":"event","event":"packets_lost","lost":{"expired":3,"overflow":0}}"#, false, Some(3)),
            (r#"{"type":"event","event":"interface_up"}"#, true, Some(3)),
            (r#"{"type":"summary","lost":{"expired":5,"overflow":0}}"#, true, Some(5)),
        ] {
            writeln!(log, "{line}").unwrap();
            let news = news();
            assert_eq!(news.is_interface_up, is_interface_up, "{line}");
            assert_eq!(
                news.lost,
                expired.map(|packets| ("expired".to_owned(), packets)).into_iter().collect()
            );
        }
        let restarted = log.metadata().unwrap().len();
        writeln!(log, "thalweg: invalid value\n\nFor more information, try '--help'.").unwrap();
        assert_eq!(last_message(&path).unwrap(), "thalweg: invalid value");
        assert_eq!(endpoint_news(&path, restarted), EndpointNews::default());
        // Far behind the part that is read.
        writeln!(log, "{}", " ".repeat(TAIL as usize)).unwrap();
        assert_eq!((news(), last_message(&path)), (EndpointNews::default(), None));
    }
}
