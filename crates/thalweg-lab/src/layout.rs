//! The names, numbers and rates of all interfaces of a lab, computed before any is created.
//!
//! Every port of a switch is an interface in the fabric's namespace, with a name like `r0p1` and an alias like
//! `leaf0:p1`. Kernel numbers are assigned: from [`FIRST_INTERFACE`] switch by switch and port by port, then two per
//! monitor port. So table entries can be encoded and decoded from the topology alone.

use thalweg_network::topology::Node;
use thalweg_network::{EndpointId, PortIndex, RouterId, Topology};
use thalweg_wire::BitRate;

use crate::plan::Plan;

/// Kernel number of the first port. Lower numbers are left to the namespace's loopback and tunnels.
pub(crate) const FIRST_INTERFACE: u32 = 100;

/// Name of the interface of every host.
pub const HOST_INTERFACE: &str = "eth0";

/// The interfaces of a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Sending rates, by endpoint.
    pub(crate) host_rates: Vec<BitRate>,
    /// Ports, by router and port.
    pub(crate) ports: Vec<Port>,
    /// Index of the first port of each router, then the number of ports.
    first_ports: Vec<u32>,
    /// Monitor ports, by router.
    pub(crate) monitors: Vec<Monitor>,
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) router: RouterId,
    pub(crate) port: PortIndex,
    pub(crate) interface: u32,
    /// Rate of its link.
    pub(crate) rate: BitRate,
    pub(crate) peer: Peer,
}

/// The other end of a port's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Host(EndpointId),
    /// Another port, by its index in [`Layout::ports`].
    Port(usize),
}

/// The two ends of a switch's monitor port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Monitor {
    pub(crate) router: RouterId,
    /// The switch's end, which sends.
    pub(crate) mirror: u32,
    /// The collector's end.
    pub(crate) monitor: u32,
    pub(crate) rate: BitRate,
}

impl Layout {
    /// Computes the layout of a plan that passes [`Plan::check`].
    pub(crate) fn new(plan: &Plan) -> Layout {
        let topology = &*plan.topology;
        let mut first_ports = vec![0];
        for router in topology.router_ids() {
            first_ports.push(first_ports[router.index()] + topology.ports(router) as u32);
        }
        let place = |router: RouterId, port: PortIndex| first_ports[router.index()] as usize + port.index();
        let ports = topology.router_ids().flat_map(|router| port_indices(topology, router));
        let ports = ports.map(|(router, port)| {
            let peer = topology.peer(router, port);
            Port {
                router,
                port,
                interface: FIRST_INTERFACE + place(router, port) as u32,
                rate: plan.link_rate(&topology.links()[topology.link_at(router, port).index()]),
                peer: match peer.node {
                    Node::Endpoint(endpoint) => Peer::Host(endpoint),
                    Node::Router(router) => Peer::Port(place(router, peer.port)),
                },
            }
        });
        let ports: Vec<_> = ports.collect();
        let after_ports = FIRST_INTERFACE + ports.len() as u32;
        let monitor = |router: RouterId| {
            let mirror = after_ports + 2 * u32::from(router.0);
            Monitor { router, mirror, monitor: mirror + 1, rate: plan.monitor_rate(router) }
        };
        let monitors = topology.router_ids().map(monitor).collect();
        let host_rate = |endpoint: EndpointId| {
            let rate = plan.link_rate(&topology.links()[topology.endpoint_link(endpoint).index()]);
            BitRate((rate.0 as f64 * plan.host_share) as u64)
        };
        let host_rates = topology.endpoint_ids().map(host_rate).collect();
        Layout { host_rates, ports, first_ports, monitors }
    }

    /// Returns the kernel number of a port; `None` if there is no such port.
    pub(crate) fn interface(&self, router: RouterId, port: PortIndex) -> Option<u32> {
        let first = *self.first_ports.get(router.index())?;
        let end = *self.first_ports.get(router.index() + 1)?;
        let place = first + u32::from(port.0);
        (place < end).then_some(FIRST_INTERFACE + place)
    }

    /// Returns the ports of a router; empty if there is no such router.
    pub(crate) fn ports_of(&self, router: RouterId) -> &[Port] {
        let bound = |index: usize| self.first_ports.get(index).map(|&place| place as usize);
        match (bound(router.index()), bound(router.index() + 1)) {
            (Some(start), Some(end)) => &self.ports[start..end],
            _ => &[],
        }
    }

