//! Flows handed on while they are watched: as IPFIX, into Parquet.

use std::sync::Arc;

use anyhow::Context;
use thalweg_measure::meter::intake::IntakeCounters;
use thalweg_records::handoff::{Handoff, HandoffOptions, Ledger};
use thalweg_records::metered::Meter;
use thalweg_records::store::StoreOptions;

use super::run::Heard;
use crate::serve::daemon::wall_clock;
use thalweg_watch::options::WatchOptions;
use thalweg_watch::worker::Message;

/// Begins the names of Parquet files.
const FILES_BEGIN_WITH: &str = "watch";

/// Hands on what the main thread hears of.
pub(super) struct Handing {
    handoff: Handoff,
    /// Interfaces do not wait.
    live: bool,
}

impl Handing {
    /// Begins, if there is anywhere to hand flows on to.
    ///
    /// # Errors
    /// If the folder or certificates cannot be used. A collector that does not answer is none: it is tried again.
    pub(super) fn start(options: &WatchOptions, live: bool) -> anyhow::Result<Option<Handing>> {
        let (export, records) = (options.export.clone(), options.records.as_ref());
        if export.is_none() && records.is_none() {
            return Ok(None);
        }
        let store = records
            .map(|folder| StoreOptions { name: FILES_BEGIN_WITH.to_owned(), ..StoreOptions::new(folder) });
        let handoff = Handoff::start(HandoffOptions { export, store }, wall_clock);
        Ok(Some(Handing { handoff: handoff.context("flows cannot be handed on")?, live }))
    }

    pub(super) fn hear(&mut self, heard: &Heard<'_>) {
        let now = wall_clock();
        if let Heard::Message(Message::Output(output)) = heard {
            // Every packet is counted that the filter lets through.
            let meter = Meter { sampling_interval: 1, ..Meter::default() };
            self.handoff.take(&output.records, &meter, !self.live, now);
        }
        self.handoff.tick(now);
    }

    /// Waits until all is sent and kept. `intake` knows which packets are in no flow.
    pub(super) fn finish(self, intake: &IntakeCounters) -> Arc<Ledger> {
        let malformed = intake.malformed_total();
        let ignored = [intake.non_ip, intake.unsupported_link, malformed];
        let packets = ignored.iter().map(|tally| tally.packets).sum();
        self.handoff.note_ignored(packets, ignored.iter().map(|tally| tally.bytes.0).sum());
        self.handoff.finish(wall_clock())
    }
}
