//! The state of an observation domain.

use std::collections::BTreeMap;

use super::clock::{Clock, ExportTime, LastMessage, micros};
use super::error::DecodeErrorKind;
use super::held::Budget;
use super::names::Names;
use super::plan::Header;
use super::reader::Reader;
use super::sample_sequences::SampleSequences;
use super::sampling::Sampling;
use super::sequence::{Arrival, Sequence};
use super::statistics::Counts;
use super::template::{Scratch, Template};
use crate::flow_export::{Address, Format, RecordBatch};
use crate::time::{Nanos, Timestamp};

/// Identifies a domain in a session. One sFlow sender may forward for several agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DomainKey {
    pub(super) format: Format,
    pub(super) observation_domain_id: u32,
    pub(super) exporter: Address,
}

/// An observation domain of a session.
#[derive(Debug, Default)]
pub(super) struct Domain {
    pub(super) templates: BTreeMap<u16, Template>,
    pub(super) sampling: Sampling,
    pub(super) names: Names,
    pub(super) clock: Clock,
    pub(super) sequence: Sequence,
    pub(super) samples: SampleSequences,
    pub(super) counts: Counts,
    pub(super) last_received: Timestamp,
    /// The sampling interval of the last message, or the configured one.
    pub(super) sampling_interval: u32,
    /// The last message of NetFlow v9 or IPFIX.
    pub(super) last_message: LastMessage,
    /// The last message before the collector restarted, until the first one after it.
    pub(super) restored_after: Option<LastMessage>,
    /// Changes of what a restart of the collector needs: templates and sampling intervals.
    pub(super) changes: u64,
}

/// What a decoder lends a domain to decode a data set.
#[derive(Debug)]
pub(super) struct Work<'a> {
    /// The decoder's message number.
    pub(super) message: u64,
    pub(super) scratch: &'a mut Scratch,
    /// The limit of names, of all sessions.
    pub(super) name_budget: &'a mut Budget,
}

impl Domain {
    /// Updates counters and clock with a message.
    pub(super) fn note_message(&mut self, export: ExportTime, received: Timestamp, sampling_interval: u32) {
        self.counts.messages += 1;
        self.last_received = received;
        self.sampling_interval = sampling_interval;
        let change = self.clock.observe(export, micros(received));
        self.counts.clock_jumps += u64::from(change.jumped);
        if change.restarted {
            self.counts.restarts += 1;
            self.sequence.restart();
        }
    }

    /// Updates the loss counters with the sequence number of a message and its number of units, if known.
    pub(super) fn note_sequence(&mut self, number: u32, units: Option<u32>) {
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

    /// Discards restored templates, sampling intervals and names if the exporter has restarted too. Returns the number of
    /// templates. Call it with each message of NetFlow v9 or IPFIX.
    pub(super) fn check_restored(&mut self, message: LastMessage, names: &mut Budget) -> usize {
        self.last_message = message;
        let before = self.restored_after.take();
        if before.is_none_or(|before| before.is_continued_by(&message)) {
            return 0;
        }
        let discarded = std::mem::take(&mut self.templates).len();
        self.sampling = Sampling::default();
        self.names.clear(names);
        self.clock.system_init_ms = None;
        self.counts.templates_discarded += discarded as u64;
        self.changes += 1;
        discarded
    }

    /// Decodes a data set if its template is known. Returns the number of records.
    ///
    /// # Errors
    /// If a variable-length record exceeds the set.
    pub(super) fn data(
        &mut self,
        template_id: u16,
        set: Reader<'_>,
        header: &Header,
        work: Work<'_>,
        into: &mut RecordBatch,
    ) -> Result<Option<u64>, DecodeErrorKind> {
        let Domain { templates, sampling, names, clock, counts, changes, .. } = self;
        let Some(template) = templates.get_mut(&template_id) else { return Ok(None) };
        let Work { message, scratch, name_budget } = work;
        template.last_used = message;
        let summary = if template.is_options() {
            template.decode_options(set, |options, named| {
                *changes += u64::from(sampling.learn(options));
                let learnt = names.learn(named, name_budget);
                *changes += learnt.changed;
                counts.names_refused += learnt.refused;
                clock.system_init_ms = options.system_init_ms.or(clock.system_init_ms);
            })?
        } else {
            let export = match clock.system_init_ms {
                Some(started) if header.export.uptime_ms.is_none() => header.export.started_at(started),
                _ => header.export,
            };
            template.decode_flows(set, &Header { export, ..*header }, sampling, into, scratch)?
        };
        counts.option_records += summary.option_records;
        counts.untimed_records += summary.untimed;
        counts.dropped_no_flow += summary.no_flow;
        counts.dropped_nat_event += summary.nat_events;
        counts.dropped_not_ip += summary.not_ip;
        counts.dropped_bad_frame += summary.bad_frame;
        counts.dropped_short_set += u64::from(summary.data_records == 0);
        Ok(Some(summary.data_records))
    }

    /// Drops templates received over UDP that were not refreshed in time. Returns their number.
    pub(super) fn expire_templates(&mut self, now: Timestamp, lifetime: Nanos) -> usize {
        let before = self.templates.len();
        self.templates.retain(|_, template| now.since(template.defined) <= lifetime);
        let expired = before - self.templates.len();
        self.counts.templates_expired += expired as u64;
        self.changes += expired as u64;
        expired
    }
}
