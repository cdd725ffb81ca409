//! Workloads composed of workloads.

use thalweg_wire::Timestamp;

use super::{FlowStart, Workload};

/// Several workloads, with their flows merged in order of time; of simultaneous flows, those of the earlier part start
/// first.
///
/// 8 bytes per flow: its part, and its number there.
#[derive(Default)]
pub struct Merged {
    parts: Vec<Part>,
    flows: Vec<(u32, u32)>,
}

struct Part {
    workload: Box<dyn Workload + Send>,
    started: u32,
}

impl Merged {
    /// Merges the flows of all parts.
    pub fn new(parts: Vec<Box<dyn Workload + Send>>) -> Merged {
        let parts = parts.into_iter().map(|workload| Part { workload, started: 0 }).collect();
        Merged { parts, flows: Vec::new() }
    }

    /// The part that flow `flow` belongs to; `None` if it has not started.
    pub fn part_of(&self, flow: u32) -> Option<usize> {
        self.flows.get(flow as usize).map(|&(part, _)| part as usize)
    }

    fn next(&self) -> Option<(Timestamp, usize)> {
        let starts = self.parts.iter().enumerate();
        starts.filter_map(|(number, part)| Some((part.workload.next_start()?, number))).min()
    }
}

impl Workload for Merged {
    fn next_start(&self) -> Option<Timestamp> {
        self.next().map(|(at, _)| at)
    }

    fn start(&mut self) -> Option<FlowStart> {
        let (_, number) = self.next()?;
        let part = &mut self.parts[number];
        let flow = part.workload.start()?;
        self.flows.push((number as u32, part.started));
        part.started += 1;
        Some(flow)
    }

    fn completed(&mut self, flow: u32, at: Timestamp) {
        if let Some(&(part, own)) = self.flows.get(flow as usize) {
            self.parts[part as usize].workload.completed(own, at);
        }
    }
}

/// A workload limited to a number of flows and a time.
pub struct Limited<W> {
    workload: W,
    /// Flows that may still start.
    left: u64,
    until: Timestamp,
}

impl<W: Workload> Limited<W> {
    /// The first `flows` flows of `workload` that start before `until`.
    pub fn new(workload: W, flows: u64, until: Timestamp) -> Limited<W> {
        Limited { workload, left: flows, until }
    }
}

impl<W: Workload> Workload for Limited<W> {
    fn next_start(&self) -> Option<Timestamp> {
        self.workload.next_start().filter(|&at| self.left > 0 && at < self.until)
    }

    fn start(&mut self) -> Option<FlowStart> {
        self.next_start()?;
        self.left -= 1;
        self.workload.start()
    }

    fn completed(&mut self, flow: u32, at: Timestamp) {
        self.workload.completed(flow, at);
    }
}

impl<W: Workload + ?Sized> Workload for Box<W> {
    fn next_start(&self) -> Option<Timestamp> {
        (**self).next_start()
    }

    fn start(&mut self) -> Option<FlowStart> {
        (**self).start()
    }

    fn completed(&mut self, flow: u32, at: Timestamp) {
        (**self).completed(flow, at);
    }
}
