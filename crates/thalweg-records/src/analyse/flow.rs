//! Flow reconstruction: joins the records of a key to flows.
//!
//! Records of all observation points belong to one flow while each starts at most `gap` after the latest end so far. The
//! counts of a flow are those of one observation point: the one that saw it longest, then the one with the smallest
//! sampling interval, then the first in the order of points. Choosing by size would be biased, because the maximum of
//! several sampled sizes is too high. If the packets of a flow took several routers, only those of one are counted.

use std::cmp::Reverse;

use thalweg_wire::flow_export::Address;

use super::elephant::{ElephantRule, Spread, WindowEstimator};
use super::points::preference;
use super::row::Fields;

/// A reconstructed flow: equation 2.1 of the dissertation, with further counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) source_address: Address,
    pub(super) destination_address: Address,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) protocol: u8,
    /// Earliest start and latest end over all points.
    pub(super) flow_start_us: i64,
    pub(super) flow_end_us: i64,
    /// Of the chosen point, scaled by the sampling interval.
    pub(super) octets: i64,
    pub(super) packets: i64,
    /// Over all points.
    pub(super) records: i64,
    pub(super) observation_points: i64,
    /// Minimum of the chosen point.
    pub(super) sampling_interval: u32,
    /// Maximum of the chosen point.
    pub(super) source_as: u32,
    pub(super) destination_as: u32,
    /// Union of the chosen point's flags.
    pub(super) tcp_flags: u16,
    pub(super) elephant: bool,
}

/// Reconstructs flows, and keeps buffers between keys.
#[derive(Debug)]
pub(super) struct Reconstruction<'a> {
    gap_us: i64,
    rule: ElephantRule,
    /// Rank of each observation point in their order.
    ranks: &'a [u32],
    spreads: Vec<Spread>,
    estimator: WindowEstimator,
}

/// Sums over the records of one observation point.
#[derive(Clone, Copy)]
struct PointSums {
    rank: u32,
    flow_start_us: i64,
    flow_end_us: i64,
    sampling_interval: u32,
    first: usize,
    end: usize,
}

impl PointSums {
    /// Returns the sort key; the point with the smallest one is chosen.
    fn order(&self) -> (Reverse<i64>, u32, u32) {
        preference(self.flow_end_us - self.flow_start_us, self.sampling_interval, self.rank)
    }
}

impl<'a> Reconstruction<'a> {
    pub(super) fn new(gap_us: i64, rule: ElephantRule, ranks: &'a [u32]) -> Reconstruction<'a> {
        Reconstruction { gap_us, rule, ranks, spreads: Vec::new(), estimator: WindowEstimator::default() }
    }

    /// Returns the flow of a key's only record.
    #[inline]
    pub(super) fn flow_of_record(
        &mut self,
        (source_address, destination_address): (Address, Address),
        fields: &Fields,
    ) -> Flow {
        Flow {
            source_address,
            destination_address,
            source_port: fields.source_port,
            destination_port: fields.destination_port,
            protocol: fields.protocol,
            flow_start_us: fields.flow_start_us,
            flow_end_us: fields.flow_end_us,
            octets: fields.scaled_octets(),
            packets: fields.scaled_packets(),
            records: 1,
            observation_points: 1,
            sampling_interval: fields.sampling_interval,
            source_as: fields.source_as,
            destination_as: fields.destination_as,
            tcp_flags: fields.tcp_flags,
            elephant: fields.scaled_octets() > self.rule.threshold_bytes
                && self.rule.holds(&[spread(fields)], &mut self.estimator),
        }
    }

    /// Passes the flows of a key to `each`, ordered by start. Reorders `records`.
    pub(super) fn for_each_flow(
        &mut self,
        addresses: (Address, Address),
        records: &mut [Fields],
        mut each: impl FnMut(Flow),
    ) {
        records.sort_unstable_by_key(|record| (record.flow_start_us, record.flow_end_us));
        let Some(earliest) = records.first() else { return };
        let (mut first, mut latest_end) = (0, earliest.flow_end_us);
        for at in 1..records.len() {
            let Fields { flow_start_us, flow_end_us, .. } = records[at];
            if flow_start_us - latest_end > self.gap_us {
                each(self.join_records(addresses, &mut records[first..at]));
                (first, latest_end) = (at, flow_end_us);
            }
            latest_end = latest_end.max(flow_end_us);
        }
        each(self.join_records(addresses, &mut records[first..]));
    }

    /// Joins records that are ordered by time to one flow.
    fn join_records(&mut self, addresses: (Address, Address), records: &mut [Fields]) -> Flow {
        let flow_start_us = records[0].flow_start_us;
        let flow_end_us = records.iter().map(|record| record.flow_end_us).max().expect("at least one record");
        let (chosen, observation_points) = self.choose_point(records);
        let mut flow = self.flow_of_record(addresses, &chosen[0]);
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
            flow.elephant = self.rule.holds(&self.spreads, &mut self.estimator);
        }
        Flow { flow_start_us, flow_end_us, records: records.len() as i64, observation_points, ..flow }
    }

    /// Returns the records of the chosen point, ordered by time, and the number of points.
    fn choose_point<'r>(&self, records: &'r mut [Fields]) -> (&'r [Fields], i64) {
        let point = records[0].point;
        if records.iter().all(|record| record.point == point) {
            return (records, 1);
        }
        let rank = |record: &Fields| self.ranks[record.point as usize];
        // The sort is stable, so the records of a point stay ordered by time.
        records.sort_by_key(rank);
        let (mut best, mut points, mut first) = (None::<PointSums>, 0, 0);
        for records_of_one in records.chunk_by(|a, b| a.point == b.point) {
            let seen = PointSums {
                rank: rank(&records_of_one[0]),
                flow_start_us: records_of_one[0].flow_start_us,
                flow_end_us: records_of_one
                    .iter()
                    .map(|record| record.flow_end_us)
                    .max()
                    .expect("at least one record"),
                sampling_interval: records_of_one
                    .iter()
                    .map(|r| r.sampling_interval)
                    .min()
                    .expect("at least one record"),
                first,
                end: first + records_of_one.len(),
            };
            if best.is_none_or(|best| seen.order() < best.order()) {
                best = Some(seen);
            }
            points += 1;
            first = seen.end;
        }
        let best = best.expect("at least one point");
        (&records[best.first..best.end], points)
    }
}

fn spread(record: &Fields) -> Spread {
    let Fields { flow_start_us, flow_end_us, .. } = *record;
    Spread { flow_start_us, flow_end_us, octets: record.scaled_octets() }
}
