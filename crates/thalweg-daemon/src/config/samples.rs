//! `[samples]`: where capture files of samples go, and what makes them be written.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use thalweg_config::{Document, Problem};
use thiserror::Error;

use super::table::Samples;

/// Where files go, and what makes them be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleOptions {
    /// The folder; `None` for none.
    pub folder: Option<PathBuf>,
    /// What files.
    pub format: CaptureFormat,
    /// What makes a collector's samples be written.
    pub triggers: Vec<Trigger>,
    /// Least time between two dumps of a collector for what happens.
    pub spacing: Duration,
    /// Dumps for what happens that are kept.
    pub keep: usize,
    /// How long after it happened they are written.
    pub after: Duration,
}

/// No folder: nothing is written.
impl Default for SampleOptions {
    fn default() -> Self {
        SampleOptions {
            folder: None,
            format: CaptureFormat::default(),
            triggers: Vec::new(),
            spacing: Duration::from_secs(10),
            keep: 20,
            after: Duration::from_millis(5),
        }
    }
}

/// What a capture file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureFormat {
    /// One file, with an interface for each port and direction.
    #[default]
    Pcapng,
    /// A file for each output port.
    Pcap,
}

/// Text that is no format of capture files.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected pcapng or pcap")]
pub struct ParseCaptureFormatError;

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A link's utilisation rises to its upper threshold.
    Congestion,
    /// A link's utilisation falls to its lower threshold.
    Relief,
    /// A flow becomes a cheetah.
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
    /// All there are.
    pub const ALL: [Trigger; 3] = [Trigger::Congestion, Trigger::Relief, Trigger::Cheetah];

    /// As the configuration and names of files have it.
    pub const fn name(self) -> &'static str {
        match self {
            Trigger::Congestion => "congestion",
            Trigger::Relief => "relief",
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
                format!("{name} is nothing that happens: expected some of congestion, relief, cheetah"),
            )),
        }
    }
    let folder = entry.folder.as_ref().map(|folder| document.folder.join(folder));
    if folder.is_none() && !triggers.is_empty() {
        problems.push(entry.refuse(Samples::on_event, "it needs a folder for the files"));
    }
    SampleOptions {
        folder,
        format: entry.format,
        triggers,
        spacing: entry.spacing.into(),
        keep: entry.keep,
        after: entry.after.into(),
    }
}
