//! Changes of links' congestion, with the flows on the links at that time.

use thalweg_sketch::Estimate;
use thalweg_wire::{FlowKey, Timestamp};

use super::{FlowRates, Rated};
use crate::collector::links::{self, FiredRule};
use crate::collector::report::LinkReport;
use crate::memory::prefetch;

/// The congestion of a link began or cleared, or is repeated, with the rates at that time.
#[derive(Clone, Debug)]
pub(in crate::collector) struct LinkChange {
    pub(in crate::collector) fired: FiredRule,
    pub(in crate::collector) link: LinkReport,
    pub(in crate::collector) version: u64,
    pub(in crate::collector) time: Timestamp,
    /// Flows on the link, the fastest first.
    pub(in crate::collector) flows: Vec<NamedFlow>,
}

/// A flow in an event. The collector fills in its key from the flow table before the flow ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::collector) struct NamedFlow {
    pub(in crate::collector) track: u32,
    pub(in crate::collector) key: Option<FlowKey>,
    pub(in crate::collector) rated: Rated,
}

impl FlowRates {
    /// Evaluates a link's rules.
    #[cold]
    pub(super) fn evaluate_rules(&mut self, link: usize, now: Timestamp) {
        while let Some(fired) = self.links.evaluate(link, now) {
            self.record(link, fired, now);
        }
    }

    fn record(&mut self, link: usize, fired: FiredRule, now: Timestamp) {
        let mut largest = std::mem::take(&mut self.largest);
        largest.clear();
        let mut rate = Estimate::exact(0.0);
        self.each_member(link, |number, track| {
            rate = links::sum(rate, track.bounds.of(track.rate));
            largest.push((track.rate, number));
        });
        let fastest_first = |a: &(u64, u32), b: &(u64, u32)| b.cmp(a);
        let named = self.named[fired.rule].min(largest.len());
        if named < largest.len() {
            largest.select_nth_unstable_by(named, fastest_first);
            largest.truncate(named);
        }
        for &(_, track) in &largest {
            prefetch(&self.tracks[track as usize]);
        }
        largest.sort_unstable_by(fastest_first);
        let rate = self.link_rate(link, rate, now);
        let flows = largest.iter();
        let flows =
            flows.filter_map(|&(_, track)| Some(NamedFlow { track, key: None, rated: self.rated(track)? }));
        let change = LinkChange {
            fired,
            link: self.links.report(link, now, rate, self.members.count(link)),
            version: self.network.as_ref().map_or(0, |network| network.phase(now).newest),
            time: now,
            flows: flows.collect(),
        };
        self.link_changes.push(change);
        self.largest = largest;
    }
}
