//! The monitor ports of all switches, and a collector behind each, on one thread.
//!
//! Frames are read as soon as the kernel has them ([`PromptSource`]), with the kernel's own times. A turn goes once over
//! all ports; between turns that found something the thread naps, so that frames that come one by one do not cost a
//! wake-up each; when all ports are silent it sleeps until one is not.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use thalweg_capture::live::prompt::wait_any;
use thalweg_capture::live::{LiveError, LiveOptions, PromptSource};
use thalweg_control::Pair;
use thalweg_control::decide::Observed;
use thalweg_control::decide::loads::LIGHT;
use thalweg_control::notices::observed;
use thalweg_lab::Lab;
use thalweg_measure::collector::{
    Collector, CollectorOptions, FlowRate, LinkRule, LinkSide, MonitorPort, Observation, Output, Way,
};
use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::meter::intake::Intake;
use thalweg_measure::rates::BurstOptions;
use thalweg_network::topology::Node;
use thalweg_network::{Case, NetworkState, PortIndex, RouterId, Topology, Versions};
use thalweg_wire::parse::Parser;
use thalweg_wire::{BitRate, Bytes, HashSeed, Nanos, Packet, Source, SourceCounters, Timestamp};

use super::error::ScenarioError;
use thalweg_daemon::daemon::wall_clock;

/// Between two turns that found something: what a frame waits at most beyond the wake-up.
const NAP: Duration = Duration::from_micros(50);

/// How late a silent port is against the clock.
const SILENCE: Nanos = Nanos::from_millis(2);

/// For each monitor port. 2,048 frames, a quarter of a second at 100 Mbit/s.
const RING: Bytes = Bytes(1 << 20);

/// Flows of a switch at a time: hosts times connections, with room.
const FLOWS: u32 = 4_096;

/// Frames of full size on the wire (1,538 bytes with preamble and gap) that a rate is derived from at least: some 0.9 ms
/// at 100 Mbit/s.
const FRAMES_A_BURST: u64 = 7;

/// All monitor ports of a lab.
pub(super) struct Monitors {
    all: Vec<Monitor>,
    network: Versions,
    packets: Vec<Packet>,
    /// Of the links.
    rate: BitRate,
}

struct Monitor {
    router: RouterId,
    source: PromptSource,
    intake: Intake,
    collector: Collector,
    output: Output,
}

/// Who hears what collectors find, as they find it.
pub(super) trait Listener {
    /// Packets that a switch has mirrored.
    fn packets(&mut self, router: RouterId, packets: &[Packet]);
    /// What its collector makes of them.
    fn found(&mut self, router: RouterId, output: &mut Output);
}

/// The time of one frame of full size at this rate: the least from which anything can be told.
pub(super) fn frame_time(rate: BitRate) -> Nanos {
    Nanos(1_538 * 8 * 1_000_000_000 / rate.0.max(1))
}

impl Monitors {
    /// Opens the monitor ports of a lab whose links have this rate.
    ///
    /// # Errors
    /// If one cannot be opened, or its collector not be made.
    pub(super) fn open(lab: &Lab, state: &NetworkState, rate: BitRate) -> Result<Monitors, ScenarioError> {
        let versions = Versions::new(state.clone());
        let network = Arc::new(versions.clone());
        let topology = lab.topology();
        let open = |router| -> Result<PromptSource, LiveError> {
            let interface = lab.monitor_interface(router).expect("a switch of the lab");
            PromptSource::open(&LiveOptions { ring_size: RING, ..LiveOptions::new(interface) })
        };
        let open_all = || topology.router_ids().map(open).collect::<Result<Vec<_>, _>>();
        let sources = lab.fabric().within(open_all)??;
        let monitor = |(router, source)| -> Result<Monitor, ScenarioError> {
            let options = options(topology, router, rate, lab.plan().monitor_buffer);
            let collector = Collector::new(options, Some(Arc::clone(&network)))?;
            let intake = Intake::new(Parser { peel_tunnels: false }, HashSeed::new(0));
            Ok(Monitor { router, source, intake, collector, output: Output::default() })
        };
        let all = topology.router_ids().zip(sources).map(monitor).collect::<Result<_, _>>()?;
        Ok(Monitors { all, network: versions, packets: Vec::new(), rate })
    }

    /// Measures what waits at all ports. Says whether there was anything.
    ///
    /// # Errors
    /// If a port cannot be read.
    pub(super) fn turn(&mut self, listener: &mut impl Listener) -> Result<bool, ScenarioError> {
        let mut found = false;
        for monitor in &mut self.all {
            while monitor.source.is_ready() {
                found = true;
                let Some(batch) = monitor.source.next_batch()? else { break };
                self.packets.clear();
                monitor.intake.take(&batch, &mut self.packets);
                listener.packets(monitor.router, &self.packets);
                monitor.collector.update(&self.packets, &mut monitor.output);
                listener.found(monitor.router, &mut monitor.output);
            }
        }
        Ok(found)
    }

