//! An experiment that is run for what all of its monitor ports send, and that others act upon while it runs.

use std::convert::Infallible;

use thalweg_emulator::Fabric;
use thalweg_emulator::core::monitor::Mirrored;
use thalweg_emulator::mirror::MirrorSource;
use thalweg_network::routing::ForwardingTable;
use thalweg_network::{EndpointId, Node, RouterId, Topology};
use thalweg_wire::{Batch, Source, Timestamp};

use super::plan::Plan;
use super::run::{Run, RunError};

/// All monitor ports of an emulated network. It goes on as it is told to.
pub struct MirrorFeeds<'a> {
    run: Run,
    ports: Vec<(RouterId, MirrorSource<'a>)>,
    /// Kept from slot to slot.
    copies: Vec<Mirrored>,
}

impl<'a> MirrorFeeds<'a> {
    /// The monitor ports of a plan. `topology` is the plan's.
    ///
    /// # Errors
    /// If the experiment cannot be run.
    pub fn new(plan: Plan, topology: &'a Topology) -> Result<MirrorFeeds<'a>, RunError> {
        let routers: Vec<RouterId> = plan.monitors.iter().map(|monitor| monitor.router).collect();
        let run = Run::new(plan)?;
        let source = |router| MirrorSource::new(topology, run.clock, topology.name(Node::Router(router)));
        let ports = routers.into_iter().map(|router| (router, source(router))).collect();
        Ok(MirrorFeeds { run, ports, copies: Vec::new() })
    }

    /// Emulated time.
    pub fn now(&self) -> Timestamp {
        self.run.clock.start_of(self.run.watched.now())
    }

    /// Whether the experiment has come to its end.
    pub fn is_over(&self) -> bool {
        self.run.is_over()
    }

    /// Goes on until `time`, or to the end of the experiment.
    pub fn run_until(&mut self, time: Timestamp) {
        let MirrorFeeds { run, ports, copies } = self;
        let until = run.clock.slot_at(time);
        while !run.is_over() && run.watched.now() < until {
            let Ok(()) = run.slot(|network, hosts| {
                network.take_mirrored(copies);
                for copy in copies.drain(..) {
                    if let Some((_, source)) = ports.iter_mut().find(|(router, _)| *router == copy.router) {
                        source.push(&copy, hosts.and_then(|hosts| hosts.segment(copy.packet.id())));
                    }
                }
                Ok::<(), Infallible>(())
            });
        }
        // Nobody asks for results; a run may last for days.
        run.completed.clear();
    }

    /// Gives `take` what each monitor port has sent since this was last asked, which may be nothing.
    pub fn take(&mut self, mut take: impl FnMut(RouterId, Batch<'_>)) {
        for (router, source) in &mut self.ports {
            if let Ok(Some(batch)) = source.next_batch() {
                take(*router, batch);
            }
        }
    }

    /// From now on a router goes by this table before shortest paths.
    pub fn set_forwarding(&mut self, router: RouterId, table: Option<ForwardingTable>) {
        self.run.watched.network.set_forwarding(router, table);
    }

    /// From now on `source` sends to this one of `destination`'s addresses. Nothing happens if nobody sends flows.
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
    use crate::emulate::Experiment;

    const EXPERIMENT: &str = "duration = \"4ms\"\n[topology]\nshape = \"leaf_spine\"\nleaves = 2\nspines = 2\n\
        endpoints = 1\n[[workload]]\npattern = \"stride\"\nstride = 1\nsizes = \"forever\"\n\
        [[mirror]]\nrouter = \"leaf0\"\n[[mirror]]\nrouter = \"leaf1\"\n";

    #[test]
    fn every_monitor_port_is_heard_and_hosts_take_another_address_when_told() {
        let plan = || Plan::new(&Experiment::parse(EXPERIMENT, "test").unwrap()).unwrap();
        let topology = plan().topology;
        let mut feeds = MirrorFeeds::new(plan(), &topology).unwrap();
        let (source, destination) = (EndpointId(0), EndpointId(1));
        // By router, the addresses of `destination` that packets were seen with.
        let mut seen: Vec<(RouterId, u8)> = Vec::new();
        let mut hear = |feeds: &mut MirrorFeeds<'_>| {
            seen.clear();
            feeds.take(|router, batch| {
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
        feeds.run_until(Timestamp(1_000_000));
        assert_eq!(hear(&mut feeds), [(RouterId(0), 0), (RouterId(1), 0)]);
        feeds.set_address(source, destination, 3);
        feeds.run_until(Timestamp(2_000_000));
        hear(&mut feeds);
        feeds.run_until(feeds.now() + Nanos::from_millis(1));
        assert_eq!(hear(&mut feeds), [(RouterId(0), 3), (RouterId(1), 3)]);
        assert!(!feeds.is_over());
        feeds.run_until(Timestamp(u64::MAX));
        assert!(feeds.is_over());
    }
}
