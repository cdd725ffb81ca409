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
    /// Packets of all flows at their last reading or release.
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
    /// Its packets in the sum of all flows.
    counted: u64,
}

impl Redirections {
    /// Creates an empty state for an emulation of this pace.
    pub(super) fn new(pace: f64) -> Redirections {
        Redirections { pace, flows: BTreeMap::new(), packets: 0 }
    }

    /// Returns how many packets were redirected, of each flow up to its last reading or release.
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
        self.flows.entry(direction).or_insert(Flow { key, since: now, first: None, counted: 0 });
        Ok(())
    }

    /// Returns whether the flow is no longer redirected.
    fn release(&mut self, key: &FlowKey, network: &mut MirroredRun<'_>, if_packets: Option<u64>) -> bool {
        let Ok(direction) = network.flow(key) else { return true };
        let Some(flow) = self.flows.get(&direction).filter(|flow| flow.key == *key) else { return true };
        match network.release(direction, if_packets) {
            Release::StillSending => return false,
            Release::Released(redirected) => self.packets += redirected.traffic.packets - flow.counted,
            Release::NotRedirected => {}
        }
        self.flows.remove(&direction);
        true
    }

    /// Reads the counters of these flows, and of the queues of the mirrored ports, at `now` of the monotonic clock.
    pub(super) fn read(
        &mut self,
        keys: &[FlowKey],
        network: &mut MirroredRun<'_>,
        now: Timestamp,
    ) -> Reading {
        let flows = keys.iter().map(|key| (*key, self.counters(key, network, now))).collect();
        let queues = network.mirrored_queues();
        Reading { scavenger: queue_reading(queues.scavenger), primary: queue_reading(queues.primary), flows }
    }

    fn counters(
        &mut self,
        key: &FlowKey,
        network: &mut MirroredRun<'_>,
        now: Timestamp,
    ) -> Option<FlowCounters> {
        let direction = network.flow(key).ok()?;
        let flow = self.flows.get_mut(&direction).filter(|flow| flow.key == *key)?;
        let Redirected { traffic, first } = network.redirected(direction)?;
        if let (Some(first), None) = (first, flow.first) {
            let age = network.now().since(first.time(network.clock()));
            let age = Nanos((age.0 as f64 / self.pace) as u64);
            flow.first = Some(now.saturating_sub(age).max(flow.since));
        }
        self.packets += traffic.packets - flow.counted;
        flow.counted = traffic.packets;
        Some(FlowCounters { packets: traffic.packets, bytes: Bytes(traffic.bytes), first: flow.first })
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
