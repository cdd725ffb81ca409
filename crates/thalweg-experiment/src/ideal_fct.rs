//! The flow completion time in an idle network, which slowdown is relative to (Flexplane, section 5.2).
//!
//! In an idle network only the path matters. So flows are emulated one by one over a copy of their path: a chain of
//! routers with the same link rates and delays, the same scheme and the same transport, without loss and jitter. This is
//! right for any transport, including its initial window and acknowledgements, where a formula would have to model them.
//!
//! Emulated sizes are on a grid: every multiple of a segment up to 64, then eight per octave. Between them, times are
//! interpolated. For larger flows, while the first windows double, the error is a few percent of a round trip. Beyond
//! 2^16 segments (95 MB) a flow continues at the rate of the last octave. Each grid point is emulated once, on demand.
//!
//! If paths of equal length have links of different rates, the ECMP path of flow 0 represents all.

use std::collections::BTreeMap;

use thalweg_emulator::core::blueprint::Blueprint;
use thalweg_emulator::hosts::Hosts;
use thalweg_emulator::network;
use thalweg_emulator::workloads::FlowStart;
use thalweg_emulator::workloads::patterns::Schedule;
use thalweg_emulator::{Fabric, Slot};
use thalweg_network::routing::{NextHops, path};
use thalweg_network::{EndpointId, LinkSpec, LinkState, Topology, TopologyBuilder, TopologyError};
use thalweg_wire::Timestamp;

use super::plan::Plan;

/// Up to this many segments, every multiple is on the grid.
const FINE: u64 = 64;
/// Grid points per octave above that.
const STEPS: u64 = 8;
/// Segments of the last grid point.
const LAST: u64 = 1 << 16;

/// Slots after which a flow counts as never completing. The network then has no ideal time.
const MAX_SLOTS: u64 = 1 << 24;

/// Ideal times, computed on demand.
pub(super) struct IdealFct<'a> {
    plan: &'a Plan,
    next_hops: Option<NextHops>,
    /// By path: nanoseconds by size in bytes.
    paths: BTreeMap<Vec<(u64, u64)>, BTreeMap<u64, u64>>,
    /// Paths by their ends.
    known: BTreeMap<(EndpointId, EndpointId), Vec<LinkSpec>>,
}

