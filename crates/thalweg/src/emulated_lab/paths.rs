//! Delays and rates of all pairs of an emulated network, over its shortest paths.

use thalweg_network::routing::{NextHops, NextHopsError};
use thalweg_network::topology::Node;
use thalweg_network::{EndpointId, Link, LinkState, PortIndex, RouterId, Topology};
use thalweg_wire::{BitRate, Bytes, Nanos};

/// The shortest paths from a node to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathSummary {
    /// The shortest delay of the fastest path: the sum of its links' delays, less their jitter.
    pub(super) min_delay: Nanos,
    /// The longest delay of the slowest path, jitter included.
    pub(super) max_delay: Nanos,
    /// The rate of the best path: that of its slowest link.
    pub(super) rate: BitRate,
}

/// The paths between all pairs, while all links are up.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    /// By destination, then by source; `None` for the destination itself and for sources without a path.
    between: Vec<Vec<Option<PathSummary>>>,
}

impl PathSummary {
    /// The path over no link.
    const NONE: PathSummary =
        PathSummary { min_delay: Nanos::ZERO, max_delay: Nanos::ZERO, rate: BitRate(u64::MAX) };

    /// These paths after another link.
    fn after(self, link: &Link) -> PathSummary {
        let Link { delay, jitter, rate, .. } = link;
        PathSummary {
            min_delay: self.min_delay.saturating_add(Nanos(delay.0.saturating_sub(jitter.0))),
            max_delay: self.max_delay.saturating_add(delay.saturating_add(*jitter)),
            rate: self.rate.min(*rate),
        }
    }

    /// These paths and others.
    fn or(self, other: PathSummary) -> PathSummary {
        PathSummary {
            min_delay: self.min_delay.min(other.min_delay),
            max_delay: self.max_delay.max(other.max_delay),
            rate: self.rate.max(other.rate),
        }
    }
}

impl Paths {
    /// Finds the paths of a network.
    ///
    /// # Errors
    /// If the network is too large.
    pub(super) fn new(topology: &Topology) -> Result<Paths, NextHopsError> {
        let next_hops = NextHops::new(topology, &LinkState::new(topology))?;
        let between = topology.endpoint_ids().map(|to| paths_to(topology, &next_hops, to)).collect();
        Ok(Paths { between })
    }

    /// The paths from one endpoint to another; `None` if there is none.
    pub(super) fn between(&self, from: EndpointId, to: EndpointId) -> Option<PathSummary> {
        self.between[to.index()][from.index()]
    }

    /// The paths from an endpoint to all others together; `None` if there is none.
    pub(super) fn from(&self, from: EndpointId) -> Option<PathSummary> {
        let all = self.between.iter().filter_map(|sources| sources[from.index()]);
        all.reduce(PathSummary::or)
    }

    /// The delay of the longest path.
    pub(super) fn longest_delay(&self) -> Nanos {
        self.all().map(|path| path.max_delay).max().unwrap_or_default()
    }

    /// The most data that is on the way in one direction, without queues: the product of rate and delay of a path. And its delay.
    pub(super) fn largest_flight(&self) -> (Bytes, Nanos) {
        self.all().map(|path| (path.rate.amount_in(path.max_delay), path.max_delay)).max().unwrap_or_default()
    }

    fn all(&self) -> impl Iterator<Item = PathSummary> + '_ {
        self.between.iter().flatten().filter_map(|path| *path)
    }
}

/// The paths from all endpoints to one.
fn paths_to(topology: &Topology, next_hops: &NextHops, to: EndpointId) -> Vec<Option<PathSummary>> {
    let mut of_routers = vec![None; topology.routers().len()];
    for router in by_distance(topology, topology.router_of(to)) {
        let ports = next_hops.ports(router, to).iter();
        let paths = ports.filter_map(|&port| {
            let rest = match topology.peer(router, port).node {
                Node::Endpoint(_) => Some(PathSummary::NONE),
                // Closer, so it has come before.
                Node::Router(next) => of_routers[next.index()],
            };
            let link = &topology.links()[topology.link_at(router, port).index()];
            rest.map(|rest| rest.after(link))
        });
        of_routers[router.index()] = paths.reduce(PathSummary::or);
    }
    let from_endpoint = |from: EndpointId| {
        let link = &topology.links()[topology.endpoint_link(from).index()];
        let rest = of_routers[topology.router_of(from).index()].filter(|_| from != to);
        rest.map(|rest: PathSummary| rest.after(link))
    };
    topology.endpoint_ids().map(from_endpoint).collect()
}

