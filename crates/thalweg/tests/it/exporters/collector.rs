//! `thalweg collect` in a namespace, and its files.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use serde_json::Value;
use tempfile::TempDir;

use crate::exporters::{Counts, TIMEOUT, add, send_signal};
use crate::live::Running;

pub(crate) const THALWEG: &str = env!("CARGO_BIN_EXE_thalweg");

/// Listen address in its own namespace.
pub(crate) const ADDRESS: &str = "127.0.0.1:2055";

/// A running process.
pub(crate) struct Collector {
    process: Running,
    lines: BufReader<ChildStdout>,
    folder: TempDir,
}

/// Stored rows and the summary.
pub(crate) struct Kept {
    pub(crate) rows: Vec<Row>,
    pub(crate) summary: Value,
}

/// A row of the files.
#[derive(Debug)]
pub(crate) struct Row {
    flow: crate::exporters::Flow,
    counts: [u64; 2],
    pub(crate) exporter: String,
    format: String,
    /// 0 for an ingress flow, 1 for an egress flow (`flowDirection`, IPFIX element 61).
    direction: i32,
}

impl Collector {
    /// Starts it by a command that runs [`THALWEG`]. Returns when it listens.
    pub(crate) fn start(command: Command) -> Collector {
        Collector::at(command, ADDRESS)
    }

    /// Starts it at another address.
    pub(crate) fn at(mut command: Command, address: &str) -> Collector {
        let folder = TempDir::new().unwrap();
        let arguments = ["collect", "--json", "--interval", "100ms", "--receive-buffer", "1MiB", address];
        let child = command
            .args(arguments)
            .arg("-o")
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut process = Running(child.unwrap());
        let lines = BufReader::new(process.0.stdout.take().unwrap());
        let mut collector = Collector { process, lines, folder };
        // The first line shows that it listens.
        collector.line();
        collector
    }

    /// Waits until it has this many records and received no more for `silence`, or until the timeout.
    pub(crate) fn wait(&mut self, records: u64, silence: Duration) {
        let (mut latest, mut since) = (0, Instant::now());
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline && (latest < records || since.elapsed() < silence) {
            let now = self.line()["records"].as_u64().unwrap();
            if now != latest {
                (latest, since) = (now, Instant::now());
            }
        }
    }

    /// Stops it as Ctrl-C does.
    pub(crate) fn end(mut self) -> Kept {
        send_signal(&self.process.0, "INT");
        let summary = loop {
            let line = self.line();
            if line["type"] == "summary" {
                break line;
            }
        };
        assert_eq!(self.process.0.wait().unwrap().code(), Some(0));
        let files = files_below(&self.folder.path().join("flows"));
        Kept { rows: files.iter().flat_map(|file| rows(file)).collect(), summary }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "the process has ended");
        serde_json::from_str(&line).unwrap()
    }
}

impl Kept {
    /// Returns the counts of IP flows in both directions. Checks the export format.
    #[track_caller]
    pub(crate) fn counts(&self, format: &str) -> Counts {
        self.counts_if(format, |_| true)
    }

    /// Returns the counts of ingress (0) or egress (1) flows.
    #[track_caller]
    pub(crate) fn counts_of_direction(&self, format: &str, direction: i32) -> Counts {
        self.counts_if(format, |row| row.direction == direction)
    }

    #[track_caller]
    fn counts_if(&self, format: &str, matches: impl Fn(&Row) -> bool) -> Counts {
        let lost = &self.summary["lost"];
        for place in ["kernel_drops", "unreadable_messages", "sets_without_template", "store_records"] {
            assert_eq!(lost[place], 0, "{place} of {lost}");
        }
        assert_eq!(self.rows.len() as u64, self.summary["records"], "each record is a row");
        let mut counts = Counts::new();
        // Records of non-IP packets, such as ARP, have no addresses.
        for row in self.rows.iter().filter(|row| !row.flow.0.is_empty() && matches(row)) {
            assert_eq!(row.format, format, "{row:?}");
            add(&mut counts, row.flow.clone(), row.counts);
        }
        counts
    }

    /// Returns the losses by sequence number.
    pub(crate) fn sequence_losses(&self) -> u64 {
        self.summary["lost"]["in_transit"].as_u64().unwrap()
    }
}

fn rows(file: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let place = |name: &str| schema.columns().iter().position(|column| column.name() == name).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        let text = |name| row.get_string(place(name)).unwrap().clone();
        let small = |name| row.get_int(place(name)).unwrap();
        let port = |name| u64::try_from(small(name)).unwrap();
        let count = |name| u64::try_from(row.get_long(place(name)).unwrap()).unwrap();
        Row {
            flow: (text("src"), text("dst"), port("src_port"), port("dst_port"), port("protocol")),
            counts: [count("packets"), count("bytes")],
            exporter: text("exporter"),
            format: text("format"),
            direction: small("flow_direction"),
        }
    });
    rows.collect()
}

fn files_below(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    entries
        .map(|entry| entry.unwrap().path())
        .flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .collect()
}
