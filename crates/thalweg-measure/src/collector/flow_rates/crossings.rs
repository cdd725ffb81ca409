//! Threshold crossings of links, with the flows on them at that time.

use thalweg_sketch::Estimate;
use thalweg_wire::{FlowKey, Timestamp};

use super::{FlowRates, Rated};
use crate::collector::links::{self, Told};
use crate::collector::report::LinkReport;
use crate::memory::prefetch;

/// A threshold crossing, with the rates at that time.
#[derive(Clone, Debug)]
pub(in crate::collector) struct Crossed {
    pub(in crate::collector) told: Told,
    pub(in crate::collector) link: LinkReport,
    pub(in crate::collector) version: u64,
    pub(in crate::collector) time: Timestamp,
    /// Flows on the link, the fastest first.
    pub(in crate::collector) flows: Vec<Named>,
}

/// A flow in an event. The collector fills in its key from the flow table before the flow ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::collector) struct Named {
    pub(in crate::collector) track: u32,
    pub(in crate::collector) key: Option<FlowKey>,
    pub(in crate::collector) rated: Rated,
}

impl FlowRates {
    /// Evaluates a link's rules.
    #[cold]
    pub(super) fn ask(&mut self, link: usize, now: Timestamp) {
        while let Some(told) = self.links.ask(link, now) {
            self.tell(link, told, now);
        }
    }

    fn tell(&mut self, link: usize, told: Told, now: Timestamp) {
        let mut largest = std::mem::take(&mut self.largest);
        largest.clear();
        let mut rate = Estimate::exact(0.0);
        self.each_member(link, |number, track| {
            rate = links::sum(rate, track.bounds.of(track.rate));
            largest.push((track.rate, number));
        });
        let fastest_first = |a: &(u64, u32), b: &(u64, u32)| b.cmp(a);
        let named = self.named[told.rule].min(largest.len());
        if named < largest.len() {
            largest.select_nth_unstable_by(named, fastest_first);
            largest.truncate(named);
        }
        for &(_, track) in &largest {
            prefetch(&self.tracks[track as usize]);
        }
        largest.sort_unstable_by(fastest_first);
        let flows = largest.iter();
        let flows =
            flows.filter_map(|&(_, track)| Some(Named { track, key: None, rated: self.rated(track)? }));
        let crossed = Crossed {
            told,
            link: self.links.report(link, now, rate, self.members.count(link)),
            version: self.network.as_ref().map_or(0, |network| network.phase(now).newest),
            time: now,
            flows: flows.collect(),
        };
        self.crossed.push(crossed);
        self.largest = largest;
    }
}
