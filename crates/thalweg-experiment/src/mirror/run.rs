//! An experiment with a feed of its monitor ports, which others control while it runs.

use std::convert::Infallible;

use thalweg_emulator::mirror::{MirrorFeed, UnknownFlow, flow_of};
use thalweg_emulator::redirection::{FlowDirection, QueueTallies, RedirectError, Redirected, Release};
use thalweg_emulator::{Fabric, SlotClock};
use thalweg_network::routing::ForwardingTable;
use thalweg_network::{EndpointId, LinkState, RouterId, Topology};
use thalweg_wire::{Batch, FlowKey, Protocol, Timestamp};

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

    /// The slot clock.
    pub fn clock(&self) -> SlotClock {
        self.run.clock
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

    /// Returns the flow whose packets have this 5-tuple at monitor ports. It need not exist yet or any more.
    ///
    /// # Errors
    /// If no flow can have this 5-tuple.
    pub fn flow(&self, key: &FlowKey) -> Result<FlowDirection, UnknownFlow> {
        let flow = flow_of(&self.run.plan.topology, key)?;
        let watched = &self.run.watched;
        let is_tcp = self.run.traffic.hosts.is_some() && !watched.is_without_transport(flow.flow);
        match is_tcp == (key.protocol == Protocol::TCP) {
            true => Ok(flow),
            false => Err(UnknownFlow::Protocol(key.protocol)),
        }
    }

    /// Redirects a flow to the scavenger queues of all routers. If it is redirected already, its counters stay.
    ///
    /// # Errors
    /// If the scheme has no scavenger queue, or too many flows are redirected.
    pub fn redirect(&mut self, flow: FlowDirection) -> Result<(), RedirectError> {
        self.run.watched.network.redirect(flow)
    }

    /// Releases a flow. With `if_packets` only if exactly this many of its packets were redirected and none of them is queued.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn release(&mut self, flow: FlowDirection, if_packets: Option<u64>) -> Release {
        self.run.watched.network.release(flow, if_packets)
    }

    /// Returns what was redirected of a flow; `None` if it is not redirected.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn redirected(&mut self, flow: FlowDirection) -> Option<Redirected> {
        self.run.watched.network.redirected(flow)
    }

    /// Returns the sums of both queues over all mirrored ports. They are zero if the scheme has no scavenger queue.
    pub fn mirrored_queues(&mut self) -> QueueTallies {
        let Run { plan, watched, .. } = &mut self.run;
        let mut sum = QueueTallies::default();
        for monitor in &plan.monitors {
            for &port in &monitor.ports {
                sum += watched.network.queue_tallies(monitor.router, port).unwrap_or_default();
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use thalweg_emulator::hosts::FlowStatus;
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

    /// Runs the link of `examples/isolation` for 10 s. Redirects large flows 100 ms after their start if `isolates`, and releases
    /// them when they have ended. Returns the mean of the bytes in the primary queue, and the queues at the end.
    fn access_link(isolates: bool) -> (u64, QueueTallies) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/isolation/link.toml");
        let plan = || Plan::new(&Experiment::load(&path).unwrap()).unwrap();
        let topology = plan().topology;
        let mut run = MirroredRun::new(plan(), &topology).unwrap();
        let (step, steps) = (Nanos::from_millis(10), 1_000);
        let mut backlog = 0;
        let mut redirected: Vec<FlowDirection> = Vec::new();
        for _ in 0..steps {
            run.run_until(run.now() + step);
            run.deliver(|_, _| ());
            backlog += run.mirrored_queues().primary.backlog.bytes;
            if !isolates {
                continue;
            }
            let flows: Vec<_> = run.run.traffic.hosts.as_ref().unwrap().flows().collect();
            let now = run.now();
            let is_active = |flow: u32| flows.iter().any(|active| active.flow == flow);
            redirected.retain(|&flow| {
                let Redirected { traffic, .. } = run.redirected(flow).unwrap();
                is_active(flow.flow) || run.release(flow, Some(traffic.packets)) == Release::StillSending
            });
            let is_large = |flow: &&FlowStatus| {
                flow.bytes > 1_000_000 && now.since(flow.start) >= Nanos::from_millis(100)
            };
            for &FlowStatus { source, destination, flow, .. } in flows.iter().filter(is_large) {
                let flow = FlowDirection { source, destination, flow };
                if run.redirected(flow).is_none() {
                    run.redirect(flow).unwrap();
                    redirected.push(flow);
                }
            }
        }
        (backlog / steps, run.mirrored_queues())
    }

    #[test]
    fn isolation_of_large_flows_shortens_the_queue_of_all_others() {
        let (without, _) = access_link(false);
        let (with, queues) = access_link(true);
        assert!(queues.scavenger.sent.bytes > 10_000_000, "{queues:?}");
        assert!(queues.primary.sent.bytes > 10_000_000, "{queues:?}");
        assert!(with < without / 4, "{with} and {without} bytes");
    }
}