impl<'a> IdealFct<'a> {
    pub(super) fn new(plan: &'a Plan) -> IdealFct<'a> {
        let next_hops = NextHops::new(&plan.topology, &LinkState::new(&plan.topology)).ok();
        IdealFct { plan, next_hops, paths: BTreeMap::new(), known: BTreeMap::new() }
    }

    /// The ideal time of a flow of `bytes` in nanoseconds; `None` if it never completes.
    pub(super) fn time_ns(&mut self, source: EndpointId, destination: EndpointId, bytes: u64) -> Option<f64> {
        let path = self.path(source, destination)?;
        let mss = u64::from(self.plan.hosts.mss());
        let (low, high) = around(bytes, mss);
        let (low_ns, high_ns) = (self.point(&path, low)?, self.point(&path, high)?);
        let slope = (high_ns as f64 - low_ns as f64) / (high - low).max(1) as f64;
        Some(low_ns as f64 + slope * (bytes as f64 - low as f64))
    }

    fn path(&mut self, source: EndpointId, destination: EndpointId) -> Option<Vec<LinkSpec>> {
        if let Some(path) = self.known.get(&(source, destination)) {
            return Some(path.clone());
        }
        let (topology, seed) = (&self.plan.topology, self.plan.seed);
        let path = path::by_ecmp(topology, self.next_hops.as_ref()?, seed, source, destination, 0).ok()?;
        // Without loss and jitter: ideal times do not depend on chance.
        let ideal = |spec: LinkSpec| LinkSpec { rate: spec.rate, delay: spec.delay, ..LinkSpec::default() };
        let specs: Vec<LinkSpec> =
            path.links(topology).map(|link| ideal(topology.links()[link.index()].spec())).collect();
        self.known.insert((source, destination), specs.clone());
        Some(specs)
    }

    fn point(&mut self, path: &[LinkSpec], bytes: u64) -> Option<u64> {
        let key = path.iter().map(|link| (link.rate.0, link.delay.0)).collect();
        let curve = self.paths.entry(key).or_default();
        if let Some(&nanos) = curve.get(&bytes) {
            return Some(nanos);
        }
        let nanos = emulate(self.plan, path, bytes)?;
        curve.insert(bytes, nanos);
        Some(nanos)
    }
}

/// The two grid points around a size.
fn around(bytes: u64, mss: u64) -> (u64, u64) {
    let segments = bytes / mss;
    if segments == 0 {
        return (1, mss);
    }
    if segments < FINE {
        return (segments * mss, (segments + 1) * mss);
    }
    if segments >= LAST {
        return (LAST / 2 * mss, LAST * mss);
    }
    let step = (1 << segments.ilog2()) / STEPS;
    let low = segments / step * step;
    (low * mss, (low + step) * mss)
}

/// The time of one flow on an idle path in nanoseconds.
fn emulate(plan: &Plan, path: &[LinkSpec], bytes: u64) -> Option<u64> {
    let chain = chain(path).ok()?;
    let whole = plan.blueprint();
    let blueprint = Blueprint { topology: &chain, monitors: &[], ..whole };
    let mut network = network::build(&plan.scheme, &blueprint).ok()?;
    let clock = network.clock();
    let mut hosts = Hosts::new(plan.hosts, 2, clock).ok()?;
    let at = clock.start_of(Slot(1));
    let mut flow = Schedule::new(vec![FlowStart {
        at,
        source: EndpointId(0),
        destination: EndpointId(1),
        bytes,
        dscp: 0,
    }]);
    while network.now().0 < MAX_SLOTS {
        hosts.slot(&mut *network as &mut dyn Fabric, &mut flow);
        if let Some(done) = hosts.drain_completed().next() {
            return Some(done.end.since(Timestamp(at.0)).0);
        }
    }
    None
}

/// Two endpoints connected by these links.
fn chain(path: &[LinkSpec]) -> Result<Topology, TopologyError> {
    let mut builder = TopologyBuilder::new();
    let mut router = builder.add_router("r0")?;
    builder.add_endpoint("source", router, path[0])?;
    for (number, &link) in path[1..path.len() - 1].iter().enumerate() {
        let next = builder.add_router(format!("r{}", number + 1))?;
        builder.connect(router, next, link)?;
        router = next;
    }
    builder.add_endpoint("destination", router, path[path.len() - 1])?;
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;

    fn plan(rest: &str) -> Plan {
        let text = format!("duration = \"1s\"\n{rest}[[workload]]\npattern = \"incast\"\nsizes = \"1MB\"\n");
        Plan::new(&Experiment::parse(&text, "test").unwrap()).unwrap()
    }

    #[test]
    fn grid_points_enclose_every_size() {
        for bytes in (1..200_000).chain([1 << 20, (1 << 20) + 1, 94_000_000]) {
            let (low, high) = around(bytes, 1448);
            assert!(low <= bytes && bytes <= high && low < high, "{bytes}: {low} to {high}");
            assert!(high <= low + low / STEPS + 1448, "{bytes}: {low} to {high}");
        }
        assert_eq!(around(1 << 40, 1448), (LAST / 2 * 1448, LAST * 1448));
    }

    /// Two links with 1,230.4 ns of transmission and 1 us of delay each, and 10 us in the receiver's kernel.
    #[test]
    fn one_segment_takes_the_latency_of_links_and_kernel() {
        let plan = plan("");
        let time = IdealFct::new(&plan).time_ns(EndpointId(1), EndpointId(0), 1448).unwrap();
        assert!((time - (2.0 * 2_230.4 + 10_000.0)).abs() < 30.0, "{time}");
    }

    #[test]
    fn a_long_flow_fills_the_link_and_the_slowest_link_counts() {
        let fast = plan("[transport]\nname = \"new_reno\"\n");
        // 1448 of 1538 bytes are payload.
        let line = |bytes: f64| bytes * 8.0 * 1538.0 / 1448.0 / 10.0;
        let time = IdealFct::new(&fast).time_ns(EndpointId(1), EndpointId(0), 50_000_000).unwrap();
        assert!((1.0..1.02).contains(&(time / line(5e7))), "{time}");
        let slow = plan("[topology]\nshape = \"dumbbell\"\nendpoints = 2\nuplink_rate = \"1gbps\"\n");
        let time = IdealFct::new(&slow).time_ns(EndpointId(0), EndpointId(2), 1_000_000).unwrap();
        assert!((1.0..1.3).contains(&(time / line(1e7))), "{time}");
    }

    #[test]
    fn interpolated_times_match_emulated_ones() {
        let plan = plan("");
        let path = vec![LinkSpec::default(); 2];
        let mut ideal_fct = IdealFct::new(&plan);
        for bytes in [2_000, 14_480, 77_777, 300_000, 1_234_567] {
            let told = ideal_fct.time_ns(EndpointId(1), EndpointId(0), bytes).unwrap();
            let emulated = emulate(&plan, &path, bytes).unwrap() as f64;
            assert!((told / emulated - 1.0).abs() < 0.05, "{bytes}: {told} and {emulated}");
        }
    }
}
