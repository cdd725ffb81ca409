//! Time series of flows and queues, written while the experiment runs.
//!
//! | module | contents |
//! |---|---|
//! | `flows` | `flow_series`: which flows, when, and their rows |
//! | `queues` | `queue_series` |
//! | `classes` | classes of `queue_series` |
//! | `path_delay` | the time that packets of a flow take over an idle path |
//! | `output` | rows on their way to a file |
//!
//! Rows are in the order of emulated time. **Memory**: a row group of each file (131,072 rows), and 200 bytes per active
//! flow. With `largest`, the rows stay in memory until the end, because only then the largest flows are known; at most
//! [`MAX_KEPT_ROWS`](crate::plan::MAX_KEPT_ROWS), and what is more is counted as lost.

mod classes;
mod flows;
mod output;
mod path_delay;
mod queues;

use thalweg_emulator::hosts::Hosts;
use thalweg_emulator::workloads::compose::Merged;
use thalweg_emulator::{Network, Slot};
use thalweg_network::{LinkState, Node, Topology};

use crate::files::{Output, WriteError};
use crate::plan::Plan;
use crate::results::SeriesUse;
use flows::FlowSeries;
use queues::QueueSeries;

/// The time series of a run.
#[derive(Default)]
pub(crate) struct Series {
    flows: Option<FlowSeries>,
    queues: Option<QueueSeries>,
}

impl Series {
    /// Creates the files that the plan asks for.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub(crate) fn create(
        plan: &Plan,
        network: &mut dyn Network,
        hosts: Option<&mut Hosts>,
        output: Output<'_>,
    ) -> Result<Series, WriteError> {
        let flows = plan.flow_series.as_ref().zip(hosts);
        Ok(Series {
            flows: flows
                .map(|(wanted, hosts)| FlowSeries::create(plan, wanted, hosts, output))
                .transpose()?,
            queues: (plan.queue_series.as_ref())
                .map(|wanted| QueueSeries::create(plan, wanted, network, output))
                .transpose()?,
        })
    }

    /// Whether flows are sampled: then [`flows`](Series::flows) is called after each slot.
    #[inline]
    pub(crate) fn has_flows(&self) -> bool {
        self.flows.is_some()
    }

    /// Samples flows after a slot. `now` is the next slot.
    pub(crate) fn flows(&mut self, now: Slot, hosts: &mut Hosts, workloads: &Merged) {
        if let Some(flows) = &mut self.flows {
            flows.slot(now, hosts, workloads);
        }
    }

    /// The next slot in which [`queues`](Series::queues) has something to sample.
    pub(crate) fn due(&self) -> Slot {
        self.queues.as_ref().map_or(Slot(u64::MAX), QueueSeries::due)
    }

    /// Samples queues, if it is time.
    pub(crate) fn queues(&mut self, network: &mut dyn Network) {
        if let Some(queues) = self.queues.as_mut().filter(|queues| network.now() >= queues.due()) {
            queues.sample(network);
        }
    }

    /// Paths have changed.
    pub(crate) fn rewired(&mut self, links: &LinkState, hosts: Option<&mut Hosts>) {
        if let (Some(flows), Some(hosts)) = (&mut self.flows, hosts) {
            flows.rewired(links, hosts);
        }
    }

    /// Whether a file could not be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.flows.as_ref().is_some_and(FlowSeries::has_failed)
            || self.queues.as_ref().is_some_and(QueueSeries::has_failed)
    }

    /// Samples the rest, and completes the files.
    ///
    /// # Errors
    /// If a file could not be written, at any time.
    pub(crate) fn finish(
        self,
        network: &mut dyn Network,
        hosts: Option<&mut Hosts>,
    ) -> Result<Vec<SeriesUse>, WriteError> {
        let now = network.now();
        let flows = self.flows.zip(hosts).map(|(flows, hosts)| flows.finish(now, hosts));
        let queues = self.queues.map_or_else(Vec::new, |queues| queues.finish(network));
        flows.into_iter().chain(queues).collect()
    }
}

/// The name of a node, for many rows.
fn name(topology: &Topology, node: Node) -> std::sync::Arc<str> {
    topology.name(node).into()
}
