//! A daemon with 1,000 links and 10,000 flows. Collectors are stand-ins that answer at once, so that only the dashboard costs; one
//! of them can be a real one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::ensure;
use thalweg_daemon::api::Server;
use thalweg_daemon::api::convert::live_status;
use thalweg_daemon::collectors::handle::reply_to;
use thalweg_daemon::collectors::{
    CollectorHandle, CollectorRequest, Description, Fleet, FlowChunk, Mailbox, PreparedCollector,
};
use thalweg_daemon::config::CollectorConfig;
use thalweg_daemon::daemon::Daemon;
use thalweg_daemon::event::CollectorState;
use thalweg_daemon::hub::Hub;
use thalweg_daemon::live::run_live;
use thalweg_http::access::{Access, AccessOptions, Limits};
use thalweg_linux::clock::realtime;
use thalweg_measure::collector::{FlowRate, FlowReport, LinkDirection, LinkReport, PortDirection};
use thalweg_measure::rates::Basis;
use thalweg_network::topology::shapes::{Tiers, leaf_spine};
use thalweg_network::{Forwarding, LinkState, NetworkState, Node, PortIndex, Topology, Versions};
use thalweg_sketch::Estimate;
use thalweg_wire::{BitRate, Bytes, EthernetAddresses, FlowKey, Protocol, Timestamp};

/// Leaves, spines and endpoints of each leaf: 600 links between routers and 400 to endpoints.
const LEAVES: u32 = 40;
const SPINES: u32 = 15;
pub(super) const ENDPOINTS: u32 = 10;

/// Links of the network.
pub(super) const LINKS: u32 = LEAVES * (SPINES + ENDPOINTS);

/// Returns the network's topology.
pub(super) fn topology() -> anyhow::Result<Topology> {
    Ok(leaf_spine(LEAVES, SPINES, ENDPOINTS, Tiers::default())?)
}

/// A daemon whose collectors are stand-ins, but for that of the first leaf if it is given.
pub(super) struct Network {
    pub(super) server: Server,
    daemon: Daemon,
    _fleet: Fleet,
}

impl Network {
    /// Starts a daemon. The flows enter at all leaves alike, or all at the first leaf if its collector is real.
    pub(super) fn start(
        listen: SocketAddr,
        flows: u32,
        real: Option<Arc<CollectorConfig>>,
    ) -> anyhow::Result<Network> {
        let topology = topology()?;
        let links = LinkState::new(&topology);
        let routers: Vec<_> = topology.router_ids().collect();
        let switches: Vec<(String, u16)> = routers
            .iter()
            .map(|&router| (topology.name(Node::Router(router)).to_owned(), topology.ports(router) as u16))
            .collect();
        let state = NetworkState::new(topology, links, Forwarding::ecmp(1))?;
        let daemon = Daemon::new(Some(Versions::new(state)), Hub::default());
        let mut fleet = Fleet::without_writers(daemon.fleet_parts());
        let per_leaf = if real.is_some() { 0 } else { flows / LEAVES };
        fleet.start(real.into_iter().map(PreparedCollector::open).collect())?;
        let mut handles = daemon.collectors();
        for (number, (name, ports)) in switches.into_iter().enumerate().skip(handles.len()) {
            // Each flow enters the network at one leaf.
            let flows = if number < LEAVES as usize { per_leaf } else { 0 };
            handles.push(stand_in(number as u32, &name, ports, flows)?);
        }
        daemon.set_collectors(handles);
        let limits = Limits { requests_per_second: 10_000, request_burst: 10_000, ..Limits::default() };
        let options = AccessOptions { listen, limits, ..AccessOptions::default() };
        let access = Arc::new(Access::new(&options)?);
        let parts = daemon.api_parts();
        let listener = Server::bind(&options)?;
        thread::Builder::new().name("live".into()).spawn({
            let parts = parts.clone();
            move || {
                let status = |now, packet_time| live_status(&parts, now, packet_time);
                run_live(&parts.live, &parts.collectors, status, || false);
            }
        })?;
        let server = Server::start(listener, parts, access, &options, true, None)?;
        ensure!(daemon.collectors().len() == routers.len(), "a collector for each switch");
        Ok(Network { server, daemon, _fleet: fleet })
    }

