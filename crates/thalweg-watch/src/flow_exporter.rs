//! Export of flow records during a run, by IPFIX and to Parquet files.

use std::sync::Arc;

use thalweg_measure::meter::intake::IntakeCounters;
use thalweg_measure::meter::record::FlowRecord;
use thalweg_records::handoff::{Handoff, HandoffOptions, HandoffStatus};
use thalweg_records::metered::Meter;
use thalweg_records::store::StoreOptions;
use thalweg_wire::{Nanos, Timestamp};

use crate::clock::Clock;
use crate::error::WatchError;
use crate::message::Message;
use crate::options::WatchOptions;
use crate::update::WatchUpdate;

/// Prefix of the names of Parquet files.
const FILE_PREFIX: &str = "watch";

/// Exports the flow records that reach the main thread.
pub(crate) struct FlowExporter {
    handoff: Handoff,
    /// Whether packets come from interfaces: export must not delay capture.
    live: bool,
    /// Of capture files: the latest end of a flow so far.
    capture_time: Timestamp,
    clock: Clock,
}

/// Records that end this much before the latest belong to another capture: within one, a flow ends at most a timeout earlier.
const OTHER_CAPTURE: Nanos = Nanos::from_secs(3600);

impl FlowExporter {
    /// Starts the export if the options name a destination.
    ///
    /// # Errors
    /// If the directory or the certificates cannot be used. An unreachable destination is no error: the exporter retries.
    pub(crate) fn start(
        options: &WatchOptions,
        live: bool,
        clock: Clock,
    ) -> Result<Option<FlowExporter>, WatchError> {
        let (export, records) = (options.export.clone(), options.records.as_ref());
        if export.is_none() && records.is_none() {
            return Ok(None);
        }
        let store =
            records.map(|folder| StoreOptions { name: FILE_PREFIX.to_owned(), ..StoreOptions::new(folder) });
        let handoff = Handoff::start(HandoffOptions { export, store }, clock.wall);
        Ok(Some(FlowExporter {
            handoff: handoff.map_err(WatchError::Handoff)?,
            live,
            capture_time: Timestamp::default(),
            clock,
        }))
    }

    /// Exports the records of an update and sends those that are due.
    pub(crate) fn handle(&mut self, update: &WatchUpdate<'_>) {
        let now = self.clock.time();
        if let WatchUpdate::Message(Message::Output(output)) = update {
            // Every packet that passes the filter is counted.
            let meter = Meter { sampling_interval: 1, ..Meter::default() };
            let received = if self.live { now } else { self.capture_time_of(&output.records) };
            self.handoff.send(&output.records, &output.ethernet, &meter, !self.live, received, now);
        }
        self.handoff.tick(now);
    }

    /// Returns the time at which a collector would have received these records during the capture, to within the timeouts.
    fn capture_time_of(&mut self, records: &[FlowRecord]) -> Timestamp {
        if let Some(latest) = records.iter().map(|record| record.last).max() {
            let is_other = latest + OTHER_CAPTURE < self.capture_time;
            self.capture_time = if is_other { latest } else { latest.max(self.capture_time) };
        }
        self.capture_time
    }

    /// Waits until all records are sent and stored. `intake` counts the packets that belong to no flow.
    pub(crate) fn finish(self, intake: &IntakeCounters) -> Arc<HandoffStatus> {
        let malformed = intake.malformed_total();
        let ignored = [intake.non_ip, intake.unsupported_link, malformed];
        let packets = ignored.iter().map(|tally| tally.packets).sum();
        self.handoff.set_ignored(packets, ignored.iter().map(|tally| tally.bytes.0).sum());
        self.handoff.finish(self.clock.time())
    }
}
