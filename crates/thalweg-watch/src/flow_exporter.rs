//! Flows handed on while they are watched: as IPFIX, into Parquet.

use std::sync::Arc;

use thalweg_measure::meter::intake::IntakeCounters;
use thalweg_records::handoff::{Handoff, HandoffOptions, HandoffStatus};
use thalweg_records::metered::Meter;
use thalweg_records::store::StoreOptions;

use crate::clock::Clock;
use crate::error::WatchError;
use crate::heard::Heard;
use crate::message::Message;
use crate::options::WatchOptions;

/// Begins the names of Parquet files.
const FILES_BEGIN_WITH: &str = "watch";

/// Hands on what the main thread hears of.
pub(crate) struct FlowExporter {
    handoff: Handoff,
    /// Interfaces do not wait.
    live: bool,
    clock: Clock,
}

impl FlowExporter {
    /// Begins, if there is anywhere to hand flows on to.
    ///
    /// # Errors
    /// If the folder or certificates cannot be used. A collector that does not answer is none: it is tried again.
    pub(crate) fn start(
        options: &WatchOptions,
        live: bool,
        clock: Clock,
    ) -> Result<Option<FlowExporter>, WatchError> {
        let (export, records) = (options.export.clone(), options.records.as_ref());
        if export.is_none() && records.is_none() {
            return Ok(None);
        }
        let store = records
            .map(|folder| StoreOptions { name: FILES_BEGIN_WITH.to_owned(), ..StoreOptions::new(folder) });
        let handoff = Handoff::start(HandoffOptions { export, store }, clock.wall);
        Ok(Some(FlowExporter { handoff: handoff.map_err(WatchError::Handoff)?, live, clock }))
    }

    pub(crate) fn hear(&mut self, heard: &Heard<'_>) {
        let now = self.clock.time();
        if let Heard::Message(Message::Output(output)) = heard {
            // Every packet is counted that the filter lets through.
            let meter = Meter { sampling_interval: 1, ..Meter::default() };
            self.handoff.send(&output.records, &meter, !self.live, now);
        }
        self.handoff.tick(now);
    }

    /// Waits until all is sent and kept. `intake` knows which packets are in no flow.
    pub(crate) fn finish(self, intake: &IntakeCounters) -> Arc<HandoffStatus> {
        let malformed = intake.malformed_total();
        let ignored = [intake.non_ip, intake.unsupported_link, malformed];
        let packets = ignored.iter().map(|tally| tally.packets).sum();
        self.handoff.set_ignored(packets, ignored.iter().map(|tally| tally.bytes.0).sum());
        self.handoff.finish(self.clock.time())
    }
}