    /// Returns the highest kernel number of a port plus one: the size of arrays by port.
    pub(crate) fn interfaces(&self) -> u32 {
        FIRST_INTERFACE + self.ports.len() as u32
    }
}

impl Plan {
    /// Returns the interface of a switch's port, in the namespace of the switches.
    pub fn port_interface(&self, router: RouterId, port: PortIndex) -> String {
        port_name(router, port)
    }

    /// Returns the interface at which a switch's mirrored frames arrive, in the namespace of the switches.
    pub fn monitor_interface(&self, router: RouterId) -> String {
        monitor_name(router)
    }
}

/// Returns the name of a port's interface.
pub(crate) fn port_name(router: RouterId, port: PortIndex) -> String {
    format!("{router}{port}")
}

/// Returns the name of the switch's end of its monitor port.
pub(crate) fn mirror_name(router: RouterId) -> String {
    format!("{router}mirror")
}

/// Returns the name of the collector's end of a monitor port.
pub(crate) fn monitor_name(router: RouterId) -> String {
    format!("{router}monitor")
}

fn port_indices(
    topology: &Topology,
    router: RouterId,
) -> impl Iterator<Item = (RouterId, PortIndex)> + use<> {
    (0..topology.ports(router) as u16).map(move |port| (router, PortIndex(port)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::plan::DEFAULT_RATE;

    #[test]
    fn every_port_is_its_peers_peer() {
        for plan in [Plan::leaf_spine(DEFAULT_RATE).unwrap(), Plan::fat_tree_4(DEFAULT_RATE).unwrap()] {
            let layout = Layout::new(&plan);
            let mut hosts = BTreeSet::new();
            for (place, port) in layout.ports.iter().enumerate() {
                assert_eq!(layout.interface(port.router, port.port), Some(port.interface));
                assert_eq!(layout.ports_of(port.router)[port.port.index()], *port);
                match port.peer {
                    Peer::Host(endpoint) => assert!(hosts.insert(endpoint), "a host has one link"),
                    Peer::Port(other) => assert_eq!(layout.ports[other].peer, Peer::Port(place)),
                }
            }
            assert_eq!(hosts.len(), plan.topology.endpoints().len());
            assert_eq!(layout.interface(RouterId(0), PortIndex(99)), None);
            assert_eq!(layout.interface(RouterId(99), PortIndex(0)), None);
        }
    }

    #[test]
    fn interface_names_and_numbers_are_unique() {
        let layout = Layout::new(&Plan::fat_tree_4(DEFAULT_RATE).unwrap());
        let ports = layout.ports.iter().map(|port| (port.interface, port_name(port.router, port.port)));
        let mirrors = layout.monitors.iter().map(|monitor| (monitor.mirror, mirror_name(monitor.router)));
        let monitors = layout.monitors.iter().map(|monitor| (monitor.monitor, monitor_name(monitor.router)));
        let all: Vec<_> = ports.chain(mirrors).chain(monitors).collect();
        assert_eq!(all.len(), 80 + 20 + 20);
        assert_eq!(all.iter().map(|(number, _)| number).collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(all.iter().map(|(_, name)| name).collect::<BTreeSet<_>>().len(), all.len());
    }

    #[test]
    fn interface_names_fit_into_ifnamsiz() {
        let (router, port) = (RouterId(u16::MAX - 1), PortIndex(1_023));
        for name in [port_name(router, port), mirror_name(router), monitor_name(router)] {
            assert!(name.len() <= 15, "{name}: IFNAMSIZ is 16 with the zero at the end");
        }
    }

    #[test]
    fn plan_rate_overrides_link_rates() {
        let mut plan = Plan::leaf_spine(DEFAULT_RATE).unwrap();
        plan.rate = Some(BitRate(20_000_000));
        let layout = Layout::new(&plan);
        assert!(layout.ports.iter().all(|port| port.rate == BitRate(20_000_000)));
        assert_eq!(layout.host_rates[0], BitRate(19_200_000));
        assert_eq!(layout.monitors[0].rate, BitRate(20_000_000));
    }
}
