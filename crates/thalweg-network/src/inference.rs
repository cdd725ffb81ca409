//! Input port, output port and path of a packet, inferred from its headers.
//!
//! A mirrored packet does not say where it came in and where it goes out. Who knows the rules of all switches knows
//! both, as long as routing is deterministic, ECMP with a known hash included (Rasley et al., "Planck", SIGCOMM 2014,
//! section 3.2.1): the path of a packet follows from its source and destination MAC addresses, and under ECMP from
//! its flow number, for which its [ports](crate::routing::flow_ports) stand.
//!
//! The path is followed from the source to the router that mirrored the packet, and no further: what happens to the
//! packet beyond has no bearing on its ports here.
//!
//! # Guarantee
//! Ports that are given are those that the packet went through, as long as the state is that of the switches. A port
//! that cannot be known is not given, and a [`Case`] says why. In particular:
//! - Packets to a *shadow address* have it up to the last switch, which writes the base address back (section 6.2). A
//!   switch may mirror what it sends before or after; so at the destination's own switch a packet to the base
//!   address may have come by the path of any address. Its output port is the same whatever it was. Its input port
//!   is given if all these paths come in by the same one, and is unknown ([`Case::Rewritten`]) otherwise. Where
//!   switches do not write back ([`Forwarding::with_write_back`]) a base address is what it seems to be.
//! - A packet that goes round in a loop has the input port by which it first came.
//!
//! # Cost
//! Two look-ups of addresses, then a look-up in a table or a hash for each router up to the one asked; nothing is
//! allocated. At the last switch, the path of each address an endpoint may have. In a fat tree of 1,024 endpoints that
//! is about 100 ns under ECMP, 150 ns under tables, and 500 ns at the last switch of four addresses.

#[cfg(test)]
mod tests;

use thalweg_wire::{EthernetAddresses, FlowKey, MacAddress};
use thiserror::Error;

use crate::identity::{EndpointId, PortIndex, RouterId};
use crate::routing::{Path, PathError, ecmp, flow_ports, path};
use crate::state::{Choice, Lookup, NetworkState};
use crate::topology::{Attachment, Node};

#[cfg(doc)]
use crate::state::Forwarding;

/// The ports of one router that a packet went through. `None` is a port that cannot be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ports {
    /// By which it came in.
    pub input: Option<PortIndex>,
    /// By which it went out.
    pub output: Option<PortIndex>,
}

/// What could be inferred of a packet at one router, and why not all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Case {
    /// Both ports.
    Known,
    /// The output port. The last switch may have written the destination's base address over another, and these come in
    /// by different ports.
    Rewritten,
    /// No endpoint has the source address: the output port, unless ECMP would have chosen it by the source.
    UnknownSource,
    /// No endpoint has the destination address: the input port, if the source is at this router.
    UnknownDestination,
    /// The destination is a group, or all: the input port, if the source is at this router.
    Group,
    /// ECMP chose by ports that the packet does not show (later fragments): only what does not depend on them.
    Unported,
    /// A router before this one has no way to the destination, or the packet goes round in a loop: nothing. Or this one
    /// has none: the input port.
    NoRoute,
    /// The path does not lead through this router: nothing.
    Elsewhere,
}

impl Case {
    /// How many there are.
    pub const COUNT: usize = Case::ALL.len();

    /// All, in the order of their indices.
    pub const ALL: [Case; 8] = [
        Case::Known,
        Case::Rewritten,
        Case::UnknownSource,
        Case::UnknownDestination,
        Case::Group,
        Case::Unported,
        Case::NoRoute,
        Case::Elsewhere,
    ];

    /// Its place in an array of counters of [`COUNT`](Self::COUNT).
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// As tables, metrics and files call it.
    pub const fn name(self) -> &'static str {
        match self {
            Case::Known => "known",
            Case::Rewritten => "rewritten",
            Case::UnknownSource => "unknown_source",
            Case::UnknownDestination => "unknown_destination",
            Case::Group => "group",
            Case::Unported => "unported",
            Case::NoRoute => "no_route",
            Case::Elsewhere => "elsewhere",
        }
    }

    /// Whether the packet's path leads through the router, as far as can be seen.
    #[inline]
    pub const fn fits(self) -> bool {
        matches!(self, Case::Known | Case::Rewritten)
    }
}

