//! Many senders, one receiver.

use thalweg_network::EndpointId;
use thalweg_wire::{Nanos, Timestamp};

use super::distinct;
use crate::workloads::random::Random;
use crate::workloads::sizes::FlowSizes;
use crate::workloads::{FlowStart, Workload, WorkloadError};

/// All senders start a flow to the receiver at the same time. When the last of these flows is complete, and after a
/// pause, they start again.
#[derive(Clone, Debug)]
pub struct Incast {
    senders: Box<[EndpointId]>,
    receiver: EndpointId,
    sizes: FlowSizes,
    pause: Nanos,
    size_draws: Random,
    /// The start of the round whose flows are being started.
    round_at: Timestamp,
    /// Rounds that have not started.
    rounds_left: u64,
    /// Senders of this round that have not started.
    to_start: usize,
    /// Flows of this round that are not complete.
    under_way: usize,
}

/// Options of the rounds.
#[derive(Clone, Debug)]
pub struct IncastOptions {
    /// Sizes, drawn for each flow.
    pub sizes: FlowSizes,
    /// The number of rounds.
    pub rounds: u64,
    /// The start of the first.
    pub from: Timestamp,
    /// The pause between the end of a round and the start of the next.
    pub pause: Nanos,
    /// The seed of the experiment.
    pub seed: u64,
    /// The index of this pattern among others of its kind in the experiment, so that they differ.
    pub index: u64,
}

impl Incast {
    /// Each of `senders` sends one flow to `receiver` in each round.
    ///
    /// # Errors
    /// If there are no senders, one is listed twice, or the receiver is among them; [`WorkloadError::Endless`] if flows
    /// do not end.
    pub fn new(
        senders: &[EndpointId],
        receiver: EndpointId,
        options: IncastOptions,
    ) -> Result<Incast, WorkloadError> {
        let IncastOptions { sizes, rounds, from, pause, seed, index } = options;
        distinct("senders", senders, 1)?;
        if senders.contains(&receiver) {
            return Err(WorkloadError::ToItself(receiver));
        }
        if !sizes.mean().is_finite() {
            return Err(WorkloadError::Endless);
        }
        let mut incast = Incast {
            senders: senders.into(),
            receiver,
            sizes,
            pause,
            size_draws: Random::new(seed, "incast sizes", index),
            round_at: from,
            rounds_left: rounds,
            to_start: 0,
            under_way: 0,
        };
        incast.begin_round(from);
        Ok(incast)
    }

    fn begin_round(&mut self, at: Timestamp) {
        if self.rounds_left > 0 {
            self.rounds_left -= 1;
            self.round_at = at;
            self.to_start = self.senders.len();
            self.under_way = self.senders.len();
        }
    }
}

impl Workload for Incast {
    fn next_start(&self) -> Option<Timestamp> {
        (self.to_start > 0).then_some(self.round_at)
    }

    fn start(&mut self) -> Option<FlowStart> {
        let at = self.next_start()?;
        let source = self.senders[self.senders.len() - self.to_start];
        self.to_start -= 1;
        let (bytes, dscp) = self.sizes.draw(&mut self.size_draws);
        Some(FlowStart { at, source, destination: self.receiver, bytes, dscp })
    }

    fn completed(&mut self, _flow: u32, at: Timestamp) {
        self.under_way = self.under_way.saturating_sub(1);
        if self.under_way == 0 && self.to_start == 0 {
            self.begin_round(at + self.pause);
        }
    }
}
