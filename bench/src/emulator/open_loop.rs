//! A network under random load, and its run time.

use std::time::Instant;

use thalweg_emulator::core::blueprint::Blueprint;
use thalweg_emulator::core::parallel::{Driver, Pace, Run};
use thalweg_emulator::network::ForScheme;
use thalweg_emulator::router::{Router, Routing};
use thalweg_emulator::schemes::list::Scheme;
use thalweg_emulator::workloads::open_loop::{
    Destinations, PacketKind, PacketMix, PoissonSenders, Rack, Racks,
};
use thalweg_emulator::{Slot, router};
use thalweg_network::topology::shapes::{self, Tiers};
use thalweg_network::{LinkSpec, RouterId, Topology};
use thalweg_wire::{BitRate, Nanos};

use crate::clock::Stopwatch;

/// Racks, isolated or connected by an aggregation switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouterPorts {
    pub(super) racks: u32,
    endpoints: u32,
    connected: bool,
}

/// Returns isolated racks.
pub(super) const fn isolated(racks: u32, endpoints: u32) -> RouterPorts {
    RouterPorts { racks, endpoints, connected: false }
}

/// Returns racks connected by an aggregation switch.
pub(super) const fn racks(racks: u32, endpoints: u32) -> RouterPorts {
    RouterPorts { racks, endpoints, connected: true }
}

/// A case to measure.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) scheme: Scheme,
    pub(super) shape: RouterPorts,
    pub(super) load: f64,
    pub(super) cores: usize,
}

/// The result of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Delivered packets.
    pub(super) packets: u64,
    /// CPU time on one core, wall time on several, in nanoseconds.
    pub(super) nanos: f64,
    pub(super) dropped: u64,
}

impl Case {
    pub(super) fn endpoints(&self) -> u32 {
        self.shape.racks * self.shape.endpoints
    }

    fn topology(&self) -> anyhow::Result<Topology> {
        let access = LinkSpec { rate: BitRate(10_000_000_000), delay: Nanos::ZERO, ..LinkSpec::default() };
        let uplink =
            LinkSpec { rate: BitRate(100_000_000_000), delay: Nanos::from_micros(5), ..LinkSpec::default() };
        let RouterPorts { racks, endpoints, connected } = self.shape;
        Ok(if connected {
            shapes::racks(racks, endpoints, Tiers { access, uplink })?
        } else {
            shapes::isolated_racks(racks, endpoints, access)?
        })
    }

    /// Returns the mix of packets for the scheme: flows of many sizes, eight priorities, or ECN-capable.
    fn mix(&self) -> anyhow::Result<PacketMix> {
        let ecn = 0b10;
        let kinds: Vec<(PacketKind, f64)> = match self.scheme {
            Scheme::PFabric(_) => (0..256u32)
                .map(|n| (PacketKind { length: 1_538, traffic_class: 0, remaining: n * 40_000 }, 1.0))
                .collect(),
            Scheme::Priority(_) => (0..8)
                .map(|dscp| (PacketKind { length: 1_538, traffic_class: dscp << 2, remaining: 1_538 }, 1.0))
                .collect(),
            _ => vec![(PacketKind { length: 1_538, traffic_class: ecn, remaining: 1_538 }, 1.0)],
        };
        Ok(PacketMix::mixed(&kinds)?)
    }

    fn senders(&self, topology: &Topology, router: RouterId) -> anyhow::Result<PoissonSenders> {
        let destinations = match self.shape {
            RouterPorts { connected: true, .. } => Destinations::Leaving(0.2),
            RouterPorts { racks: 1, .. } => Destinations::Uniform,
            _ => Destinations::Leaving(0.0),
        };
        let first = topology.rack(router).next().expect("the router has endpoints");
        Ok(PoissonSenders::new(&Rack {
            first,
            endpoints: topology.rack_size(router),
            network: topology.endpoints().len(),
            destinations,
            load: self.load,
            slot_bytes: 1_538,
            mix: self.mix()?,
            seed: 1,
        })?)
    }
}

/// Runs a case once with about `packets` packets.
pub(super) fn measure(case: &Case, packets: u64) -> anyhow::Result<Rate> {
    let topology = case.topology()?;
    let per_slot = f64::from(case.endpoints()) * case.load;
    let slots = (packets as f64 / per_slot).ceil() as u64;
    let measured = case.scheme.apply(Measurement { case, topology: &topology, slots });
    measured.unwrap_or_else(|own| anyhow::bail!("{} is not a scheme of the emulator", own.name()))
}

struct Measurement<'a> {
    case: &'a Case,
    topology: &'a Topology,
    slots: u64,
}

impl ForScheme for Measurement<'_> {
    type Output = anyhow::Result<Rate>;

    fn with<R: Router + 'static>(
        self,
        make: impl Fn(Routing, router::RouterPorts<'_>) -> R + Sync,
    ) -> Self::Output {
        let Measurement { case, topology, slots } = self;
        let blueprint = Blueprint::new(topology, 1_500, 1);
        // The aggregation switch has the last index and runs on the first core.
        let assignment: Vec<usize> = (0..topology.routers().len())
            .map(|router| if router < case.shape.racks as usize { router % case.cores } else { 0 })
            .collect();
        let (mut shards, crossings) = blueprint.build_sharded(&assignment, make)?;
        let mut drivers = Vec::new();
        for core in 0..case.cores {
            let mine = topology
                .router_ids()
                .filter(|&router| assignment[router.index()] == core && topology.rack_size(router) > 0);
            let senders: anyhow::Result<Vec<_>> = mine.map(|router| case.senders(topology, router)).collect();
            drivers.push(Racks::new(senders?));
        }
        let nanos = match &mut shards[..] {
            [only] => {
                let stopwatch = Stopwatch::start();
                for _ in 0..slots {
                    drivers[0].slot(only);
                    only.step();
                }
                stopwatch.nanos()
            }
            several => {
                let run = Run {
                    topology,
                    clock: blueprint.clock,
                    crossings: &crossings,
                    events: &[],
                    until: Slot(slots),
                    pace: Pace::Virtual,
                };
                let started = Instant::now();
                run.run(several, &mut drivers, |_| ());
                started.elapsed().as_nanos() as f64
            }
        };
        let packets = drivers.iter().map(|racks| racks.delivered.packets).sum();
        let dropped = drivers.iter().map(|racks| racks.dropped).sum();
        Ok(Rate { packets, nanos, dropped })
    }
}