    /// Lets time pass at ports that have been silent: links are idle then.
    pub(super) fn advance(&mut self, now: Timestamp, listener: &mut impl Listener) {
        let until = now.saturating_sub(SILENCE);
        for monitor in &mut self.all {
            if monitor.collector.clock() < until && !monitor.source.is_ready() {
                monitor.collector.advance(until, &mut monitor.output);
                listener.found(monitor.router, &mut monitor.output);
            }
        }
    }

    /// Until there may be something to measure: a nap after a turn that `found` something, else until a frame comes, for
    /// `patience` at most.
    ///
    /// # Errors
    /// If the kernel cannot be asked.
    pub(super) fn rest(&mut self, found: bool, patience: Nanos) -> std::io::Result<()> {
        if found {
            thread::sleep(NAP);
            return Ok(());
        }
        wait_any(self.all.iter_mut().map(|monitor| &mut monitor.source), patience).map(|_| ())
    }

    /// All traffic between pairs that is worth steering, as the switches of its sources see it.
    pub(super) fn traffic(&self, topology: &Topology) -> Vec<Observed> {
        let least = LIGHT * self.rate.0 as f64;
        let mut rates: Vec<FlowRate> = Vec::new();
        for Monitor { router, collector, .. } in &self.all {
            let own = |flow: &FlowRate| {
                let pair = Pair::of(topology, &flow.ethernet);
                flow.rate.value >= least
                    && pair.is_some_and(|(pair, _)| topology.router_of(pair.source) == *router)
            };
            rates.extend(collector.flows(0..collector.slots()).filter_map(|flow| flow.rate).filter(own));
        }
        observed(topology, &rates)
    }

    /// Tells all collectors that the network is another from now on.
    pub(super) fn set_network(&mut self, state: &Arc<NetworkState>) {
        // Refused only of a time before that of the last, or of switches with other names.
        if self.network.push(Arc::clone(state), wall_clock()).is_err() {
            self.network = Versions::new(Arc::clone(state));
        }
        let network = Arc::new(self.network.clone());
        self.all.iter_mut().for_each(|monitor| monitor.collector.set_network(Some(Arc::clone(&network))));
    }

    /// Has the collectors of these switches observe a pair.
    pub(super) fn observe(&mut self, routers: [RouterId; 2], observation: Observation) {
        for monitor in self.all.iter_mut().filter(|monitor| routers.contains(&monitor.router)) {
            // What it has no room for it reports nothing of.
            monitor.collector.observe(observation);
        }
    }

    /// Packets that were seen at switches which no route leads them by.
    pub(super) fn elsewhere(&self) -> u64 {
        let of_one = |monitor: &Monitor| monitor.collector.counters().rates.cases[Case::Elsewhere.index()];
        self.all.iter().map(of_one).sum()
    }

    /// What all ports have brought, and lost on the way to us.
    pub(super) fn counters(&mut self) -> SourceCounters {
        let mut sum = SourceCounters::default();
        for monitor in &mut self.all {
            let of_one = monitor.source.counters();
            sum.frames += of_one.frames;
            sum.kernel_drops += of_one.kernel_drops;
        }
        sum
    }
}

/// What the collector of a switch is to do, if links have this rate. Intervals are those of the defaults at 100 Mbit/s
/// and longer where frames take longer.
fn options(topology: &Topology, router: RouterId, rate: BitRate, buffer: Nanos) -> CollectorOptions {
    let frame = frame_time(rate);
    let uplink = |port: &PortIndex| matches!(topology.peer(router, *port).node, Node::Router(_));
    let ports = (0..topology.ports(router) as u16).map(PortIndex);
    let rule = LinkRule {
        // What leaves by a port is what the port's queue holds; no path leads round the link to a host.
        links: Some(ports.filter(uplink).map(|port| LinkSide { port, way: Way::Output }).collect()),
        spacing: Nanos(2 * frame.0),
        // A link that one flow fills is congested already, and nothing else tells that another has come.
        repeat: Nanos(4 * frame.0),
        ..LinkRule::default()
    };
    CollectorOptions {
        router,
        flow_table: FlowTableOptions {
            capacity: FLOWS,
            idle_timeout: Nanos::from_secs(5),
            ..FlowTableOptions::default()
        },
        threshold: None,
        tracks: 1,
        bursts: BurstOptions { gap: Nanos(2 * frame.0), longest: Nanos(FRAMES_A_BURST * frame.0) },
        monitor: Some(MonitorPort { rate, buffer: rate.amount_in(buffer) }),
        smoothing: Nanos(8 * frame.0),
        rules: vec![rule],
        seed: 0,
    }
}
