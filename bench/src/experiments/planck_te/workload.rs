//! Traffic patterns (Planck, section 7.1).

use thalweg_emulator::workloads::patterns::{Each, Schedule, Shuffle, ShuffleOptions};
use thalweg_emulator::workloads::random::Random;
use thalweg_emulator::workloads::sizes::{FlowSizes, Sizes};
use thalweg_emulator::workloads::{FlowStart, Workload, WorkloadError};
use thalweg_network::EndpointId;
use thalweg_wire::{Bytes, Nanos, Timestamp};

/// Concurrent flows start within this time.
const WITHIN: Nanos = Nanos::from_millis(1);

/// A workload of section 7.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Host i sends to host i + n/2: stride(8) with 16 hosts. All flows cross the core.
    Stride,
    /// Every host sends one flow and receives one.
    RandomBijection,
    /// Every host sends to a random other one.
    Random,
    /// Every host sends to all others in random order, two at a time.
    Shuffle,
    /// For tests: the first host and its neighbour send to the first two of the last rack.
    #[cfg(test)]
    TwoFlows,
    /// For tests: stride pairs, each with one flow of `bytes` and a new one of an eighth of that every 3 ms meanwhile.
    #[cfg(test)]
    LongAndShort,
}

impl Pattern {
    /// The patterns of figure 14.
    pub(super) const FIGURE: [Pattern; 4] =
        [Pattern::Stride, Pattern::Shuffle, Pattern::RandomBijection, Pattern::Random];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Pattern::Stride => "stride(8)",
            Pattern::RandomBijection => "random bijection",
            Pattern::Random => "random",
            Pattern::Shuffle => "shuffle",
            #[cfg(test)]
            Pattern::TwoFlows => "two flows",
            #[cfg(test)]
            Pattern::LongAndShort => "long and short flows",
        }
    }

    /// Returns the flows of `bytes` each among this many hosts, from `begin` on.
    ///
    /// # Errors
    /// If there are not enough hosts.
    pub(super) fn flows(
        self,
        hosts: usize,
        bytes: Bytes,
        begin: Timestamp,
        seed: u64,
    ) -> Result<Box<dyn Workload>, WorkloadError> {
        let endpoints: Vec<EndpointId> = (0..hosts as u16).map(EndpointId).collect();
        let sizes = FlowSizes::of(Sizes::Fixed(bytes.0))?;
        let each = Each { sizes: sizes.clone(), at: begin, apart: Nanos::ZERO, seed, index: 0 };
        let schedule = match self {
            Pattern::Stride => Schedule::stride(&endpoints, hosts / 2, &each)?,
            Pattern::RandomBijection => Schedule::random_bijection(&endpoints, &each)?,
            Pattern::Random => Schedule::random(&endpoints, &each)?,
            #[cfg(test)]
            Pattern::TwoFlows => {
                let flow = |number: u16| FlowStart {
                    at: begin,
                    source: EndpointId(number),
                    destination: EndpointId(hosts as u16 - 2 + number),
                    bytes: bytes.0,
                    dscp: 0,
                };
                Schedule::new(vec![flow(0), flow(1)])
            }
            #[cfg(test)]
            Pattern::LongAndShort => {
                let flow = |host: u16, number: u64| FlowStart {
                    at: begin + Nanos::from_millis(3 * number),
                    source: EndpointId(host),
                    destination: EndpointId((host + hosts as u16 / 2) % hosts as u16),
                    bytes: if number == 0 { bytes.0 } else { bytes.0 / 8 },
                    dscp: 0,
                };
                let of_host = |host| (0..12).map(move |number| flow(host, number));
                Schedule::new((0..hosts as u16).flat_map(of_host).collect())
            }
            Pattern::Shuffle => {
                let options = ShuffleOptions { sizes, at_once: 2, from: begin, seed, index: 0 };
                return Ok(Box::new(Shuffle::new(&endpoints, options)?));
            }
        };
        Ok(Box::new(spread(&schedule, seed)))
    }
}

/// Delays each flow slightly, because processes do not start in the same microsecond.
fn spread(schedule: &Schedule, seed: u64) -> Schedule {
    let mut random = Random::new(seed, "starts", 0);
    let later = |flow: &FlowStart| FlowStart { at: flow.at + Nanos(random.below(WITHIN.0)), ..*flow };
    Schedule::new(schedule.flows().iter().map(later).collect())
}
