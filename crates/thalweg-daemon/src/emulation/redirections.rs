//! Redirected flows of the emulated network: carries out commands of isolation between two timeslots, and reads counters.
//!
//! Isolation uses the monotonic clock of this machine. A time of the emulation is converted at a reading: the emulated time since
//! then, divided by the pace, is the time that has passed.

use std::collections::BTreeMap;

use thalweg_control::isolate::message::{FlowCounters, QueueReading};
use thalweg_control::isolate::{Command, Input, Reading};
use thalweg_emulator::redirection::{FlowDirection, QueueTally, Redirected, Release};
use thalweg_experiment::mirror::run::MirroredRun;
use thalweg_wire::{Bytes, FlowKey, Nanos, Timestamp};

/// The redirected flows.
#[derive(Debug)]
pub(super) struct Redirections {
    /// Emulated seconds per second.
    pace: f64,
    flows: BTreeMap<FlowDirection, Flow>,
    /// Packets of flows that have been released.
    released_packets: u64,
    /// Packets of all flows at the last reading or release.
    packets: u64,
}

/// A redirected flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    key: FlowKey,
    /// When it was redirected, by the monotonic clock.
    since: Timestamp,
    /// When its first packet reached the scavenger queue, by the monotonic clock.
    first: Option<Timestamp>,
}

impl Redirections {
    /// Creates an empty state for an emulation of this pace.
    pub(super) fn new(pace: f64) -> Redirections {
        Redirections { pace, flows: BTreeMap::new(), released_packets: 0, packets: 0 }
    }

    /// Returns how many packets were redirected, up to the last reading or release.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Carries out a command at `now` of the monotonic clock. Returns the answer, if the command has one.
    pub(super) fn execute(
        &mut self,
        command: Command,
        network: &mut MirroredRun<'_>,
        now: Timestamp,
    ) -> Option<Input> {
        match command {
            Command::Redirect(id, key) => Some(match self.redirect(key, network, now) {
                Ok(()) => Input::Redirected(id),
                Err(error) => Input::Failed(id, error),
            }),
            Command::Restore(_, key) => {
                // If that fails, the next reading shows that it is missing.
                let _ = self.redirect(key, network, now);
                None
            }
            // Redirections do not expire: they end with the emulation.
            Command::Refresh(_) => None,
            Command::Release { id, key, if_packets } => Some(match self.release(&key, network, if_packets) {
                true => Input::Released(id),
                false => Input::StillSending(id),
            }),
        }
    }

    fn redirect(
        &mut self,
        key: FlowKey,
        network: &mut MirroredRun<'_>,
        now: Timestamp,
    ) -> Result<(), String> {
        let direction = network.flow(&key).map_err(|error| error.to_string())?;
        if let Some(other) = self.flows.get(&direction).filter(|flow| flow.key != key) {
            return Err(format!("the flow is already redirected as {}", other.key));
        }
        network.redirect(direction).map_err(|error| error.to_string())?;
        self.flows.entry(direction).or_insert(Flow { key, since: now, first: None });
        Ok(())
    }

    /// Returns whether the flow is no longer redirected.
    fn release(&mut self, key: &FlowKey, network: &mut MirroredRun<'_>, if_packets: Option<u64>) -> bool {
        let Ok(direction) = network.flow(key) else { return true };
        if self.flows.get(&direction).is_none_or(|flow| flow.key != *key) {
            return true;
        }
        match network.release(direction, if_packets) {
            Release::StillSending => return false,
            Release::Released(redirected) => self.released_packets += redirected.traffic.packets,
            Release::NotRedirected => {}
        }
        self.flows.remove(&direction);
        self.count(network);
        true
    }

    /// Reads the counters of all flows, and of the queues of the mirrored ports, at `now` of the monotonic clock.
    pub(super) fn read(&mut self, network: &mut MirroredRun<'_>, now: Timestamp) -> Reading {
        let (clock, emulated, pace) = (network.clock(), network.now(), self.pace);
        let mut flows = Vec::new();
        for (direction, flow) in &mut self.flows {
            let Some(Redirected { traffic, first }) = network.redirected(*direction) else { continue };
            if let (Some(first), None) = (first, flow.first) {
                let age = Nanos((emulated.since(first.time(clock)).0 as f64 / pace) as u64);
                flow.first = Some(now.saturating_sub(age).max(flow.since));
            }
            let (packets, bytes) = (traffic.packets, Bytes(traffic.bytes));
            flows.push((flow.key, FlowCounters { packets, bytes, first: flow.first }));
        }
        self.count(network);
        let queues = network.mirrored_queues();
        Reading { scavenger: queue_reading(queues.scavenger), primary: queue_reading(queues.primary), flows }
    }

    fn count(&mut self, network: &mut MirroredRun<'_>) {
        let directions = self.flows.keys();
        let active = directions.filter_map(|direction| network.redirected(*direction));
        self.packets = self.released_packets + active.map(|flow| flow.traffic.packets).sum::<u64>();
    }
}

fn queue_reading(tally: QueueTally) -> QueueReading {
    QueueReading {
        sent_packets: tally.sent.packets,
        sent_bytes: tally.sent.bytes,
        dropped_packets: tally.dropped,
        backlog: Some(Bytes(tally.backlog.bytes)),
    }
}
