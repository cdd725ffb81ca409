//! Which packets of recorded traffic are replayed, and when: all of them, or a sample of stretches.
//!
//! A quick simulation replays one stretch of 1/1440 of the period in four: for an hour, 360 stretches of 2.5 s. They
//! follow each other without gaps, so that flows continue from one to the next. The loss that results has a standard
//! error, which follows from the differences between stretches ([`setup`](super::setup)). Silent stretches do not count.
//! Losses are rare and come together, so that the error is right only if there are many stretches: with 24 of 10 s it was
//! understated up to sevenfold.
//!
//! Memory: a group of 1,024 packets.

use thalweg_wire::Nanos;

use super::lane::PortFlow;
use super::setup::{LossTable, Setup, SetupError};
use crate::workloads::burst_process::Arrival;

/// Stretches per period.
const STRETCHES: u64 = 1_440;
/// One stretch in so many is replayed.
const QUICK_PART: u64 = 4;
/// Packets per group: they and the state of a lane fit the first-level cache.
const GROUP: usize = 1_024;
/// Picoseconds per nanosecond.
const NANO_PS: u64 = 1_000;

/// The packets of a replay.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The length of a stretch; without stretches that of all time.
    length_ps: u64,
    /// One stretch in so many is replayed.
    part: u64,
    /// The current stretch: its number and its start.
    stretch: u64,
    start_ps: u64,
    group: Vec<Arrival>,
}

impl Sample {
    /// All packets.
    pub fn all() -> Sample {
        Sample::of(u64::MAX, 1)
    }

    /// A quarter of the packets of a `period`.
    pub fn quick(period: Nanos) -> Sample {
        Sample::of((period.0 / STRETCHES).max(1) * NANO_PS, QUICK_PART)
    }

    fn of(length_ps: u64, part: u64) -> Sample {
        Sample { length_ps, part, stretch: 0, start_ps: 0, group: Vec::with_capacity(GROUP) }
    }

    /// The share of the traffic that is replayed.
    pub fn share(&self) -> f64 {
        1.0 / self.part as f64
    }

    /// Replays a packet if it is part of the sample, at the latest when the sample is [finished](Self::finish). Packets
    /// come in order of time, which counts from the start of the period.
    ///
    /// # Errors
    /// If packets are not in order.
    #[inline]
    pub fn add<F: PortFlow>(&mut self, packet: Arrival, setup: &mut Setup<F>) -> Result<(), SetupError> {
        let mut since_ps = packet.at_ps.wrapping_sub(self.start_ps);
        if since_ps >= self.length_ps {
            self.end(setup)?;
            self.stretch = packet.at_ps / self.length_ps;
            self.start_ps = self.stretch * self.length_ps;
            since_ps = packet.at_ps - self.start_ps;
        }
        if !self.is_replayed() {
            return Ok(());
        }
        let at_ps = self.stretch / self.part * self.length_ps + since_ps;
        self.group.push(Arrival { at_ps, ..packet });
        match self.group.len() {
            GROUP => self.replay(setup),
            _ => Ok(()),
        }
    }

    /// Replays what is left, and returns the result.
    ///
    /// # Errors
    /// If packets were not in order.
    pub fn finish<F: PortFlow>(mut self, setup: &mut Setup<F>) -> Result<LossTable, SetupError> {
        self.end(setup)?;
        Ok(setup.table(self.share()))
    }

    /// Whether the current stretch is the one of its part that is replayed.
    #[inline]
    fn is_replayed(&self) -> bool {
        self.stretch % self.part == self.part / 2
    }

    fn end<F: PortFlow>(&mut self, setup: &mut Setup<F>) -> Result<(), SetupError> {
        self.replay(setup)?;
        if self.part > 1 && self.is_replayed() {
            setup.end_stretch();
        }
        Ok(())
    }

    fn replay<F: PortFlow>(&mut self, setup: &mut Setup<F>) -> Result<(), SetupError> {
        let replayed = setup.replay(&self.group);
        self.group.clear();
        replayed
    }
}

#[cfg(test)]
mod tests {
    use thalweg_wire::BitRate;

    use super::*;
    use crate::bottleneck::SECOND_PS;
    use crate::bottleneck::round_flow::RoundFlow;
    use crate::bottleneck::setup::SetupConfig;
    use crate::workloads::burst_process::{BurstPackets, BurstProcess, Rounding};

    const GIGABIT: BitRate = BitRate(1_000_000_000);

    fn setup() -> Setup<RoundFlow> {
        let config = SetupConfig {
            port_rate: GIGABIT,
            buffer: 150_000,
            rates: [500, 900].map(|rate| BitRate(rate * 1_000_000)).to_vec(),
            round_trips: vec![Nanos::from_millis(10)],
            window: Nanos::from_millis(100),
        };
        Setup::new(&config, |rate, round_trip| RoundFlow::new(rate, round_trip, GIGABIT)).unwrap()
    }

    fn packets(seconds: u64) -> Vec<Arrival> {
        let process = BurstProcess::of_dissertation(15.0, BitRate(200_000_000));
        let packets = BurstPackets::new(&process, 1, Rounding::Up).unwrap();
        packets.take_while(|packet| packet.at_ps < seconds * SECOND_PS).collect()
    }

    fn sampled(mut sample: Sample, packets: &[Arrival]) -> LossTable {
        let mut setup = setup();
        packets.iter().for_each(|packet| sample.add(*packet, &mut setup).unwrap());
        sample.finish(&mut setup).unwrap()
    }

    #[test]
    fn all_packets_give_the_same_as_one_group() {
        let packets = packets(5);
        let mut whole = setup();
        whole.replay(&packets).unwrap();
        assert_eq!(sampled(Sample::all(), &packets), whole.table(1.0));
        assert!(whole.table(1.0).rows[1].dropped > 0);
    }

    /// A period of 36 s: stretches of 25 ms, of which those with the numbers 2, 6, .., 1438 are replayed.
    #[test]
    fn a_quick_sample_is_one_stretch_of_each_part() {
        let (packets, length_ps) = (packets(36), SECOND_PS / 40);
        let mut expected = setup();
        for part in 0..360 {
            let start_ps = (4 * part + 2) * length_ps;
            let within =
                packets.iter().filter(|packet| (start_ps..start_ps + length_ps).contains(&packet.at_ps));
            let moved = |packet: &Arrival| Arrival {
                at_ps: packet.at_ps - start_ps + part * length_ps,
                length: packet.length,
            };
            let within: Vec<Arrival> = within.map(moved).collect();
            expected.replay(&within).unwrap();
            if !within.is_empty() {
                expected.end_stretch();
            }
        }
        let (sample, expected) =
            (sampled(Sample::quick(Nanos::from_secs(36)), &packets), expected.table(0.25));
        assert_eq!(sample, expected);
        assert!(sample.rows[1].error > 0.0 && (sample.seconds - 9.0).abs() < 0.1, "{sample:?}");
    }

    #[test]
    fn packets_out_of_order_are_an_error() {
        for mut sample in [Sample::all(), Sample::quick(Nanos(STRETCHES))] {
            let (mut setup, length_ps) = (setup(), NANO_PS);
            // Both in stretch 2, which a quick sample replays.
            for since_ps in [5, 4] {
                sample.add(Arrival { at_ps: 2 * length_ps + since_ps, length: 64 }, &mut setup).unwrap();
            }
            assert!(matches!(sample.finish(&mut setup), Err(SetupError::Order { .. })));
        }
    }
}