/// How sure it is which version of the network's state a packet was forwarded under. See
/// [`versions`](crate::versions#attribution).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Certainty {
    /// Only one version was in force.
    Certain,
    /// A change was under way, and all versions give the same answer.
    Agreed,
    /// A change was under way, and of the versions under which the packet could be here at all, all give the same answer.
    OnlyFit,
    /// A change was under way, and versions give different answers: this is the newest one's.
    Ambiguous,
    /// A version that may have been in force has been forgotten: this is the answer of those that are kept.
    Forgotten,
}

impl Certainty {
    /// How many there are.
    pub const COUNT: usize = Certainty::ALL.len();

    /// All, in the order of their indices.
    pub const ALL: [Certainty; 5] = [
        Certainty::Certain,
        Certainty::Agreed,
        Certainty::OnlyFit,
        Certainty::Ambiguous,
        Certainty::Forgotten,
    ];

    /// Its place in an array of counters of [`COUNT`](Self::COUNT).
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// As tables, metrics and files call it.
    pub const fn name(self) -> &'static str {
        match self {
            Certainty::Certain => "certain",
            Certainty::Agreed => "agreed",
            Certainty::OnlyFit => "only_fit",
            Certainty::Ambiguous => "ambiguous",
            Certainty::Forgotten => "forgotten",
        }
    }
}

/// What is inferred of a packet at one router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inference {
    /// Its ports there.
    pub ports: Ports,
    /// Whether these are all, and if not, why.
    pub case: Case,
    /// The version of the network's state that this follows from.
    pub version: u64,
    /// How sure it is that it was that one.
    pub certainty: Certainty,
}

/// Why a packet has no path.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoPath {
    /// Its headers do not tell where it begins, where it ends, or how it was hashed.
    #[error("the headers do not tell the path: {}", .0.name())]
    Headers(Case),
    /// It does not arrive.
    #[error(transparent)]
    Broken(#[from] PathError),
}

/// What the headers of a packet say of its way.
#[derive(Clone, Copy, Debug)]
struct Headers {
    source: Option<EndpointId>,
    lookup: Result<Lookup, Case>,
}

impl NetworkState {
    /// The ports of `router` that a packet with these headers went through, and whether these are all. A router that
    /// does not exist is on no path.
    pub fn ports(&self, router: RouterId, ethernet: &EthernetAddresses, key: &FlowKey) -> (Ports, Case) {
        if router.index() >= self.topology().routers().len() {
            return (Ports::default(), Case::Elsewhere);
        }
        match self.headers(ethernet, key) {
            Headers { source: Some(source), lookup: Ok(packet) } => {
                self.ports_on_the_way(router, source, &packet)
            }
            Headers { source: None, lookup: Ok(packet) } => {
                let (output, _) = self.output(router, &packet);
                (Ports { input: None, output }, Case::UnknownSource)
            }
            Headers { source: Some(source), lookup: Err(case) } => {
                let (first, input) = self.first_stop(source);
                (Ports { input: (first == router).then_some(input), output: None }, case)
            }
            Headers { source: None, lookup: Err(Case::Group) } => (Ports::default(), Case::Group),
            Headers { source: None, lookup: Err(_) } => (Ports::default(), Case::UnknownSource),
        }
    }

    /// The whole path of a packet with these headers, its destination address taken as it is.
    ///
    /// # Errors
    /// If the headers do not tell, or the packet does not arrive.
    pub fn path(&self, ethernet: &EthernetAddresses, key: &FlowKey) -> Result<Path, NoPath> {
        let Headers { source, lookup } = self.headers(ethernet, key);
        let source = source.ok_or(NoPath::Headers(Case::UnknownSource))?;
        let packet = lookup.map_err(NoPath::Headers)?;
        let mut is_unknown = false;
        let followed = path::follow(self.topology(), source, packet.destination, |router| {
            let choice = self.choose(router, &packet);
            is_unknown |= choice == Choice::Unknown;
            if let Choice::Port(port) = choice { Some(port) } else { None }
        });
        if is_unknown { Err(NoPath::Headers(Case::Unported)) } else { Ok(followed?) }
    }

