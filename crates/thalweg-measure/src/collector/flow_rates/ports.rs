//! Infers the input and output ports of a direction.

use thalweg_network::inference::{Certainty, Inference};
use thalweg_network::versions::Versions;
use thalweg_network::{PortIndex, RouterId};
use thalweg_wire::{BitRate, EthernetAddresses, FlowKey, Packet, PacketNotes, Protocol, Timestamp};

use super::{FlowRates, addresses, flag};
use crate::collector::report::AddressChange;

impl FlowRates {
    /// Infers the ports again, because the addresses or the forwarding state have changed.
    #[cold]
    pub(super) fn infer(&mut self, number: u32, packet: &Packet) {
        let now = packet.time;
        // ECMP hashed the outer header of a tunnel, which is no longer known.
        let is_decapsulated = packet.notes.contains(PacketNotes::DECAPSULATED);
        let key = if is_decapsulated { FlowKey::v4(0, 0, 0, 0, Protocol::TCP) } else { packet.key };
        let network = self.network.as_ref();
        let inferred = network.map(|network| network.infer(self.router, &packet.ethernet, &key, now));
        let (ports, case) = inferred.map_or_else(Default::default, |it| (it.ports, it.case.index() as u32));
        let certainty = inferred.map_or(Certainty::Certain, |Inference { certainty, .. }| certainty);
        let links = self.links.len() / 2;
        let name =
            |port: Option<PortIndex>| port.filter(|port| port.index() < links).map_or(0, |port| port.0 + 1);
        let (input, output) = (name(ports.input), name(ports.output));
        let era = self.era;
        let ports = &mut self.tracks[number as usize].ports;
        let EthernetAddresses { destination, source } = packet.ethernet;
        let before = addresses(ports.ethernet);
        if before != packet.ethernet && ports.ethernet != [0; 12] {
            let (key, from, to, time) = (packet.key, before, packet.ethernet, now);
            self.address_changes.push(AddressChange { key, from, to, time });
        }
        ports.ethernet[..6].copy_from_slice(&destination.0);
        ports.ethernet[6..].copy_from_slice(&source.0);
        ports.version = era;
        ports.flags &= ((1 << flag::CASE) - 1) & !(flag::AMBIGUOUS | flag::FORGOTTEN);
        ports.flags |= case << flag::CASE;
        ports.flags |= match certainty {
            Certainty::Ambiguous => flag::AMBIGUOUS,
            Certainty::Forgotten => flag::FORGOTTEN,
            _ => 0,
        };
        if [ports.input, ports.output] != [input, output] {
            self.set_ports(number, [input, output], now);
        }
    }

    /// Starts a new era: from now on packets may take other paths.
    #[cold]
    pub(super) fn begin_era(&mut self, now: Timestamp) {
        self.era += 1;
        let network = self.network.as_deref();
        let changes = network.into_iter().flat_map(|network| {
            network.iter().flat_map(|version| [version.from, version.from + network.transition_time()])
        });
        self.era_ends = changes.filter(|change| *change > now).min().unwrap_or(Timestamp(u64::MAX));
    }

    #[cold]
    pub(super) fn count_unusual(&mut self, flags: u32) {
        self.counters.ambiguous += u64::from(flags & flag::AMBIGUOUS != 0);
        self.counters.forgotten += u64::from(flags & flag::FORGOTTEN != 0);
        if flags >> flag::CASE != 0 {
            self.counters.cases[(flags >> flag::CASE) as usize] += 1;
        }
    }
}

/// Returns the capacities of a switch's ports; empty if the network does not have the switch.
pub(super) fn capacities(network: Option<&Versions>, router: RouterId) -> Vec<BitRate> {
    let Some(network) = network else { return Vec::new() };
    let topology = network.newest().state.topology();
    if router.index() >= topology.routers().len() {
        return Vec::new();
    }
    let ports = (0..topology.ports(router) as u16).map(PortIndex);
    ports.map(|port| topology.links()[topology.link_at(router, port).index()].rate).collect()
}
