//! Converts collector reports into decider inputs: aggregates flows by pair and numbers links.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use thalweg_measure::collector::{CongestionChange, CongestionEvent, FlowRate, PortDirection};
use thalweg_network::{RouterId, Topology};
use thalweg_wire::BitRate;

use crate::decide::{Congestion, FlowShare, PairRate};
use crate::pair::Pair;
use crate::routes::Paths;

/// Returns the congestion that a collector's congestion event reports.
///
/// Leaves out flows below `min_share` of the link's capacity, and flows of hosts that are not in the topology.
///
/// Returns `None` in three cases: the link has cleared, the event is about traffic into a switch (the collector at
/// the other end reports it), or the switch has no such port.
pub fn congestion(
    paths: &Paths,
    router: RouterId,
    event: &CongestionEvent,
    min_share: f64,
) -> Option<Congestion> {
    let port = event.link.side.port;
    let is_congested =
        event.change != CongestionChange::Cleared && event.link.side.direction == PortDirection::Output;
    if !is_congested || usize::from(port.0) >= paths.topology().ports(router) {
        return None;
    }
    let least = min_share * event.link.capacity.0 as f64;
    let flows = event.flows.iter().filter(|flow| flow.rate.value >= least);
    let flows = pair_rates(paths.topology(), flows);
    Some(Congestion { link: paths.link(router, port), time: event.time, flows })
}

/// Aggregates flows by pair and sorts the pairs by rate, the fastest first. A pair has the address of its fastest
/// flow. Silent flows are not listed.
pub fn pair_rates<'a>(topology: &Topology, flows: impl IntoIterator<Item = &'a FlowRate>) -> Vec<PairRate> {
    let mut pairs: BTreeMap<Pair, (PairRate, f64)> = BTreeMap::new();
    for flow in flows {
        let Some((pair, address)) = Pair::of(topology, &flow.ethernet) else { continue };
        let value = flow.rate.value;
        let new = || PairRate { pair, address, rate: BitRate(0), measured: flow.span.1, flows: Vec::new() };
        let (sum, fastest) = pairs.entry(pair).or_insert_with(|| (new(), 0.0));
        sum.rate = BitRate(sum.rate.0.saturating_add(value as u64));
        if value > 0.0 {
            sum.flows.push(FlowShare { flow: flow.key, rate: BitRate(value as u64) });
        }
        if value > *fastest {
            (sum.address, sum.measured, *fastest) = (address, flow.span.1, value);
        }
    }
    let mut observed: Vec<PairRate> = pairs.into_values().map(|(observed, _)| observed).collect();
    observed.iter_mut().for_each(|pair| pair.flows.sort_by_key(|share| Reverse(share.rate)));
    observed.sort_by_key(|observed| Reverse(observed.rate));
    observed
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use thalweg_measure::collector::{LinkDirection, LinkReport};
    use thalweg_measure::rates::Basis;
    use thalweg_network::routing::{TreeOptions, spanning_trees};
    use thalweg_network::topology::shapes::{Tiers, fat_tree};
    use thalweg_network::{EndpointId, Forwarding, LinkState, MacAddress, NetworkState, PortIndex};
    use thalweg_sketch::Estimate;
    use thalweg_wire::{EthernetAddresses, Timestamp};

    use super::*;

    const KEY: &str = "tcp 10.0.0.1:1 > 10.0.0.2:2";

    fn flow(topology: &Topology, source: u16, destination: u16, address: u8, rate: f64) -> FlowRate {
        FlowRate {
            key: KEY.parse().unwrap(),
            ethernet: EthernetAddresses {
                source: topology.mac(EndpointId(source), 0),
                destination: topology.mac(EndpointId(destination), address),
            },
            rate: Estimate::exact(rate),
            basis: Basis::SequenceNumbers,
            span: (Timestamp(0), Timestamp(1)),
        }
    }

    fn pair(source: u16, destination: u16) -> Pair {
        Pair { source: EndpointId(source), destination: EndpointId(destination) }
    }

    #[test]
    fn a_pair_sums_its_flows_and_has_the_address_of_the_fastest() {
        let topology = fat_tree(4, Tiers::default()).unwrap();
        let mut unknown = flow(&topology, 0, 2, 0, 1e9);
        unknown.ethernet.source = MacAddress([2, 9, 9, 9, 9, 9]);
        let flows = [
            flow(&topology, 0, 2, 0, 10.0),
            flow(&topology, 4, 3, 1, 60.0),
            flow(&topology, 0, 2, 1, 40.0),
            flow(&topology, 0, 2, 1, 0.0),
            unknown,
        ];
        let expected = |pair, rates: &[u64]| PairRate {
            pair,
            address: 1,
            rate: BitRate(rates.iter().sum()),
            measured: Timestamp(1),
            flows: rates
                .iter()
                .map(|&rate| FlowShare { flow: KEY.parse().unwrap(), rate: BitRate(rate) })
                .collect(),
        };
        let expected = [expected(pair(4, 3), &[60]), expected(pair(0, 2), &[40, 10])];
        assert_eq!(pair_rates(&topology, &flows), expected);
    }

    fn event(
        topology: &Topology,
        change: CongestionChange,
        way: PortDirection,
        port: u16,
    ) -> CongestionEvent {
        let side = LinkDirection { port: PortIndex(port), direction: way };
        CongestionEvent {
            change,
            link: LinkReport {
                side,
                capacity: BitRate(1_000),
                rate: Estimate::exact(950.0),
                smoothed: 950.0,
                peak: 950.0,
                utilisation: 0.95,
                flows: 2,
                changed: Timestamp(7),
            },
            rule: 0,
            threshold: 0.9,
            version: 1,
            time: Timestamp(7),
            flows: vec![flow(topology, 0, 8, 0, 900.0), flow(topology, 1, 9, 0, 50.0)],
            flows_left_out: 0,
        }
    }

    #[test]
    fn only_congested_output_links_are_reported() {
        let topology = Arc::new(fat_tree(4, Tiers::default()).unwrap());
        let links = LinkState::new(&topology);
        let tables = spanning_trees(&topology, &links, TreeOptions::default());
        let state = NetworkState::new(Arc::clone(&topology), links, Forwarding::tables(tables)).unwrap();
        let paths = Paths::new(Arc::new(state));
        let router = RouterId(3);
        let reported = |change, way, port, least| {
            congestion(&paths, router, &event(&topology, change, way, port), least)
        };
        let all = reported(CongestionChange::Began, PortDirection::Output, 2, 0.0).unwrap();
        assert_eq!(
            (all.link, all.time, all.flows.len()),
            (paths.link(router, PortIndex(2)), Timestamp(7), 2)
        );
        let heavy = reported(CongestionChange::Repeated, PortDirection::Output, 2, 0.1).unwrap();
        assert_eq!(heavy.flows.iter().map(|flow| flow.pair).collect::<Vec<_>>(), [pair(0, 8)]);
        assert_eq!(
            reported(CongestionChange::Cleared, PortDirection::Output, 2, 0.0),
            None,
            "the link has cleared"
        );
        assert_eq!(
            reported(CongestionChange::Began, PortDirection::Input, 2, 0.0),
            None,
            "the switch at the other end reports it"
        );
        assert_eq!(reported(CongestionChange::Began, PortDirection::Output, 4, 0.0), None, "no such port");
    }
}
