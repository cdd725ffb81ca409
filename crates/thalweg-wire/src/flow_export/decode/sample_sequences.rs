//! Sequence numbers of the data sources of sFlow agents.

use std::collections::BTreeMap;

use super::sequence::{Arrival, Sequence};
use super::statistics::Counts;

/// The maximum number of tracked data sources per agent. Switches have fewer ports.
const MAX_SOURCES: usize = 4096;

/// The source of samples: `sFlowDataSource`, and whether it sends counter or flow samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DataSource {
    pub(super) is_counters: bool,
    /// 0: an interface.
    pub(super) class: u32,
    pub(super) index: u32,
}

/// The state of a data source.
#[derive(Clone, Copy, Debug, Default)]
struct SourceState {
    sequence: Sequence,
    /// The agent's count of dropped samples.
    drops: Option<u32>,
}

/// The sequence numbers of an agent's data sources.
#[derive(Clone, Debug, Default)]
pub(super) struct SampleSequences(BTreeMap<DataSource, SourceState>);

impl SampleSequences {
    /// Updates the loss counters with the sequence number of a sample and, for a flow sample, the agent's drop count.
    pub(super) fn observe(
        &mut self,
        source: DataSource,
        number: u32,
        drops: Option<u32>,
        counts: &mut Counts,
    ) {
        if self.0.len() >= MAX_SOURCES && !self.0.contains_key(&source) {
            return;
        }
        let known = self.0.entry(source).or_default();
        match known.sequence.observe(number, Some(1)) {
            Arrival::After(gap) => counts.lost_samples += u64::from(gap),
            Arrival::Late(units) => counts.lost_samples = counts.lost_samples.saturating_sub(units.into()),
            Arrival::Next | Arrival::OutOfSequence | Arrival::Restarted => {}
        }
        let before = std::mem::replace(&mut known.drops, drops);
        // If the count goes back, the agent has restarted.
        let more = before.zip(drops).and_then(|(before, now)| now.checked_sub(before));
        counts.dropped_by_agent += u64::from(more.unwrap_or(0));
    }
}
