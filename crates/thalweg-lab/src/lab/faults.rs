//! Fault injection: links that fail, switches that lose power, hosts that ignore ARP.
//!
//! **A failed link** carries nothing in either direction, and both ends lose carrier. Between switches both interfaces
//! are set down, at a host only the switch's: the host keeps its address and its route, but loses its ARP entries, as
//! the kernel does without carrier. Frames that a switch sends to a port without carrier are lost; its
//! [counters](crate::SwitchCounters) count them as sent.
//!
//! **A switch without power** has failed links. When it returns, its table and its counters are empty, and it forwards
//! nothing until routes are [installed](crate::Tables::install). Its monitor port stays up.
//!
//! **A host that ignores ARP** neither answers requests for its address nor learns from any: rerouting by ARP has no
//! effect on it.
//!
//! The kernel holds this state, and nothing is recorded; [`Lab::down`] works after any fault.

use thalweg_network::link_state::UnknownLink;
use thalweg_network::topology::Node;
use thalweg_network::{Attachment, EndpointId, LinkId, LinkState, RouterId};

use super::Lab;
use crate::carrier::wait_for_links;
use crate::error::LabError;
use crate::layout::{Layout, Peer};
use crate::sysctl;

/// How a host treats ARP requests: `arp_ignore` of the kernel's ip-sysctl.rst.
const ARP_IGNORE: &str = "net/ipv4/conf/all/arp_ignore";

/// Answer and learn from no request, or from every request for the host's addresses.
const IGNORE_ALL: &str = "8";
const ANSWER: &str = "0";

impl Lab {
    /// Sets a link down or up. Returns once a link that is set up carries frames. Idempotent.
    ///
    /// # Errors
    /// If there is no such link, or the lab no longer exists.
    pub fn set_link(&self, link: LinkId, is_up: bool) -> Result<(), LabError> {
        let interfaces = self.interfaces_of(link);
        if interfaces.is_empty() {
            let links = self.topology().links().len();
            return Err(UnknownLink { link, links }.into());
        }
        self.set_interfaces(&interfaces, is_up)
    }

    /// Returns which links carry frames, from the kernel.
    ///
    /// # Errors
    /// If the lab no longer exists.
    pub fn links(&self) -> Result<LinkState, LabError> {
        let carrying =
            self.parts.netlink.interfaces()?.into_iter().filter(|interface| interface.is_operational);
        let up: Vec<u32> = carrying.map(|interface| interface.index).collect();
        let mut links = LinkState::new(self.topology());
        for (link, _) in (0..).map(LinkId).zip(self.topology().links()) {
            if !self.interfaces_of(link).iter().all(|interface| up.contains(interface)) {
                links.fail(link)?;
            }
        }
        Ok(links)
    }

    /// Cuts the power of a switch: sets its links down, clears its table and its counters.
    ///
    /// # Errors
    /// If there is no such switch, it is an Open vSwitch bridge, or the lab no longer exists.
    pub fn fail_switch(&self, router: RouterId) -> Result<(), LabError> {
        let (interfaces, maps, mut tables) = (self.interfaces_around(router)?, self.maps()?, self.tables()?);
        self.set_interfaces(&interfaces, false)?;
        tables.clear(router).map_err(|error| LabError::ebpf("empty a table", error))?;
        maps.reset_counters(&self.parts.layout, router)?;
        maps.set_mirror(&self.parts.layout, router, true)
    }

    /// Restores the power of a switch: sets all its links up, including links that failed on their own. Its table stays
    /// empty.
    ///
    /// # Errors
    /// If there is no such switch, or the lab no longer exists.
    pub fn repair_switch(&self, router: RouterId) -> Result<(), LabError> {
        self.set_interfaces(&self.interfaces_around(router)?, true)
    }

    /// Cuts the power of a switch and restores it.
    ///
    /// # Errors
    /// See [`fail_switch`](Self::fail_switch).
    pub fn restart_switch(&self, router: RouterId) -> Result<(), LabError> {
        self.fail_switch(router)?;
        self.repair_switch(router)
    }

    /// Makes a host ignore ARP requests, or react to them again; all hosts react when a lab comes up.
    ///
    /// # Errors
    /// If its namespace no longer exists.
    ///
    /// # Panics
    /// If the topology has no such endpoint.
    pub fn set_ignores_arp(&self, endpoint: EndpointId, ignores: bool) -> Result<(), LabError> {
        sysctl::set_within(&self.host(endpoint), &[(ARP_IGNORE, if ignores { IGNORE_ALL } else { ANSWER })])
    }

    /// Returns the fabric's interfaces at the ends of a link; empty if there is no such link.
    fn interfaces_of(&self, link: LinkId) -> Vec<u32> {
        let ends = self.topology().links().get(link.index()).map(|link| link.ends);
        let interface = |end: Attachment| match end.node {
            Node::Router(router) => self.parts.layout.interface(router, end.port),
            Node::Endpoint(_) => None,
        };
        ends.into_iter().flatten().filter_map(interface).collect()
    }

    /// Returns the fabric's interfaces at both ends of all links of a switch.
    fn interfaces_around(&self, router: RouterId) -> Result<Vec<u32>, LabError> {
        if router.index() >= self.topology().routers().len() {
            return Err(LabError::UnknownSwitch { name: router.to_string() });
        }
        Ok(around(&self.parts.layout, router))
    }

    /// Sets interfaces down, or sets them up and waits until they carry frames.
    fn set_interfaces(&self, interfaces: &[u32], is_up: bool) -> Result<(), LabError> {
        interfaces.iter().try_for_each(|&interface| self.parts.netlink.set_up(interface, is_up))?;
        if is_up { wait_for_links(interfaces.iter().copied(), &self.parts.netlink) } else { Ok(()) }
    }
}

fn around(layout: &Layout, router: RouterId) -> Vec<u32> {
    let both = |port: &crate::layout::Port| {
        let other = match port.peer {
            Peer::Host(_) => None,
            Peer::Port(other) => Some(layout.ports[other].interface),
        };
        [Some(port.interface), other].into_iter().flatten()
    };
    layout.ports_of(router).iter().flat_map(both).collect()
}
