//! What is kept of one observation domain.

use std::collections::BTreeMap;

use super::clock::{Clock, ExportTime, micros};
use super::error::Fault;
use super::plan::Header;
use super::reader::Reader;
use super::sample_sequences::SampleSequences;
use super::sampling::Sampling;
use super::sequence::{Arrival, Sequence};
use super::statistics::Counts;
use super::template::{Scratch, Template};
use crate::flow_export::{Address, Format, RecordBatch};
use crate::time::{Nanos, Timestamp};

/// What tells the domains of one session apart. One sFlow sender may speak for several agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DomainKey {
    pub(super) format: Format,
    pub(super) observation_domain_id: u32,
    pub(super) exporter: Address,
}

/// One observation domain of a session.
#[derive(Debug, Default)]
pub(super) struct Domain {
    pub(super) templates: BTreeMap<u16, Template>,
    pub(super) sampling: Sampling,
    pub(super) clock: Clock,
    pub(super) sequence: Sequence,
    pub(super) samples: SampleSequences,
    pub(super) counts: Counts,
    pub(super) last_received: Timestamp,
    /// What the last message said of sampling, or what was configured when it came.
    pub(super) sampling_interval: u32,
}

impl Domain {
    /// Takes note of a message.
    pub(super) fn arrived(&mut self, export: ExportTime, received: Timestamp, sampling_interval: u32) {
        self.counts.messages += 1;
        self.last_received = received;
        self.sampling_interval = sampling_interval;
        let observed = self.clock.observe(export, micros(received));
        self.counts.clock_jumps += u64::from(observed.jumped);
        if observed.restarted {
            self.counts.restarts += 1;
            self.sequence.restart();
        }
    }

    /// Takes note of a message's sequence number, and of how many units it has, if that can be told.
    pub(super) fn numbered(&mut self, number: u32, units: Option<u32>) {
        let counts = &mut self.counts;
        match self.sequence.observe(number, units) {
            Arrival::Next => {}
            Arrival::After(gap) => counts.lost += u64::from(gap),
            Arrival::Late(units) => {
                counts.lost = counts.lost.saturating_sub(units.into());
                counts.late_messages += 1;
            }
            Arrival::OutOfSequence => counts.out_of_sequence += 1,
            Arrival::Restarted => counts.restarts += 1,
        }
    }

    /// Decodes a set of data, if its template is known; returns how many records it has.
    ///
    /// # Errors
    /// If a record of variable length goes on beyond the set.
    pub(super) fn data(
        &mut self,
        template_id: u16,
        set: Reader<'_>,
        header: &Header,
        used: u64,
        into: &mut RecordBatch,
        scratch: &mut Scratch,
    ) -> Result<Option<u64>, Fault> {
        let Domain { templates, sampling, clock, counts, .. } = self;
        let Some(template) = templates.get_mut(&template_id) else { return Ok(None) };
        template.last_used = used;
        let found = if template.is_options() {
            template.decode_options(set, |options| {
                sampling.learn(options);
                clock.system_init_ms = options.system_init_ms.or(clock.system_init_ms);
            })?
        } else {
            let export = match clock.system_init_ms {
                Some(started) if header.export.uptime_ms.is_none() => header.export.started_at(started),
                _ => header.export,
            };
            template.decode_flows(set, &Header { export, ..*header }, sampling, into, scratch)?
        };
        counts.option_records += found.option_records;
        counts.untimed_records += found.untimed;
        counts.dropped_no_flow += found.no_flow;
        counts.dropped_short_set += u64::from(found.data_records == 0);
        Ok(Some(found.data_records))
    }

    /// Drops templates that came over UDP and were not repeated in time; returns how many.
    pub(super) fn expire_templates(&mut self, now: Timestamp, lifetime: Nanos) -> usize {
        let before = self.templates.len();
        self.templates.retain(|_, template| now.since(template.defined) <= lifetime);
        let expired = before - self.templates.len();
        self.counts.templates_expired += expired as u64;
        expired
    }
}
