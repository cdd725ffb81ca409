//! A collector for each switch, fed by the switch's monitor port.

use std::sync::Arc;

use thalweg_emulator::hosts::Hosts;
use thalweg_emulator::mirror::MirrorFeed;
use thalweg_emulator::ports::monitor::Monitor;
use thalweg_emulator::{Network, SlotClock};
use thalweg_measure::collector::{
    AddressChange, Collector, CollectorOptions, LinkEvent, LinkRule, MonitorPort, Output,
};
use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::meter::intake::Intake;
use thalweg_network::{PortIndex, RouterId, Topology, Versions};
use thalweg_wire::parse::Parser;
use thalweg_wire::{BitRate, Bytes, HashSeed, Nanos, Packet, Timestamp};

/// Buffer of a monitor port: as small as it can be, two full-sized packets (Planck, section 9.2).
pub(super) const MONITOR_BUFFER: Bytes = Bytes(2 * 1_538);

/// When links are congested: from 70 % on, told again every millisecond as long as they are, since the controller forgets
/// what it has not been told for 3 ms.
pub(super) fn rule() -> LinkRule {
    LinkRule { upper: 0.7, lower: 0.6, repeat: Nanos::from_millis(1), flows: 64, ..LinkRule::default() }
}

/// The monitor ports that collectors read: one a switch, at the rate of its first port, with all ports mirrored.
pub(super) fn monitors(topology: &Topology) -> Vec<Monitor> {
    let monitor = |router| Monitor {
        router,
        ports: (0..topology.ports(router) as u16).map(PortIndex).collect(),
        rate: rate_of(topology, router),
        buffer: MONITOR_BUFFER,
    };
    topology.router_ids().map(monitor).collect()
}

fn rate_of(topology: &Topology, router: RouterId) -> BitRate {
    let ports = (0..topology.ports(router) as u16).map(PortIndex);
    let rates = ports.map(|port| topology.links()[topology.link_at(router, port).index()].rate);
    rates.max().unwrap_or_default()
}

/// What collectors have told, in the order of their switches.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Of which switch, and what.
    pub(super) events: Vec<(RouterId, LinkEvent)>,
    /// Flows that were seen to go another way.
    pub(super) changes: Vec<AddressChange>,
}

/// The collectors of a network.
pub(super) struct Collectors<'a> {
    feed: MirrorFeed<'a>,
    all: Vec<Station>,
    packets: Vec<Packet>,
    output: Output,
}

struct Station {
    intake: Intake,
    collector: Collector,
}

impl<'a> Collectors<'a> {
    /// One for each switch, that has seen nothing yet.
    pub(super) fn new(
        topology: &'a Topology,
        clock: SlotClock,
        network: &Arc<Versions>,
        rule: &LinkRule,
        seed: u64,
    ) -> anyhow::Result<Collectors<'a>> {
        let station = |router| {
            let options = CollectorOptions {
                router,
                flow_table: FlowTableOptions { capacity: 1 << 12, ..FlowTableOptions::default() },
                threshold: None,
                tracks: 1,
                monitor: Some(MonitorPort { rate: rate_of(topology, router), buffer: MONITOR_BUFFER }),
                rules: vec![rule.clone()],
                seed,
                ..CollectorOptions::default()
            };
            let intake = Intake::new(Parser::default(), HashSeed::new(0));
            Ok(Station { intake, collector: Collector::new(options, Some(Arc::clone(network)))? })
        };
        let all = topology.router_ids().map(station).collect::<anyhow::Result<_>>()?;
        let feed = MirrorFeed::new(topology, clock, topology.router_ids());
        Ok(Collectors { feed, all, packets: Vec::new(), output: Output::default() })
    }

    /// The network is another from now on.
    pub(super) fn set_network(&mut self, network: &Arc<Versions>) {
        self.all.iter_mut().for_each(|station| station.collector.set_network(Some(Arc::clone(network))));
    }

    /// Takes what monitor ports have sent. To be called each slot, as long as hosts know what the packets stand for.
    pub(super) fn take(&mut self, network: &mut dyn Network, hosts: &Hosts) {
        self.feed.collect(network, |copy| hosts.segment(copy.packet.id()));
    }

    /// Reads what has come, and tells.
    pub(super) fn read(&mut self, now: Timestamp, news: &mut News) {
        let Collectors { feed, all, packets, output } = self;
        feed.deliver(|router, batch| {
            let Station { intake, collector } = &mut all[router.index()];
            intake.take(&batch, packets);
            collector.update(packets, output);
            packets.clear();
            collector.advance(now, output);
            news.events.extend(output.events.drain(..).map(|event| (router, event)));
            news.changes.append(&mut output.address_changes);
            output.flows = Default::default();
        });
    }
}
