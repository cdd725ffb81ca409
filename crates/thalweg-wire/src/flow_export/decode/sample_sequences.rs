//! Sequence numbers of the data sources of an sFlow agent.

use std::collections::BTreeMap;

use super::sequence::{Arrival, Sequence};
use super::statistics::Counts;

/// Data sources of one agent whose sequence numbers are followed. Switches have fewer ports.
const SOURCES: usize = 4096;

/// What a sample is taken of: `sFlowDataSource`, and whether it counts or draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DataSource {
    pub(super) is_counters: bool,
    /// 0: an interface.
    pub(super) class: u32,
    pub(super) index: u32,
}

/// What is remembered of one data source.
#[derive(Clone, Copy, Debug, Default)]
struct Remembered {
    sequence: Sequence,
    /// The agent's own count of samples that it could not take.
    drops: Option<u32>,
}

/// Sequence numbers of an agent's data sources.
#[derive(Clone, Debug, Default)]
pub(super) struct SampleSequences(BTreeMap<DataSource, Remembered>);

impl SampleSequences {
    /// Takes note of a sample's number and, for a flow sample, of what its agent says it could not take.
    pub(super) fn observe(
        &mut self,
        source: DataSource,
        number: u32,
        drops: Option<u32>,
        counts: &mut Counts,
    ) {
        if self.0.len() >= SOURCES && !self.0.contains_key(&source) {
            return;
        }
        let known = self.0.entry(source).or_default();
        match known.sequence.observe(number, Some(1)) {
            Arrival::After(gap) => counts.lost_samples += u64::from(gap),
            Arrival::Late(units) => counts.lost_samples = counts.lost_samples.saturating_sub(units.into()),
            Arrival::Next | Arrival::OutOfSequence | Arrival::Restarted => {}
        }
        let before = std::mem::replace(&mut known.drops, drops);
        // Where the count goes back, the agent has begun anew.
        let more = before.zip(drops).and_then(|(before, now)| now.checked_sub(before));
        counts.dropped_by_agent += u64::from(more.unwrap_or(0));
    }
}
