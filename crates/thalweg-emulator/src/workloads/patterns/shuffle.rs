//! Shuffle: everybody sends to everybody else.

use std::collections::VecDeque;

use thalweg_network::EndpointId;
use thalweg_wire::Timestamp;

use super::distinct;
use crate::workloads::random::Random;
use crate::workloads::sizes::FlowSizes;
use crate::workloads::{FlowStart, Workload, WorkloadError};

/// The largest number of endpoints: their orders take 2 bytes per pair, 128 MB.
pub const MAX_SHUFFLED: usize = 8192;

/// Each endpoint sends one flow to every other one in random order, a few at a time. When one completes, the next starts
/// (Planck, section 7.1, with two at a time; Hedera, NSDI 2010).
#[derive(Clone, Debug)]
pub struct Shuffle {
    endpoints: Box<[EndpointId]>,
    sizes: FlowSizes,
    size_draws: Random,
    /// The remaining receivers of each endpoint, the next one last, as indices of `endpoints`.
    to_send: Box<[Vec<u16>]>,
    /// Flows that may start: time, sender, receiver.
    ready: VecDeque<(Timestamp, u16, u16)>,
    /// The sender of each flow.
    senders: Vec<u16>,
}

/// Options of a shuffle.
#[derive(Clone, Debug)]
pub struct ShuffleOptions {
    /// Sizes, drawn for each flow.
    pub sizes: FlowSizes,
    /// Concurrent flows per endpoint.
    pub at_once: usize,
    /// The start of the first flows.
    pub from: Timestamp,
    /// The seed of the experiment.
    pub seed: u64,
    /// The index of this pattern among others of its kind in the experiment, so that they differ.
    pub index: u64,
}

impl Shuffle {
    /// Each of `endpoints` sends to each other one.
    ///
    /// # Errors
    /// If there are fewer than two endpoints or more than [`MAX_SHUFFLED`], one is listed twice, `at_once` is 0, or flows
    /// do not end.
    pub fn new(endpoints: &[EndpointId], options: ShuffleOptions) -> Result<Shuffle, WorkloadError> {
        let ShuffleOptions { sizes, at_once, from, seed, index } = options;
        distinct("endpoints", endpoints, 2)?;
        if endpoints.len() > MAX_SHUFFLED {
            return Err(WorkloadError::TooMany {
                role: "endpoints",
                given: endpoints.len(),
                most: MAX_SHUFFLED,
            });
        }
        if at_once == 0 {
            return Err(WorkloadError::TooFew { role: "flows at a time", given: 0, least: 1 });
        }
        if !sizes.mean().is_finite() {
            return Err(WorkloadError::Endless);
        }
        let mut orders = Random::new(seed, "shuffle orders", index);
        let places = 0..endpoints.len() as u16;
        let order = |own| {
            let mut order: Vec<u16> = places.clone().filter(|&other| other != own).collect();
            orders.shuffle(&mut order);
            order
        };
        let mut shuffle = Shuffle {
            to_send: places.clone().map(order).collect(),
            endpoints: endpoints.into(),
            sizes,
            size_draws: Random::new(seed, "shuffle sizes", index),
            ready: VecDeque::new(),
            senders: Vec::new(),
        };
        // The first flow of every endpoint, then the second of every endpoint, and so on.
        let waves = at_once.min(endpoints.len() - 1);
        (0..waves).flat_map(|_| places.clone()).for_each(|endpoint| shuffle.make_ready(endpoint, from));
        Ok(shuffle)
    }

    fn make_ready(&mut self, endpoint: u16, at: Timestamp) {
        let to = self.to_send[usize::from(endpoint)].pop();
        self.ready.extend(to.map(|to| (at, endpoint, to)));
    }
}

impl Workload for Shuffle {
    fn next_start(&self) -> Option<Timestamp> {
        self.ready.front().map(|&(at, ..)| at)
    }

    fn start(&mut self) -> Option<FlowStart> {
        let (at, endpoint, to) = self.ready.pop_front()?;
        self.senders.push(endpoint);
        let (bytes, dscp) = self.sizes.draw(&mut self.size_draws);
        let (source, destination) = (self.endpoints[usize::from(endpoint)], self.endpoints[usize::from(to)]);
        Some(FlowStart { at, source, destination, bytes, dscp })
    }

    fn completed(&mut self, flow: u32, at: Timestamp) {
        if let Some(&endpoint) = self.senders.get(flow as usize) {
            self.make_ready(endpoint, at);
        }
    }
}
