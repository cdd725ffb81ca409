//! The state of links, from the status that switches report of their ports.

use std::collections::BTreeSet;
use std::sync::Arc;

use thalweg_network::{LinkId, Node, PortIndex, RouterId, Topology};

/// Combines the port status of both ends of each link. Ports without a report count as up.
pub(super) struct LinkObserver {
    topology: Arc<Topology>,
    down: BTreeSet<(RouterId, PortIndex)>,
}

impl LinkObserver {
    pub(super) fn new(topology: Arc<Topology>) -> LinkObserver {
        LinkObserver { topology, down: BTreeSet::new() }
    }

    /// Sets whether a port is up. Returns its link if that changes the link. Ports that the topology does not have, such
    /// as monitor ports, change nothing.
    pub(super) fn set_port(&mut self, router: RouterId, port: PortIndex, is_up: bool) -> Option<LinkId> {
        if port.index() >= self.topology.ports(router) {
            return None;
        }
        let link = self.topology.link_at(router, port);
        let was_up = self.is_up(link);
        match is_up {
            true => self.down.remove(&(router, port)),
            false => self.down.insert((router, port)),
        };
        (self.is_up(link) != was_up).then_some(link)
    }

    /// Returns whether a link is up: none of its ports is down.
    pub(super) fn is_up(&self, link: LinkId) -> bool {
        self.topology.links()[link.index()].ends.iter().all(|end| match end.node {
            Node::Router(router) => !self.down.contains(&(router, end.port)),
            Node::Endpoint(_) => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use thalweg_network::topology::shapes::{Tiers, leaf_spine};

    use super::*;

    #[test]
    fn a_link_is_up_if_both_ports_are() {
        let topology = Arc::new(leaf_spine(2, 2, 2, Tiers::default()).unwrap());
        let mut links = LinkObserver::new(Arc::clone(&topology));
        let (leaf, uplink) = (RouterId(0), PortIndex(2));
        let link = topology.link_at(leaf, uplink);
        let peer = topology.peer(leaf, uplink);
        let Node::Router(spine) = peer.node else { panic!("{peer:?}") };
        assert_eq!(links.set_port(leaf, uplink, true), None);
        assert_eq!(links.set_port(leaf, uplink, false), Some(link));
        assert_eq!(links.set_port(spine, peer.port, false), None, "it is down already");
        assert_eq!(links.set_port(leaf, uplink, true), None, "its other end is still down");
        assert_eq!(links.set_port(spine, peer.port, true), Some(link));
        assert_eq!(links.set_port(leaf, PortIndex(4), false), None, "the monitor port");
    }
}
