//! The time that packets of a flow take over an idle path, which queueing delay is relative to.
//!
//! The path is that of the flow under ECMP. With `balance = "spray"`, whose packets take all paths, it stands for all: right if paths
//! of equal length have links of equal rates and delays, as in all built-in shapes.

use thalweg_emulator::hosts::PathDelay;
use thalweg_network::routing::{NextHops, path};
use thalweg_network::{EndpointId, LinkState, Topology};
use thalweg_wire::Nanos;

use crate::plan::Plan;

/// Paths over the links that are up.
pub(super) struct PathDelays {
    topology: Topology,
    next_hops: Option<NextHops>,
    seed: u64,
    stack_delay: Nanos,
}

impl PathDelays {
    /// Paths of an intact network.
    pub(super) fn new(plan: &Plan) -> PathDelays {
        let topology = plan.topology.clone();
        PathDelays {
            next_hops: NextHops::new(&topology, &LinkState::new(&topology)).ok(),
            seed: plan.seed,
            stack_delay: plan.hosts.stack_delay,
            topology,
        }
    }

    /// Routers have adapted to the state of the links.
    pub(super) fn rewire(&mut self, links: &LinkState) {
        self.next_hops = NextHops::new(&self.topology, links).ok();
    }

    /// The delay of a flow; `None` if there is no path.
    pub(super) fn of(&self, source: EndpointId, destination: EndpointId, flow: u32) -> Option<PathDelay> {
        let next_hops = self.next_hops.as_ref()?;
        let path = path::by_ecmp(&self.topology, next_hops, self.seed, source, destination, flow).ok()?;
        let specs = path.links(&self.topology).map(|link| self.topology.links()[link.index()].spec());
        let idle = PathDelay { fixed_ns: self.stack_delay.0 as f64, ns_per_byte: 0.0 };
        Some(specs.fold(idle, |sum, link| PathDelay {
            fixed_ns: sum.fixed_ns + link.delay.0 as f64,
            ns_per_byte: sum.ns_per_byte + 8e9 / link.rate.0 as f64,
        }))
    }
}