/// The routers that reach another, the closest first.
fn by_distance(topology: &Topology, to: RouterId) -> Vec<RouterId> {
    let mut is_known = vec![false; topology.routers().len()];
    is_known[to.index()] = true;
    let (mut order, mut next) = (vec![to], 0);
    while let Some(&router) = order.get(next) {
        next += 1;
        for port in (0..topology.ports(router) as u16).map(PortIndex) {
            if let Node::Router(other) = topology.peer(router, port).node
                && !std::mem::replace(&mut is_known[other.index()], true)
            {
                order.push(other);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use thalweg_network::topology::shapes::{Tiers, leaf_spine};
    use thalweg_network::{LinkSpec, TopologyBuilder};

    use super::*;

    fn link(mbps: u64, millis: u64) -> LinkSpec {
        LinkSpec { rate: BitRate(mbps * 1_000_000), delay: Nanos::from_millis(millis), ..LinkSpec::default() }
    }

    #[test]
    fn a_path_has_the_delay_of_all_its_links_and_the_rate_of_the_slowest() {
        let tiers = Tiers { access: link(100, 1), uplink: link(40, 10) };
        let paths = Paths::new(&leaf_spine(2, 2, 2, tiers).unwrap()).unwrap();
        let [near, far] = [1, 2].map(|to| paths.between(EndpointId(0), EndpointId(to)).unwrap());
        assert_eq!(
            (near.min_delay, near.max_delay, near.rate.0),
            (Nanos::from_millis(2), Nanos::from_millis(2), 100_000_000)
        );
        assert_eq!(
            (far.min_delay, far.max_delay, far.rate.0),
            (Nanos::from_millis(22), Nanos::from_millis(22), 40_000_000)
        );
        assert_eq!(paths.between(EndpointId(0), EndpointId(0)), None);
        let all = paths.from(EndpointId(0)).unwrap();
        assert_eq!((all.min_delay, all.max_delay), (near.min_delay, far.max_delay));
        assert_eq!(paths.longest_delay(), Nanos::from_millis(22));
        // 40 Mbit/s for 22 ms.
        assert_eq!(paths.largest_flight(), (Bytes(110_000), Nanos::from_millis(22)));
    }

    #[test]
    fn jitter_makes_delays_longer_and_shorter() {
        let access = link(100, 1);
        let uplink = LinkSpec { jitter: Nanos::from_millis(2), ..link(40, 10) };
        let paths = Paths::new(&leaf_spine(2, 1, 1, Tiers { access, uplink }).unwrap()).unwrap();
        let path = paths.between(EndpointId(0), EndpointId(1)).unwrap();
        assert_eq!((path.min_delay, path.max_delay), (Nanos::from_millis(18), Nanos::from_millis(26)));
    }

    #[test]
    fn equal_numbers_of_hops_can_have_different_delays_and_some_pairs_no_path() {
        let mut builder = TopologyBuilder::new();
        let [a, b, fast, slow, alone] =
            ["a", "b", "fast", "slow", "alone"].map(|name| builder.add_router(name).unwrap());
        for (name, router) in [("h0", a), ("h1", b), ("h2", alone)] {
            builder.add_endpoint(name, router, link(100, 0)).unwrap();
        }
        for (middle, spec) in [(fast, link(10, 5)), (slow, link(50, 20))] {
            builder.connect(a, middle, spec).unwrap();
            builder.connect(middle, b, spec).unwrap();
        }
        let paths = Paths::new(&builder.build().unwrap()).unwrap();
        let path = paths.between(EndpointId(0), EndpointId(1)).unwrap();
        assert_eq!((path.min_delay, path.max_delay), (Nanos::from_millis(10), Nanos::from_millis(40)));
        assert_eq!(path.rate, BitRate(50_000_000));
        assert_eq!(paths.between(EndpointId(0), EndpointId(2)), None);
        assert_eq!(paths.from(EndpointId(2)), None);
    }
}
