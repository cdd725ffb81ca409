//! Flow reconstruction: the records of one key become flows.
//!
//! Records are joined over all observation points while each begins at most `gap` after the latest end so far. Of the
//! points that saw a flow one is believed: that which saw it longest, then that with the smallest sampling interval,
//! then the first in the order of points. It is chosen by time and not by size, because the largest of several sampled
//! sizes is biased upwards. A flow whose packets were spread over routers is therefore counted by the part of one.

use std::cmp::Reverse;

use thalweg_wire::flow_export::Address;

use super::cheetah::{CheetahRule, Reach, Spread};
use super::row::Told;

/// A flow put together again: equation 2.1 of the dissertation, with packets and what it was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) source_address: Address,
    pub(super) destination_address: Address,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) protocol: u8,
    /// Earliest and latest over all points.
    pub(super) flow_start_us: i64,
    pub(super) flow_end_us: i64,
    /// Of the chosen point, scaled by sampling.
    pub(super) octets: i64,
    pub(super) packets: i64,
    /// Of all points.
    pub(super) records: i64,
    pub(super) observation_points: i64,
    /// The smallest of the chosen point.
    pub(super) sampling_interval: u32,
    /// Largest of the chosen point.
    pub(super) source_as: u32,
    pub(super) destination_as: u32,
    /// All of the chosen point.
    pub(super) tcp_flags: u16,
    pub(super) cheetah: bool,
}

/// What reconstruction is told, and memory that it keeps from key to key.
#[derive(Debug)]
pub(super) struct Reconstruction<'a> {
    gap_us: i64,
    rule: CheetahRule,
    /// The place of each observation point in their order.
    ranks: &'a [u32],
    spreads: Vec<Spread>,
    reach: Reach,
}

/// Sums over records of one observation point.
#[derive(Clone, Copy)]
struct Seen {
    rank: u32,
    flow_start_us: i64,
    flow_end_us: i64,
    sampling_interval: u32,
    first: usize,
    end: usize,
}

impl Seen {
    /// The point to believe has the least of these.
    fn order(&self) -> (Reverse<i64>, u32, u32) {
        (Reverse(self.flow_end_us - self.flow_start_us), self.sampling_interval, self.rank)
    }
}

impl<'a> Reconstruction<'a> {
    pub(super) fn new(gap_us: i64, rule: CheetahRule, ranks: &'a [u32]) -> Reconstruction<'a> {
        Reconstruction { gap_us, rule, ranks, spreads: Vec::new(), reach: Reach::default() }
    }

    /// The flow of a record that is the only one of its key.
    #[inline]
    pub(super) fn single(
        &mut self,
        (source_address, destination_address): (Address, Address),
        told: &Told,
    ) -> Flow {
        Flow {
            source_address,
            destination_address,
            source_port: told.source_port,
            destination_port: told.destination_port,
            protocol: told.protocol,
            flow_start_us: told.flow_start_us,
            flow_end_us: told.flow_end_us,
            octets: told.scaled_octets(),
            packets: told.scaled_packets(),
            records: 1,
            observation_points: 1,
            sampling_interval: told.sampling_interval,
            source_as: told.source_as,
            destination_as: told.destination_as,
            tcp_flags: told.tcp_flags,
            cheetah: told.scaled_octets() > self.rule.threshold_bytes
                && self.rule.holds(&[spread(told)], &mut self.reach),
        }
    }

    /// The flows of a key, by their start. `records` come back in another order.
    pub(super) fn flows(
        &mut self,
        addresses: (Address, Address),
        records: &mut [Told],
        mut each: impl FnMut(Flow),
    ) {
        records.sort_unstable_by_key(|record| (record.flow_start_us, record.flow_end_us));
        let Some(earliest) = records.first() else { return };
        let (mut first, mut latest_end) = (0, earliest.flow_end_us);
        for at in 1..records.len() {
            let Told { flow_start_us, flow_end_us, .. } = records[at];
            if flow_start_us - latest_end > self.gap_us {
                each(self.flow(addresses, &mut records[first..at]));
                (first, latest_end) = (at, flow_end_us);
            }
            latest_end = latest_end.max(flow_end_us);
        }
        each(self.flow(addresses, &mut records[first..]));
    }

    /// The flow of records ordered by time.
    fn flow(&mut self, addresses: (Address, Address), records: &mut [Told]) -> Flow {
        let flow_start_us = records[0].flow_start_us;
        let flow_end_us = records.iter().map(|record| record.flow_end_us).max().expect("a record at least");
        let (chosen, observation_points) = self.choose(records);
        let mut flow = self.single(addresses, &chosen[0]);
        for record in &chosen[1..] {
            flow.octets = flow.octets.saturating_add(record.scaled_octets());
            flow.packets = flow.packets.saturating_add(record.scaled_packets());
            flow.sampling_interval = flow.sampling_interval.min(record.sampling_interval);
            flow.source_as = flow.source_as.max(record.source_as);
            flow.destination_as = flow.destination_as.max(record.destination_as);
            flow.tcp_flags |= record.tcp_flags;
        }
        if chosen.len() > 1 && flow.octets > self.rule.threshold_bytes {
            self.spreads.clear();
            self.spreads.extend(chosen.iter().map(spread));
            flow.cheetah = self.rule.holds(&self.spreads, &mut self.reach);
        }
        Flow { flow_start_us, flow_end_us, records: records.len() as i64, observation_points, ..flow }
    }

    /// The records of the point to believe, ordered by time, and how many points there are.
    fn choose<'r>(&self, records: &'r mut [Told]) -> (&'r [Told], i64) {
        let point = records[0].point;
        if records.iter().all(|record| record.point == point) {
            return (records, 1);
        }
        let rank = |record: &Told| self.ranks[record.point as usize];
        // Stable, so that the records of a point stay ordered by time.
        records.sort_by_key(rank);
        let (mut best, mut points, mut first) = (None::<Seen>, 0, 0);
        for records_of_one in records.chunk_by(|a, b| a.point == b.point) {
            let seen = Seen {
                rank: rank(&records_of_one[0]),
                flow_start_us: records_of_one[0].flow_start_us,
                flow_end_us: records_of_one
                    .iter()
                    .map(|record| record.flow_end_us)
                    .max()
                    .expect("one at least"),
                sampling_interval: records_of_one
                    .iter()
                    .map(|r| r.sampling_interval)
                    .min()
                    .expect("one at least"),
                first,
                end: first + records_of_one.len(),
            };
            if best.is_none_or(|best| seen.order() < best.order()) {
                best = Some(seen);
            }
            points += 1;
            first = seen.end;
        }
        let best = best.expect("a point at least");
        (&records[best.first..best.end], points)
    }
}

fn spread(record: &Told) -> Spread {
    let Told { flow_start_us, flow_end_us, .. } = *record;
    Spread { flow_start_us, flow_end_us, octets: record.scaled_octets() }
}
