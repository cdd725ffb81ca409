//! What can befall a lab: links that are cut, switches that lose their power, hosts that take no notice of ARP.
//!
//! **A link** that is cut carries nothing in either direction, and both of its ends see that there is no carrier. Of a
//! link between switches both interfaces are set down, of that of a host the switch's: it is no deed of the host's, which
//! keeps its address and its route. What it has learnt by ARP it forgets, as the kernel does without carrier. Frames that
//! a switch sends by a port without carrier are lost; its [counters](crate::SwitchCounters) have them as sent.
//!
//! **A switch** without power has cut links, and has forgotten its table and its counters when it comes back. Then it
//! forwards nothing until somebody [installs](crate::Tables::install) something. Its monitor port stays, and mirrors
//! all that is forwarded again.
//!
//! **A host** that is deaf to ARP neither answers requests for its address nor learns from them, whoever sends them: rerouting by
//! ARP has no effect on it.
//!
//! The kernel keeps all of that; nothing is written down, and [`Lab::down`] removes a lab whatever has befallen it.

use thalweg_network::link_state::UnknownLink;
use thalweg_network::topology::Node;
use thalweg_network::{Attachment, EndpointId, LinkId, LinkState, RouterId};

use super::{Lab, make};
use crate::error::LabError;
use crate::layout::{Layout, Peer};
use crate::sysctl;

/// What a host does with ARP requests: `arp_ignore` of the kernel's ip-sysctl.rst.
const ARP_IGNORE: &str = "net/ipv4/conf/all/arp_ignore";

/// No request is answered, or learnt from; and every one for the host's addresses is.
const DEAF: &str = "8";
const HEARING: &str = "0";

impl Lab {
    /// Cuts a link, or mends it. After that it has carrier again, and carries frames. To do either twice is as once.
    ///
    /// # Errors
    /// If there is no such link, or the lab is gone.
    pub fn set_link(&self, link: LinkId, is_up: bool) -> Result<(), LabError> {
        let interfaces = self.interfaces_of(link);
        if interfaces.is_empty() {
            let links = self.topology().links().len();
            return Err(UnknownLink { link, links }.into());
        }
        self.set_interfaces(&interfaces, is_up)
    }

    /// Which links carry frames, as the kernel has it.
    ///
    /// # Errors
    /// If the lab is gone.
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

    /// Takes a switch its power: its links are cut, its table is empty, and it has counted nothing.
    ///
    /// # Errors
    /// If there is no such switch, it is no eBPF program, or the lab is gone.
    pub fn fail_switch(&self, router: RouterId) -> Result<(), LabError> {
        let (interfaces, maps, mut tables) = (self.interfaces_around(router)?, self.maps()?, self.tables()?);
        self.set_interfaces(&interfaces, false)?;
        tables.clear(router).map_err(|error| LabError::ebpf("empty a table", error))?;
        maps.reset_counters(&self.parts.layout, router)?;
        maps.set_mirror(&self.parts.layout, router, true)
    }

    /// Gives a switch its power back: its links carry frames again. What it is to do with them nobody has told it yet.
    /// Its links that were cut by themselves are mended, too.
    ///
    /// # Errors
    /// If there is no such switch, or the lab is gone.
    pub fn repair_switch(&self, router: RouterId) -> Result<(), LabError> {
        self.set_interfaces(&self.interfaces_around(router)?, true)
    }

    /// Takes a switch its power, and gives it back.
    ///
    /// # Errors
    /// As of [`fail_switch`](Self::fail_switch).
    pub fn restart_switch(&self, router: RouterId) -> Result<(), LabError> {
        self.fail_switch(router)?;
        self.repair_switch(router)
    }

    /// Whether a host takes notice of ARP requests; all do when a lab comes up.
    ///
    /// # Errors
    /// If its namespace is gone.
    ///
    /// # Panics
    /// If there is no such endpoint.
    pub fn set_deaf_to_arp(&self, endpoint: EndpointId, is_deaf: bool) -> Result<(), LabError> {
        sysctl::set_within(&self.host(endpoint), &[(ARP_IGNORE, if is_deaf { DEAF } else { HEARING })])
    }

    /// The fabric's interfaces at the ends of a link; none if there is no such link.
    fn interfaces_of(&self, link: LinkId) -> Vec<u32> {
        let ends = self.topology().links().get(link.index()).map(|link| link.ends);
        let interface = |end: Attachment| match end.node {
            Node::Router(router) => self.parts.layout.interface(router, end.port),
            Node::Endpoint(_) => None,
        };
        ends.into_iter().flatten().filter_map(interface).collect()
    }

    /// The fabric's interfaces at both ends of all links of a switch.
    fn interfaces_around(&self, router: RouterId) -> Result<Vec<u32>, LabError> {
        if router.index() >= self.topology().routers().len() {
            return Err(LabError::UnknownSwitch { name: router.to_string() });
        }
        Ok(around(&self.parts.layout, router))
    }

    /// Sets interfaces up, and waits until they carry frames; or down.
    fn set_interfaces(&self, interfaces: &[u32], is_up: bool) -> Result<(), LabError> {
        interfaces.iter().try_for_each(|&interface| self.parts.netlink.set_up(interface, is_up))?;
        if is_up { make::wait_for_links(interfaces.iter().copied(), &self.parts.netlink) } else { Ok(()) }
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
