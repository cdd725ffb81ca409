//! Redirected flows in a whole network.

use std::collections::BTreeMap;

use super::*;
use crate::network::{build, build_on};
use crate::redirection::{FlowDirection, QueueTallies, RedirectError, Redirected, Release};
use crate::schemes::scavenger::ScavengerConfig;

/// Slots of a run. Half of the time, the port to endpoint 0 is overloaded.
const SLOTS: u64 = 1_500;
const PERIOD: u64 = 300;

/// The flows that are redirected and released in turn: from racks 0 to 2, to endpoint 0.
const FLOWS: [FlowDirection; 3] = [flow(1), flow(2), flow(5)];

const fn flow(source: u16) -> FlowDirection {
    FlowDirection { source: EndpointId(source), destination: EndpointId(0), flow: 0 }
}

/// What a run shows.
#[derive(Debug, Default, PartialEq)]
struct Observed {
    /// By slot, sorted by id.
    outcomes: Vec<Vec<Outcome>>,
    redirected: Vec<Option<Redirected>>,
    queues: Vec<QueueTallies>,
    releases: Vec<Release>,
}

/// Runs a network of three racks on `cores` cores. Redirects each flow at times, and tries to release it later, on a condition
/// if `is_conditional`.
fn run(cores: usize, is_conditional: bool) -> Observed {
    let topology = leaf_spine(3, 2, 2, tiers(10, 10, Nanos::from_micros(3))).unwrap();
    let blueprint = Blueprint::new(&topology, 1_500, 7);
    let config = ScavengerConfig { primary_buffer: 40_000, scavenger_buffer: 40_000, scavenger_share: 0.0 };
    let mut network = build_on(cores, &Scheme::Scavenger(config), &blueprint).unwrap();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let (mut observed, mut id) = (Observed::default(), 0);
    for slot in 0..SLOTS {
        let load = if slot % PERIOD < PERIOD / 2 { 50 } else { 8 };
        let mut requests = Vec::new();
        for source in 1..6 {
            if random.next_u64() % 100 < load {
                let packet = Packet::new(EndpointId(source), EndpointId(0), id % 2, id, 1_538);
                requests.push(Request { packet, remaining: 0 });
                id += 1;
            }
        }
        network.inject(&requests);
        // Each flow at its own slots, while the port is overloaded and while it is not.
        for (flow, number) in FLOWS.into_iter().zip(0..) {
            match (slot + 17 * number) % 100 {
                20 => network.redirect(flow).unwrap(),
                80 => {
                    let packets = network.redirected(flow).map_or(0, |redirected| redirected.traffic.packets);
                    observed.releases.push(network.release(flow, is_conditional.then_some(packets)));
                }
                _ => {}
            }
            observed.redirected.push(network.redirected(flow));
        }
        let mut outcomes = Vec::new();
        network.advance(&mut outcomes);
        outcomes.sort_by_key(|outcome| outcome.packet.id());
        observed.outcomes.push(outcomes);
        let ports = topology
            .router_ids()
            .flat_map(|router| (0..topology.ports(router) as u16).map(move |port| (router, PortIndex(port))));
        let mut sum = QueueTallies::default();
        ports.for_each(|(router, port)| sum += network.queue_tallies(router, port).unwrap());
        observed.queues.push(sum);
    }
    observed
}

/// Packets that arrived after a later packet of their flow.
fn overtaken(observed: &Observed) -> usize {
    let mut last: BTreeMap<u64, u32> = BTreeMap::new();
    let delivered = observed.outcomes.iter().flatten().filter(|outcome| outcome.fate == Fate::Delivered);
    let mut count = 0;
    // Packets of a flow take different slots: they have the length of a slot.
    for packet in delivered.map(|outcome| outcome.packet) {
        let last = last.entry(packet.who()).or_default();
        count += usize::from(packet.id() < *last);
        *last = packet.id().max(*last);
    }
    count
}

#[test]
fn a_conditional_release_reorders_no_flow_on_one_core_or_several() {
    let observed = run(1, true);
    assert!(observed == run(3, true));
    assert_eq!(overtaken(&observed), 0);
    let released = observed.releases.iter().filter(|release| matches!(release, Release::Released(_)));
    let put_off = observed.releases.iter().filter(|release| **release == Release::StillSending);
    let counts = (released.count(), put_off.count());
    assert!(counts.0 > 5 && counts.1 > 5, "{counts:?}");
    let last = observed.queues.last().unwrap();
    assert!(last.scavenger.sent.packets > 100 && last.scavenger.dropped > 10, "{last:?}");
    let unconditional = run(1, false);
    assert!(overtaken(&unconditional) > 10, "otherwise this test could not see it");
}

#[test]
fn a_packet_is_counted_once_however_many_routers_it_passes() {
    let topology = leaf_spine(2, 1, 1, tiers(10, 10, Nanos::ZERO)).unwrap();
    let blueprint = Blueprint::new(&topology, 1_500, 1);
    let mut network = build(&Scheme::default_of("scavenger").unwrap(), &blueprint).unwrap();
    let flow = FlowDirection { source: EndpointId(1), destination: EndpointId(0), flow: 1 };
    assert_eq!(network.release(flow, None), Release::NotRedirected);
    network.redirect(flow).unwrap();
    network.inject(&[request(1, 0, 1, 1_538), request(1, 0, 2, 1_538), request(0, 1, 3, 1_538)]);
    assert_eq!(arrivals(&mut *network, 10).len(), 3);
    let redirected = network.redirected(flow).unwrap();
    assert_eq!((redirected.traffic.packets, redirected.traffic.bytes), (2, 3_076));
    let first = redirected.first.unwrap().time(network.clock());
    assert_eq!(first, Timestamp(1_230), "when its last byte has crossed the first link");
    let mut queues = QueueTallies::default();
    for router in topology.router_ids() {
        for port in 0..topology.ports(router) as u16 {
            queues += network.queue_tallies(router, PortIndex(port)).unwrap();
        }
    }
    assert_eq!((queues.scavenger.sent.packets, queues.primary.sent.packets), (6, 3), "three routers");
    assert_eq!(network.release(flow, Some(1)), Release::StillSending);
    assert_eq!(network.release(flow, Some(2)), Release::Released(redirected));
    assert_eq!(network.redirected(flow), None);
}

#[test]
fn a_scheme_without_a_scavenger_queue_refuses() {
    let topology = rack(2, tiers(10, 10, Nanos::ZERO).access).unwrap();
    let mut network = emulation(&topology, 16);
    assert_eq!(network.redirect(flow(1)), Err(RedirectError::NoScavengerQueue));
    assert_eq!((network.redirected(flow(1)), network.release(flow(1), None)), (None, Release::NotRedirected));
    assert_eq!(network.queue_tallies(RouterId(0), PortIndex(0)), None);
}
