//! Cheetah flows of which those above a threshold are moved to the scavenger queue.
//!
//! A flow is moved once it has sent more than R T within one of consecutive windows of T = 100 ms, as the detector of the
//! dissertation finds it, and stays there until it ends.

use thalweg_emulator::bottleneck::lane::PortFlow;
use thalweg_emulator::bottleneck::port::Queue;
use thalweg_emulator::bottleneck::round_flow::RoundFlow;
use thalweg_emulator::workloads::burst_process::PACKET_BYTES;
use thalweg_wire::BitRate;

use super::super::PORT;
use super::traffic::Cheetah;

/// T, in picoseconds.
const FLIGHT_PS: u64 = 100_000_000_000;

/// What happened to the flows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moved {
    /// Flows that began.
    pub(super) flows: u64,
    /// Those that were moved.
    pub(super) moved: u64,
    /// Packets that were queued, and the time that the flows lasted.
    pub(super) packets: u64,
    pub(super) lasted_ps: u64,
}

/// Flows one after the other.
#[derive(Clone, Debug)]
pub(super) struct Cheetahs {
    flows: std::vec::IntoIter<Cheetah>,
    current: Option<(Cheetah, RoundFlow)>,
    /// R T, in bytes.
    volume: u64,
    is_moved: bool,
    window: u64,
    bytes: u64,
    pub(super) moved: Moved,
}

impl Cheetahs {
    pub(super) fn new(flows: Vec<Cheetah>, threshold: BitRate) -> Cheetahs {
        let mut cheetahs = Cheetahs {
            flows: flows.into_iter(),
            current: None,
            volume: threshold.0 / 8 / 10,
            is_moved: false,
            window: 0,
            bytes: 0,
            moved: Moved::default(),
        };
        cheetahs.begin();
        cheetahs
    }

    fn begin(&mut self) {
        self.current = self.flows.next().map(|flow| {
            self.moved.flows += 1;
            self.moved.lasted_ps += flow.end_ps - flow.start_ps;
            (flow, RoundFlow::new(flow.rate, flow.round_trip, PORT))
        });
        (self.is_moved, self.window, self.bytes) = (false, 0, 0);
    }
}

impl PortFlow for Cheetahs {
    fn next_ps(&self) -> u64 {
        match &self.current {
            Some((flow, inner)) => (flow.start_ps + inner.next_ps()).min(flow.end_ps),
            None => u64::MAX,
        }
    }

    fn reaction_ps(&self) -> u64 {
        u64::MAX
    }

    fn act(&mut self, now_ps: u64, primary_bytes: impl FnOnce() -> u64) -> bool {
        let Some((flow, inner)) = &mut self.current else { return false };
        if now_ps >= flow.end_ps {
            self.begin();
            return false;
        }
        let since_ps = now_ps - flow.start_ps;
        if !inner.act(since_ps, primary_bytes) {
            return false;
        }
        if since_ps / FLIGHT_PS != self.window {
            (self.window, self.bytes) = (since_ps / FLIGHT_PS, 0);
        }
        self.bytes += u64::from(PACKET_BYTES);
        if !self.is_moved && self.bytes > self.volume {
            self.is_moved = true;
            self.moved.moved += 1;
        }
        true
    }

    fn queue(&self, queue: Queue) -> Queue {
        match self.is_moved {
            true => Queue::Scavenger,
            false => queue,
        }
    }

    fn keeps_queue(&self) -> bool {
        false
    }

    fn was_queued(&mut self, queued: bool) {
        self.moved.packets += u64::from(queued);
        if let Some((_, inner)) = &mut self.current {
            inner.was_queued(queued);
        }
    }

    fn left(&mut self, _at_ps: u64) {}
}

#[cfg(test)]
mod tests {
    use thalweg_emulator::bottleneck::lane::Lane;
    use thalweg_emulator::bottleneck::port::{Origin, Port};
    use thalweg_emulator::schemes::scavenger::ScavengerConfig;
    use thalweg_wire::Nanos;

    use super::*;

    const SECOND_PS: u64 = 1_000_000_000_000;

    #[test]
    fn flows_above_the_threshold_are_moved_and_all_are_counted() {
        let flow = |start: u64, mbps: u64| Cheetah {
            start_ps: start * SECOND_PS,
            end_ps: (start + 2) * SECOND_PS,
            rate: BitRate(mbps * 1_000_000),
            round_trip: Nanos::from_millis(10),
        };
        let flows = vec![flow(0, 100), flow(3, 500), flow(5, 90)];
        let port = Port::new(PORT, &ScavengerConfig::default()).unwrap();
        let mut lane = Lane::new(port, Cheetahs::new(flows, BitRate(200_000_000)), Queue::Primary);
        lane.run_until(8 * SECOND_PS);
        let moved = lane.flow().moved;
        assert_eq!((moved.flows, moved.moved, moved.lasted_ps), (3, 1, 6 * SECOND_PS));
        assert_eq!(moved.packets, lane.tally(Origin::Flow).offered);
        // 2 s of each rate, less the slow start.
        let full = 2.0 * 690e6 / 8.0 / 1_500.0;
        assert!((0.9 * full..full).contains(&(moved.packets as f64)), "{moved:?} {full}");
    }
}
