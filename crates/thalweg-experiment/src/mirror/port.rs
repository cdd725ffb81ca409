//! An experiment as the packet source of one monitor port.

use std::convert::Infallible;

use thalweg_emulator::mirror::MirrorSource;
use thalweg_network::{Node, RouterId, Topology};
use thalweg_wire::{Batch, Source, SourceCounters};
use thiserror::Error;

use super::run::MirroredRun;
use crate::plan::Plan;
use crate::run::RunError;

/// The approximate number of frames in a batch.
const BATCH: usize = 256;

/// Slots after which a batch is returned even if it is small, so that the caller can do other things: about 5 ms of
/// emulated time at 10 Gbit/s.
const MAX_SLOTS: u32 = 4_096;

/// A monitor port of an emulated network as a packet source. The network advances when packets are requested.
pub struct MirrorPort<'a> {
    run: MirroredRun<'a>,
    router: RouterId,
}

/// Why the source cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FeedError {
    /// The experiment cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The router has no monitor port.
    #[error("the experiment has no [[mirror]] of router {router:?}{}", others(has))]
    NoMirror {
        /// The requested router.
        router: String,
        /// Routers with a monitor port.
        has: Vec<String>,
    },
}

fn others(has: &[String]) -> String {
    match has {
        [] => String::new(),
        has => format!(": there is one of {}", has.join(", ")),
    }
}

impl<'a> MirrorPort<'a> {
    /// The monitor port of `router`. `topology` is the plan's. Other monitor ports are ignored.
    ///
    /// # Errors
    /// If there is no such port, or the experiment cannot be run.
    pub fn new(plan: Plan, topology: &'a Topology, router: &str) -> Result<MirrorPort<'a>, FeedError> {
        let name = |router| topology.name(Node::Router(router));
        let Some(monitor) = plan.monitors.iter().find(|monitor| name(monitor.router) == router) else {
            let has = plan.monitors.iter().map(|monitor| name(monitor.router).to_owned()).collect();
            return Err(FeedError::NoMirror { router: router.to_owned(), has });
        };
        let router = monitor.router;
        Ok(MirrorPort { run: MirroredRun::of_ports(plan, topology, &[router])?, router })
    }

    /// Runs until there are some frames, or for a while without any.
    fn advance(&mut self) {
        let (mut frames, mut slots) = (0, 0);
        while frames < BATCH && slots < MAX_SLOTS && !self.run.is_over() {
            frames += self.run.slot();
            slots += 1;
        }
        if self.run.is_over() {
            self.source().end();
        }
    }

    fn source(&mut self) -> &mut MirrorSource<'a> {
        self.run.feed.source(self.router).expect("the feed has this port")
    }
}

impl Source for MirrorPort<'_> {
    type Error = Infallible;

    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Infallible> {
        self.advance();
        self.source().next_batch()
    }

    fn counters(&mut self) -> SourceCounters {
        self.source().counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;

    const EXPERIMENT: &str = "duration = \"2ms\"\n[topology]\nshape = \"rack\"\nendpoints = 4\n[[workload]]\n\
        pattern = \"all_to_all\"\nload = 0.8\nsizes = \"100KB\"\n[[mirror]]\nrouter = \"tor0\"\n";

    fn plan() -> Plan {
        Plan::new(&Experiment::parse(EXPERIMENT, "test").unwrap()).unwrap()
    }

    #[test]
    fn frames_arrive_in_order_of_time() {
        let topology = plan().topology;
        let mut feed = MirrorPort::new(plan(), &topology, "tor0").unwrap();
        let mut times = Vec::new();
        while let Ok(Some(batch)) = feed.next_batch() {
            times.extend(batch.frames.iter().map(|frame| frame.time));
        }
        assert!(times.len() > 500, "{}", times.len());
        assert!(times.is_sorted());
        assert_eq!(feed.counters().frames, times.len() as u64);
    }

    #[test]
    fn a_router_without_monitor_port_is_refused() {
        let topology = plan().topology;
        let error = MirrorPort::new(plan(), &topology, "tor1").err().unwrap();
        assert_eq!(
            error.to_string(),
            "the experiment has no [[mirror]] of router \"tor1\": there is one of tor0"
        );
    }
}
