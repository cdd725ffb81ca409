//! The ledger of reports: which is the latest of each host that is stored.
//!
//! Each report is announced before its rows are written, and acknowledged afterwards. So after a crash at most one report of each host is
//! in doubt, and the ledger says when its rows would have been received.
//!
//! The file has a JSON object on each line; a later one of a host replaces an earlier one. A line that a crash left incomplete is the last
//! one, and is cut off. Opening the ledger writes it anew, and so does growth beyond [`MAX_BYTES`].

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thalweg_linux::durable_file;

/// Size of the file from which it is written anew.
const MAX_BYTES: u64 = 1 << 20;

/// What is known about a host's reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Entry {
    /// Identifier of the agent's queue.
    pub(super) queue: String,
    /// Number of the latest report that is stored; 0 for none.
    pub(super) stored: u64,
    /// Time of its reception in microseconds since 1970.
    pub(super) received_us: i64,
    /// The report that is being stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) announced: Option<Announced>,
}

/// A report that is being stored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Announced {
    /// Identifier of the agent's queue.
    pub(super) queue: String,
    /// Its number.
    pub(super) number: u64,
    /// Time of reception of its rows in microseconds since 1970.
    pub(super) received_us: i64,
}

#[derive(Deserialize, Serialize)]
struct Line {
    host: String,
    #[serde(flatten)]
    entry: Entry,
}

/// The ledger, and its file.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    file: File,
    bytes: u64,
    entries: BTreeMap<String, Entry>,
}

impl Ledger {
    /// Opens or creates a ledger.
    ///
    /// # Errors
    /// If the file cannot be read or written, or contains something else.
    pub(super) fn open(path: &Path) -> io::Result<Ledger> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut entries = BTreeMap::new();
        let complete = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        for (number, line) in (1..).zip(complete.lines()) {
            let Line { host, entry } = serde_json::from_str(line).map_err(|error| {
                let problem =
                    format!("{}:{number}: not a line of a ledger of reports: {error}", path.display());
                io::Error::new(io::ErrorKind::InvalidData, problem)
            })?;
            entries.insert(host, entry);
        }
        let (file, bytes) = rewrite(path, &entries)?;
        Ok(Ledger { path: path.to_owned(), file, bytes, entries })
    }

    /// Returns the entry of a host.
    pub(super) fn entry(&self, host: &str) -> Option<&Entry> {
        self.entries.get(host)
    }

    /// Returns all hosts with their entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(host, entry)| (host.as_str(), entry))
    }

    /// Replaces the entry of a host in memory, and if possible on the disk.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn set_even_if_unwritten(&mut self, host: &str, entry: Entry) -> io::Result<()> {
        self.entries.insert(host.to_owned(), entry.clone());
        self.set(host, entry)
    }

    /// Forgets in memory that a report was announced, because its rows are not stored.
    pub(super) fn forget_announced(&mut self, host: &str) {
        if let Some(entry) = self.entries.get_mut(host) {
            entry.announced = None;
        }
    }

    /// Replaces the entry of a host, on the disk too.
    ///
    /// # Errors
    /// If the file cannot be written. The entry is unchanged then.
    pub(super) fn set(&mut self, host: &str, entry: Entry) -> io::Result<()> {
        let line = line(host, &entry);
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Removes a partial line, so that the next one starts on a line of its own.
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += line.len() as u64;
        self.entries.insert(host.to_owned(), entry);
        if self.bytes > MAX_BYTES.max(4 * self.entries.len() as u64 * 256) {
            (self.file, self.bytes) = rewrite(&self.path, &self.entries)?;
        }
        Ok(())
    }
}

fn line(host: &str, entry: &Entry) -> Vec<u8> {
    // Texts and numbers can always be serialised.
    let mut line =
        serde_json::to_vec(&Line { host: host.to_owned(), entry: entry.clone() }).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Writes a file of these entries, and opens it for appending. Returns its size too.
fn rewrite(path: &Path, entries: &BTreeMap<String, Entry>) -> io::Result<(File, u64)> {
    let text: Vec<u8> = entries.iter().flat_map(|(host, entry)| line(host, entry)).collect();
    durable_file::replace(path, &text)?;
    Ok((OpenOptions::new().append(true).open(path)?, text.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(stored: u64) -> Entry {
        Entry { queue: "q".to_owned(), stored, received_us: 7, announced: None }
    }

    #[test]
    fn entries_survive_and_an_incomplete_line_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.set("a", entry(1)).unwrap();
        ledger.set("b", entry(2)).unwrap();
        let announced = Announced { queue: "q".to_owned(), number: 2, received_us: 9 };
        let in_doubt = Entry { announced: Some(announced), ..entry(1) };
        ledger.set("a", in_doubt.clone()).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"host\":\"b\",\"queue\":\"q\",\"stored\":3").unwrap();
        let mut ledger = Ledger::open(&path).unwrap();
        assert_eq!((ledger.entry("a"), ledger.entry("b")), (Some(&in_doubt), Some(&entry(2))));
        ledger.set("b", entry(3)).unwrap();
        assert_eq!(Ledger::open(&path).unwrap().entry("b"), Some(&entry(3)));
    }

    #[test]
    fn a_foreign_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        fs::write(&path, "hello\n").unwrap();
        assert!(Ledger::open(&path).unwrap_err().to_string().contains("ledger:1: not a line of a ledger"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "hello\n");
    }

    #[test]
    fn the_file_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.bytes = MAX_BYTES;
        ledger.set("a", entry(1)).unwrap();
        ledger.set("a", entry(2)).unwrap();
        assert!(fs::metadata(&path).unwrap().len() < 200);
        assert_eq!(Ledger::open(&path).unwrap().entry("a"), Some(&entry(2)));
    }
}
