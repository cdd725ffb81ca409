//! Flows that are known in advance.

use thalweg_wire::Timestamp;

use crate::workloads::{FlowStart, Workload};

/// Flows in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    flows: Box<[FlowStart]>,
    next: usize,
}

impl Schedule {
    /// Sorts these flows by time. Simultaneous flows keep their order.
    pub fn new(mut flows: Vec<FlowStart>) -> Schedule {
        flows.sort_by_key(|flow| flow.at);
        Schedule { flows: flows.into(), next: 0 }
    }

    /// All flows, started or not.
    pub fn flows(&self) -> &[FlowStart] {
        &self.flows
    }
}

impl Workload for Schedule {
    fn next_start(&self) -> Option<Timestamp> {
        self.flows.get(self.next).map(|flow| flow.at)
    }

    fn start(&mut self) -> Option<FlowStart> {
        let flow = *self.flows.get(self.next)?;
        self.next += 1;
        Some(flow)
    }

    fn completed(&mut self, _flow: u32, _at: Timestamp) {}
}