    #[inline]
    fn headers(&self, ethernet: &EthernetAddresses, key: &FlowKey) -> Headers {
        let topology = self.topology();
        let source = topology.endpoint_with_mac(ethernet.source).map(|(source, _)| source);
        let Some((destination, address)) = topology.endpoint_with_mac(ethernet.destination) else {
            let is_group = is_group(ethernet.destination);
            return Headers {
                source,
                lookup: Err(if is_group { Case::Group } else { Case::UnknownDestination }),
            };
        };
        let is_unported = key.protocol.has_ports() && key.src_port == 0 && key.dst_port == 0;
        let flow = flow_ports::flow(key.src_port, key.dst_port);
        let word = source.filter(|_| !is_unported).map(|source| ecmp::word(source, destination, flow));
        Headers { source, lookup: Ok(Lookup { destination, address, word }) }
    }

    /// The ports of a packet that both ends are known of.
    #[inline]
    fn ports_on_the_way(&self, router: RouterId, source: EndpointId, packet: &Lookup) -> (Ports, Case) {
        let input = match self.arrival(router, source, packet) {
            Ok(input) => input,
            Err(Case::Unported) => {
                let (output, _) = self.output(router, packet);
                return (Ports { input: None, output }, Case::Unported);
            }
            Err(case) => return (Ports::default(), case),
        };
        let (output, case) = self.output(router, packet);
        if output.is_some() && self.may_be_rewritten(router, source, packet, input) {
            return (Ports { input: None, output }, Case::Rewritten);
        }
        (Ports { input: Some(input), output }, case)
    }

    #[inline]
    fn output(&self, router: RouterId, packet: &Lookup) -> (Option<PortIndex>, Case) {
        match self.choose(router, packet) {
            Choice::Port(port) => (Some(port), Case::Known),
            Choice::Nowhere => (None, Case::NoRoute),
            Choice::Unknown => (None, Case::Unported),
        }
    }

    /// The router that an endpoint's packets come to first, and its port.
    #[inline]
    fn first_stop(&self, source: EndpointId) -> (RouterId, PortIndex) {
        let topology = self.topology();
        (topology.router_of(source), topology.port_of(source))
    }

    /// The port by which a packet comes to `router`, or why it does not.
    #[inline]
    fn arrival(&self, router: RouterId, source: EndpointId, packet: &Lookup) -> Result<PortIndex, Case> {
        let topology = self.topology();
        let (mut at, mut input) = self.first_stop(source);
        // Brent's search for a loop (1980): whoever goes round comes back to a router marked at a power of two.
        let (mut marked, mut hops) = (at, 1u32);
        while at != router {
            let output = match self.choose(at, packet) {
                Choice::Port(port) => port,
                Choice::Nowhere => return Err(Case::NoRoute),
                Choice::Unknown => return Err(Case::Unported),
            };
            match topology.peers(at).get(output.index()) {
                Some(&Attachment { node: Node::Router(next), port }) => (at, input) = (next, port),
                Some(_) => return Err(Case::Elsewhere),
                None => return Err(Case::NoRoute),
            }
            if at == marked {
                return Err(Case::NoRoute);
            }
            if hops.is_power_of_two() {
                marked = at;
            }
            hops += 1;
        }
        Ok(input)
    }

    /// Whether a packet to a base address at its last switch may have come by another port than `input`, to another
    /// address.
    #[inline]
    fn may_be_rewritten(
        &self,
        router: RouterId,
        source: EndpointId,
        packet: &Lookup,
        input: PortIndex,
    ) -> bool {
        let forwarding = self.forwarding();
        if packet.address != 0
            || forwarding.addresses() == 1
            || !forwarding.writes_back()
            || router != self.topology().router_of(packet.destination)
        {
            return false;
        }
        let arrival = |address| self.arrival(router, source, &Lookup { address, ..*packet });
        (1..forwarding.addresses()).any(|address| arrival(address as u8).is_ok_and(|port| port != input))
    }
}

/// Whether an address is a group's, that of all stations included (IEEE 802.3, section 3.2.3).
#[inline]
const fn is_group(mac: MacAddress) -> bool {
    mac.0[0] & 1 == 1
}

const _: () = {
    let mut index = 0;
    while index < Case::COUNT {
        assert!(Case::ALL[index].index() == index, "cases are listed in the order of their indices");
        index += 1;
    }
    let mut index = 0;
    while index < Certainty::COUNT {
        assert!(Certainty::ALL[index].index() == index, "certainties are, too");
        index += 1;
    }
};
