//! `[samples]`: capture files of samples, and the events that trigger them.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use thalweg_config::{Document, Problem};
use thiserror::Error;

use super::table::Samples;

/// Options of capture files of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleOptions {
    /// Directory of the files; `None` to write none.
    pub folder: Option<PathBuf>,
    /// Format of the files.
    pub format: CaptureFormat,
    /// Events that dump the samples of their collector.
    pub triggers: Vec<Trigger>,
    /// Minimum time between two event dumps of one collector.
    pub min_dump_interval: Duration,
    /// Number of event dumps to keep.
    pub keep: usize,
    /// Delay between event and dump.
    pub after: Duration,
}

/// Without a directory: no files are written.
impl Default for SampleOptions {
    fn default() -> Self {
        SampleOptions {
            folder: None,
            format: CaptureFormat::default(),
            triggers: Vec::new(),
            min_dump_interval: Duration::from_secs(10),
            keep: 20,
            after: Duration::from_millis(5),
        }
    }
}

/// Format of capture files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureFormat {
    /// One file with an interface for each port and direction.
    #[default]
    Pcapng,
    /// One file for each output port.
    Pcap,
}

/// An unknown capture file format.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected pcapng or pcap")]
pub struct ParseCaptureFormatError;

/// An event that can trigger a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A link's utilisation rises to its upper threshold.
    Congestion,
    /// A link's utilisation falls below its lower threshold.
    Cleared,
    /// A flow becomes a cheetah flow.
    Cheetah,
}

impl FromStr for CaptureFormat {
    type Err = ParseCaptureFormatError;

    fn from_str(text: &str) -> Result<Self, ParseCaptureFormatError> {
        match text {
            "pcapng" => Ok(CaptureFormat::Pcapng),
            "pcap" => Ok(CaptureFormat::Pcap),
            _ => Err(ParseCaptureFormatError),
        }
    }
}

impl Trigger {
    /// All triggers.
    pub const ALL: [Trigger; 3] = [Trigger::Congestion, Trigger::Cleared, Trigger::Cheetah];

    /// Returns the name used in the configuration and in file names.
    pub const fn name(self) -> &'static str {
        match self {
            Trigger::Congestion => "congestion",
            Trigger::Cleared => "cleared",
            Trigger::Cheetah => "cheetah",
        }
    }
}

/// Reads the section.
pub(super) fn read(document: &Document, problems: &mut Vec<Problem>) -> SampleOptions {
    let entry = document.one::<Samples>();
    let mut triggers = Vec::new();
    for name in entry.on_event.iter().flatten() {
        match Trigger::ALL.iter().find(|trigger| trigger.name() == name) {
            Some(trigger) => triggers.push(*trigger),
            None => problems.push(entry.refuse(
                Samples::on_event,
                format!("unknown event {name}: expected congestion, cleared or cheetah"),
            )),
        }
    }
    let folder = entry.folder.as_ref().map(|folder| document.folder.join(folder));
    if folder.is_none() && !triggers.is_empty() {
        problems.push(entry.refuse(Samples::on_event, "requires folder"));
    }
    SampleOptions {
        folder,
        format: entry.format,
        triggers,
        min_dump_interval: entry.min_dump_interval.into(),
        keep: entry.keep,
        after: entry.after.into(),
    }
}
