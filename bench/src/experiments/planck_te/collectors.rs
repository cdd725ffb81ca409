//! One collector per switch, reading the switch's monitor port.

use std::sync::Arc;

use thalweg_emulator::hosts::Hosts;
use thalweg_emulator::mirror::MirrorFeed;
use thalweg_emulator::ports::monitor::Monitor;
use thalweg_emulator::{Network, SlotClock};
use thalweg_measure::collector::{
    AddressChange, Collector, CollectorOptions, CongestionEvent, LinkRule, MonitorPort, Output,
};
use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::meter::intake::Intake;
use thalweg_network::{PortIndex, RouterId, Topology, Versions};
use thalweg_wire::parse::Parser;
use thalweg_wire::{BitRate, Bytes, HashSeed, Nanos, Packet, Timestamp};

/// Buffer of a monitor port: the smallest possible, two full-sized packets (Planck, section 9.2).
pub(super) const MONITOR_BUFFER: Bytes = Bytes(2 * 1_538);

/// Returns the congestion rule: 70 % utilisation, repeated every millisecond, because the controller forgets reports
/// after 3 ms.
pub(super) fn rule() -> LinkRule {
    LinkRule { upper: 0.7, lower: 0.6, repeat: Nanos::from_millis(1), flows: 64, ..LinkRule::default() }
}

/// Returns the monitor ports: one per switch, at the rate of its first port, with all ports mirrored.
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

/// Reports of the collectors, in the order of their switches.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// Events with their switches.
    pub(super) events: Vec<(RouterId, CongestionEvent)>,
    /// Address changes of flows.
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
    /// Creates one collector per switch.
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

    /// Replaces the network versions.
    pub(super) fn set_network(&mut self, network: &Arc<Versions>) {
        self.all.iter_mut().for_each(|station| station.collector.set_network(Some(Arc::clone(network))));
    }

    /// Reads the frames of the monitor ports. Call it every slot, while hosts still know the packets' data.
    pub(super) fn capture(&mut self, network: &mut dyn Network, hosts: &Hosts) {
        self.feed.collect(network, |copy| hosts.segment(copy.packet.id()));
    }

    /// Processes the frames and collects the reports.
    pub(super) fn process(&mut self, now: Timestamp, reports: &mut Reports) {
        let Collectors { feed, all, packets, output } = self;
        feed.deliver(|router, batch| {
            let Station { intake, collector } = &mut all[router.index()];
            intake.take(&batch, packets);
            collector.update(packets, output);
            packets.clear();
            collector.advance(now, output);
            reports.events.extend(output.events.drain(..).map(|event| (router, event)));
            reports.changes.append(&mut output.address_changes);
            output.flows = Default::default();
        });
    }
}
