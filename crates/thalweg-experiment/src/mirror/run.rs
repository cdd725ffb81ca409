//! An experiment with a feed of its monitor ports, which others control while it runs.

use std::convert::Infallible;

use thalweg_emulator::Fabric;
use thalweg_emulator::mirror::MirrorFeed;
use thalweg_network::routing::ForwardingTable;
use thalweg_network::{EndpointId, LinkState, RouterId, Topology};
use thalweg_wire::{Batch, Timestamp};

use crate::plan::Plan;
use crate::run::{Run, RunError};

/// An experiment with a feed of its monitor ports. Its owner advances it.
pub struct MirroredRun<'a> {
    run: Run,
    pub(super) feed: MirrorFeed<'a>,
}

impl<'a> MirroredRun<'a> {
    /// A run of a plan. `topology` is the plan's.
    ///
    /// # Errors
    /// If the experiment cannot be run.
    pub fn new(plan: Plan, topology: &'a Topology) -> Result<MirroredRun<'a>, RunError> {
        let routers: Vec<RouterId> = plan.monitors.iter().map(|monitor| monitor.router).collect();
        MirroredRun::of_ports(plan, topology, &routers)
    }

    /// A run of a plan with a feed of these routers' monitor ports only.
    pub(super) fn of_ports(
        plan: Plan,
        topology: &'a Topology,
        routers: &[RouterId],
    ) -> Result<MirroredRun<'a>, RunError> {
        let run = Run::new(plan)?;
        let feed = MirrorFeed::new(topology, run.clock, routers.iter().copied());
        Ok(MirroredRun { run, feed })
    }

    /// Emulated time.
    pub fn now(&self) -> Timestamp {
        self.run.clock.start_of(self.run.watched.now())
    }

    /// Whether the experiment has ended.
    pub fn is_over(&self) -> bool {
        self.run.is_over()
    }

    /// Runs until `time`, or to the end of the experiment.
    pub fn run_until(&mut self, time: Timestamp) {
        let until = self.run.clock.slot_at(time);
        while !self.run.is_over() && self.run.watched.now() < until {
            self.slot();
        }
        // No results are needed, and a run may last for days.
        self.run.completed.clear();
    }

    /// Runs one slot. Returns the number of packets that monitor ports sent in it.
    pub(super) fn slot(&mut self) -> usize {
        let MirroredRun { run, feed } = self;
        let mut packets = 0;
        let Ok(()) = run.slot(|network, hosts| {
            packets = feed.collect(network, |copy| hosts.and_then(|hosts| hosts.segment(copy.packet.id())));
            Ok::<(), Infallible>(())
        });
        packets
    }

    /// Gives `consumer` what each monitor port has sent since the last delivery, possibly nothing.
    pub fn deliver(&mut self, consumer: impl FnMut(RouterId, Batch<'_>)) {
        self.feed.deliver(consumer);
    }

    /// Returns which links are up.
    pub fn links(&self) -> &LinkState {
        self.run.watched.network.links()
    }

    /// Sets the forwarding table of a router. It has precedence over shortest paths.
    pub fn set_forwarding(&mut self, router: RouterId, table: Option<ForwardingTable>) {
        self.run.watched.network.set_forwarding(router, table);
    }

    /// Sets the address of `destination` that `source` uses. Without flows it has no effect.
    ///
    /// # Panics
    /// If there are no such endpoints.
    pub fn set_address(&mut self, source: EndpointId, destination: EndpointId, address: u8) {
        if let Some(hosts) = &mut self.run.traffic.hosts {
            hosts.set_address(source, destination, address);
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_wire::Nanos;
    use thalweg_wire::parse::Parser;

    use super::*;
    use crate::Experiment;

    const EXPERIMENT: &str = "duration = \"4ms\"\n[topology]\nshape = \"leaf_spine\"\nleaves = 2\nspines = 2\n\
        endpoints = 1\n[[workload]]\npattern = \"stride\"\nstride = 1\nsizes = \"forever\"\n\
        [[mirror]]\nrouter = \"leaf0\"\n[[mirror]]\nrouter = \"leaf1\"\n";

    #[test]
    fn every_monitor_port_is_read_and_hosts_change_addresses() {
        let plan = || Plan::new(&Experiment::parse(EXPERIMENT, "test").unwrap()).unwrap();
        let topology = plan().topology;
        let mut run = MirroredRun::new(plan(), &topology).unwrap();
        let (source, destination) = (EndpointId(0), EndpointId(1));
        // The addresses of `destination` in packets, by router.
        let mut seen: Vec<(RouterId, u8)> = Vec::new();
        let mut report = |run: &mut MirroredRun<'_>| {
            seen.clear();
            run.deliver(|router, batch| {
                for packet in batch.iter().filter_map(|frame| Parser::default().parse(&frame).ok()) {
                    let (endpoint, address) =
                        topology.endpoint_with_mac(packet.ethernet.destination).unwrap();
                    if endpoint == destination {
                        seen.push((router, address));
                    }
                }
            });
            seen.sort_unstable();
            seen.dedup();
            seen.clone()
        };
        run.run_until(Timestamp(1_000_000));
        assert_eq!(report(&mut run), [(RouterId(0), 0), (RouterId(1), 0)]);
        run.set_address(source, destination, 3);
        run.run_until(Timestamp(2_000_000));
        report(&mut run);
        run.run_until(run.now() + Nanos::from_millis(1));
        assert_eq!(report(&mut run), [(RouterId(0), 3), (RouterId(1), 3)]);
        assert!(!run.is_over());
        run.run_until(Timestamp(u64::MAX));
        assert!(run.is_over());
    }
}