    /// Returns the collector of the first leaf.
    pub(super) fn first_collector(&self) -> CollectorHandle {
        self.daemon.collectors().swap_remove(0)
    }
}

/// Starts a collector that answers with loads and rates that change with time.
fn stand_in(number: u32, switch: &str, ports: u16, flows: u32) -> anyhow::Result<CollectorHandle> {
    let (handle, mailbox) = CollectorHandle::new(Description {
        name: switch.into(),
        switch: switch.into(),
        source: "bench".into(),
        is_live: true,
    });
    mailbox.set_state(CollectorState::Running);
    thread::Builder::new().name("stand-in".into()).spawn(move || serve(number, ports, flows, &mailbox))?;
    Ok(handle)
}

fn serve(number: u32, ports: u16, flows: u32, mailbox: &Mailbox) {
    loop {
        let Some(request) = mailbox.wait(Duration::from_secs(1)) else { continue };
        let now = realtime();
        match request {
            CollectorRequest::Links(reply) => {
                let sides = (0..ports).flat_map(|port| {
                    [PortDirection::Input, PortDirection::Output]
                        .map(|direction| LinkDirection { port: PortIndex(port), direction })
                });
                reply_to(&reply, now, sides.map(|side| link(number, side, now)).collect());
            }
            CollectorRequest::Flows(slots, reply) => {
                let flows_now =
                    (0..flows).filter(|flow| slots.contains(flow)).map(|flow| flow_at(number, flow, now));
                reply_to(&reply, now, FlowChunk { flows: flows_now.collect(), slots: flows });
            }
            CollectorRequest::Flow(key, reply) => {
                let flow = (0..flows).map(|flow| flow_at(number, flow, now)).find(|flow| flow.key == key);
                reply_to(&reply, now, flow);
            }
            _ => {}
        }
    }
}

/// A load that moves between idle and full, with a phase of its own for each link.
fn load(phase: u32, now: Timestamp) -> f64 {
    let seconds = now.0 as f64 / 1e9 % 3_600.0;
    0.5 + 0.5 * libm::sin(seconds * 0.7 + f64::from(phase) * 0.37)
}

fn link(number: u32, side: LinkDirection, now: Timestamp) -> LinkReport {
    let capacity = 10_000_000_000;
    let phase = number * 97 + u32::from(side.port.0) * 2 + u32::from(side.direction == PortDirection::Output);
    let utilisation = load(phase, now);
    let smoothed = utilisation * capacity as f64;
    LinkReport {
        side,
        capacity: BitRate(capacity),
        rate: Estimate::within(smoothed, smoothed * 0.97, smoothed * 1.03, 0.95),
        smoothed,
        peak: capacity as f64,
        utilisation,
        flows: 25,
        changed: now,
    }
}

fn flow_at(number: u32, flow: u32, now: Timestamp) -> FlowReport {
    let key = FlowKey::v4(0x0A00_0000 + number, 0x0A01_0000 + flow, 443, 51_000, Protocol::TCP);
    let value = load(number * 31 + flow, now) * 1e8;
    let rate = FlowRate {
        key,
        ethernet: EthernetAddresses::default(),
        rate: Estimate::within(value, value * 0.97, value * 1.03, 0.95),
        basis: Basis::SequenceNumbers,
        span: (Timestamp(now.0 - 500_000), now),
    };
    FlowReport {
        key,
        rate: Some(rate),
        input: Some(PortIndex((flow % 10) as u16)),
        output: Some(PortIndex((10 + flow % 15) as u16)),
        first: Timestamp(now.0 - 10_000_000_000),
        last: now,
        samples: u64::from(flow),
        sampled: Bytes(1_500 * u64::from(flow)),
        repeated: Bytes(0),
        reordered: 0,
        is_cheetah: flow.is_multiple_of(100),
    }
}
