//! Planted flows: the schedule of each is exact to the nanosecond, so its kind follows from arithmetic.
//!
//! A planted flow is a TCP connection: handshake, data from one side in phases of evenly spaced segments of one length,
//! an acknowledgement for every second segment, FIN in both directions. Segments are full-sized, or shorter where R*T is
//! low, so that one is at most R*T/256. All times scale with T.

use thalweg_wire::TcpFlags;

use super::connection::{Connection, Segment, Side};
use crate::random::Random;

/// Maximum duration of a planted flow, in windows.
pub(super) const MAX_PLANTED_WINDOWS: u64 = 8;

/// Length of a full-sized IP packet.
const FULL_LENGTH: u64 = 1500;

/// The kind of a planted flow. A flow that moves more than R*T in some window is a cheetah.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlantedKind {
    /// Cheetah: 1.02 to 1.10 R*T in every window for 3 to 5 T.
    SteadyCheetah,
    /// Cheetah: 2 to 20 times R*T in every window for 1.5 to 2 T.
    FastCheetah,
    /// Cheetah that the published algorithm misses: 1.1 to 1.6 R*T within 0.8 T, around the end of the flow's first
    /// flight. A data segment comes first and a gap separates the halves. The flight therefore ends between them, whether
    /// it starts at the SYN or at the first long packet.
    StraddlingBurst,
    /// Cheetah: windows that double from 10 segments every T/4 as in slow start, up to 1.2 to 3 R*T per T.
    SlowStart,
    /// Near-miss: 0.90 to 0.95 R*T in every window for 3 to 5 T.
    SteadyNearMiss,
    /// Near-miss: 0.9 R*T in one burst of T/200 to T/20.
    LineRateBurst,
    /// Near-miss: two bursts of 0.6 R*T each, 1.1 to 1.3 T between them.
    TwoBursts,
}

use PlantedKind::{
    FastCheetah, LineRateBurst, SlowStart, SteadyCheetah, SteadyNearMiss, StraddlingBurst, TwoBursts,
};

impl PlantedKind {
    /// Kinds that are cheetahs.
    pub const CHEETAHS: [PlantedKind; 4] = [SteadyCheetah, StraddlingBurst, SlowStart, FastCheetah];
    /// Kinds that are near-misses.
    pub const NEAR_MISSES: [PlantedKind; 3] = [SteadyNearMiss, LineRateBurst, TwoBursts];

    /// Returns the name in the truth's first column.
    pub const fn name(self) -> &'static str {
        match self {
            SteadyCheetah => "steady-cheetah",
            FastCheetah => "fast-cheetah",
            StraddlingBurst => "straddling-burst",
            SlowStart => "slow-start",
            SteadyNearMiss => "steady-near-miss",
            LineRateBurst => "line-rate-burst",
            TwoBursts => "two-bursts",
        }
    }

    /// Whether flows of this kind move more than R*T in some window.
    pub const fn is_cheetah(self) -> bool {
        matches!(self, SteadyCheetah | FastCheetah | StraddlingBurst | SlowStart)
    }
}

/// The planted flows of a trace.
#[derive(Clone, Debug)]
pub(super) struct Planting {
    pub(super) seed: u64,
    pub(super) cheetahs: u64,
    pub(super) near_misses: u64,
    /// T in nanoseconds.
    pub(super) window_ns: u64,
    /// R*T in bytes.
    pub(super) threshold: u64,
}

/// Evenly spaced data segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Phase {
    /// Time of the first segment, relative to the flow's start.
    at: u64,
    /// Time between two segments.
    gap: u64,
    count: u64,
}

impl Phase {
    /// Returns the time just after the last segment and its acknowledgement.
    const fn end(&self) -> u64 {
        self.at + self.gap * self.count
    }
}

impl Planting {
    /// Returns the number of planted flows.
    pub(super) const fn flows(&self) -> u64 {
        self.cheetahs + self.near_misses
    }

    /// Returns the packets of all planted flows, and the duration of the longest, in nanoseconds.
    pub(super) fn totals(&self) -> (u64, u64) {
        let add = |(packets, longest): (u64, u64), flow: Planted| {
            (packets.saturating_add(flow.packets()), longest.max(flow.duration()))
        };
        (0..self.flows()).map(|number| self.flow(number)).fold((0, 0), add)
    }

    /// Returns planted flow `number`, always the same. Kinds are spread evenly over the numbers.
    pub(super) fn flow(&self, number: u64) -> Planted {
        let mut random = Random::for_item(self.seed, number);
        let kind = self.kind(number);
        let side = if random.chance(0.5) { Side::Client } else { Side::Server };
        let phases = self.phases(kind, &mut random);
        debug_assert!(phases.iter().all(|phase| phase.gap >= 2 && phase.count > 0));
        debug_assert!(phases.is_sorted_by(|a, b| a.end() < b.at));
        let planted = Planted {
            kind,
            sender: side,
            ip_length: self.segment_length() as u32,
            window_ns: self.window_ns,
            phases,
            step: Step::Syn,
            phase: 0,
            sent: 0,
            unacknowledged: 0,
        };
        debug_assert!(planted.duration() < MAX_PLANTED_WINDOWS * self.window_ns);
        planted
    }

    /// A flow is a cheetah if the cumulative number of cheetahs, rounded down, increases with it.
    fn kind(&self, number: u64) -> PlantedKind {
        let due =
            |number: u64| (u128::from(number) * u128::from(self.cheetahs) / u128::from(self.flows())) as u64;
        let cheetahs_before = due(number);
        if due(number + 1) > cheetahs_before {
            PlantedKind::CHEETAHS[(cheetahs_before % 4) as usize]
        } else {
            PlantedKind::NEAR_MISSES[((number - cheetahs_before) % 3) as usize]
        }
    }

    /// Returns the bytes of a data segment from the IP header on.
    const fn segment_length(&self) -> u64 {
        if self.threshold / 256 < FULL_LENGTH { self.threshold / 256 } else { FULL_LENGTH }
    }

    fn phases(&self, kind: PlantedKind, random: &mut Random) -> Vec<Phase> {
        let t = self.window_ns;
        let start = Step::DATA_AT_HUNDREDTHS * t / 100;
        match kind {
            SteadyCheetah => {
                vec![self.steady(random.between(1_020, 1_100), t * random.between(30, 50) / 10)]
            }
            SteadyNearMiss => {
                vec![self.steady(random.between(900, 950), t * random.between(30, 50) / 10)]
            }
            FastCheetah => {
                // Octaves of the ratio from 2 on are equally likely; the maximum is 20.
                let low = 2_000 << random.below(4);
                let ratio = (low + random.below(low)).min(20_000);
                vec![self.steady(ratio, t * random.between(15, 20) / 10)]
            }
            StraddlingBurst => {
                let half = random.between(1_100, 1_600) / 2;
                vec![
                    self.burst(start, t / 100, 1),
                    self.burst(t * 62 / 100, t * 35 / 100, half),
                    self.burst(t * 105 / 100, t * 35 / 100, half),
                ]
            }
            SlowStart => self.slow_start(start, random.between(1_200, 3_000)),
            LineRateBurst => vec![self.burst(start, random.between(t / 200, t / 20), 900)],
            TwoBursts => {
                let first = self.burst(start, t * random.between(10, 30) / 100, 600);
                let lull = t * random.between(110, 130) / 100;
                vec![first, self.burst(first.end() + lull, t * random.between(10, 30) / 100, 600)]
            }
        }
    }

    /// Returns `permille` thousandths of R*T in every window, for `span`.
    fn steady(&self, permille: u64, span: u64) -> Phase {
        let bytes_times_ns = u128::from(self.segment_length()) * u128::from(self.window_ns) * 1_000;
        let gap = (bytes_times_ns / (u128::from(permille) * u128::from(self.threshold))) as u64;
        Phase { at: Step::DATA_AT_HUNDREDTHS * self.window_ns / 100, gap, count: span / gap }
    }

    /// Returns `permille` thousandths of R*T, rounded down to whole segments but at least one, over `span`.
    fn burst(&self, at: u64, span: u64, permille: u64) -> Phase {
        let bytes = u128::from(self.threshold) * u128::from(permille) / 1_000;
        let count = ((bytes / u128::from(self.segment_length())) as u64).max(1);
        Phase { at, gap: (span / count).max(2), count }
    }

    /// Returns rounds of T/4, each half filled: 10 segments, 20, 40 and so on, then five rounds of the maximum.
    fn slow_start(&self, start: u64, permille: u64) -> Vec<Phase> {
        let bytes = u128::from(self.threshold) * u128::from(permille) / 4_000;
        let max = (bytes / u128::from(self.segment_length())) as u64;
        let growing = std::iter::successors(Some(10), |window| Some(window * 2)).take_while(|&w| w < max);
        let windows = growing.chain([max; 5]);
        let round = self.window_ns / 4;
        let phase = |(number, count): (u64, u64)| Phase {
            at: start + round * number,
            gap: (round / 2 / count).max(2),
            count,
        };
        (0..).zip(windows).map(phase).collect()
    }
}

/// An active planted flow.
#[derive(Clone, Debug)]
pub(super) struct Planted {
    pub(super) kind: PlantedKind,
    /// The sender of the data.
    pub(super) sender: Side,
    ip_length: u32,
    window_ns: u64,
    phases: Vec<Phase>,
    step: Step,
    phase: usize,
    /// Sent segments of this phase.
    sent: u64,
    unacknowledged: u8,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Syn,
    SynAck,
    Ack,
    Data,
    Fin,
    LastFin,
    Done,
}

impl Step {
    /// Start of the data, in hundredths of T, after the handshake.
    const DATA_AT_HUNDREDTHS: u64 = 3;
}

impl Planted {
    /// Returns the number of packets: handshake, data, acknowledgements, two FIN.
    pub(super) fn packets(&self) -> u64 {
        let data = self.phases.iter().map(|phase| phase.count).sum::<u64>();
        3 + data + data / 2 + 2
    }

    /// Returns the time from the first packet to the last.
    fn duration(&self) -> u64 {
        self.phases[self.phases.len() - 1].end() + 2 * (self.window_ns / 100)
    }

    /// Returns the next packet and its time relative to the flow's start.
    pub(super) fn next(&mut self, connection: &Connection) -> Option<(u64, Segment)> {
        let hundredth = self.window_ns / 100;
        let end = self.phases[self.phases.len() - 1].end();
        let (sender, receiver) = (self.sender, self.sender.other());
        let fin = TcpFlags::FIN | TcpFlags::ACK;
        let (at, from, flags, next) = match self.step {
            Step::Syn => (0, Side::Client, TcpFlags::SYN, Step::SynAck),
            Step::SynAck => (hundredth, Side::Server, TcpFlags::SYN | TcpFlags::ACK, Step::Ack),
            Step::Ack => (2 * hundredth, Side::Client, TcpFlags::ACK, Step::Data),
            Step::Data => return Some(self.next_data(connection)),
            Step::Fin => (end + hundredth, sender, fin, Step::LastFin),
            Step::LastFin => (end + 2 * hundredth, receiver, fin, Step::Done),
            Step::Done => return None,
        };
        self.step = next;
        Some((at, Segment { from, flags, payload_length: 0 }))
    }

    /// Returns a data segment, or half a gap after every second segment its acknowledgement.
    fn next_data(&mut self, connection: &Connection) -> (u64, Segment) {
        let phase = self.phases[self.phase];
        let packet = if self.unacknowledged == 2 {
            self.unacknowledged = 0;
            let acknowledgement =
                Segment { from: self.sender.other(), flags: TcpFlags::ACK, payload_length: 0 };
            (phase.at + (self.sent - 1) * phase.gap + phase.gap / 2, acknowledgement)
        } else {
            self.unacknowledged += 1;
            self.sent += 1;
            let payload_length = connection.payload_for(self.ip_length);
            let data = Segment { from: self.sender, flags: TcpFlags::ACK, payload_length };
            (phase.at + (self.sent - 1) * phase.gap, data)
        };
        if self.sent == phase.count && self.unacknowledged < 2 {
            self.phase += 1;
            self.sent = 0;
            if self.phase == self.phases.len() {
                self.step = Step::Fin;
            }
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_alternate_in_the_requested_numbers() {
        for (cheetahs, near_misses) in [(0, 5), (5, 0), (40, 40), (7, 100)] {
            let planting =
                Planting { seed: 0, cheetahs, near_misses, window_ns: 100_000_000, threshold: 625_000 };
            let kinds: Vec<PlantedKind> =
                (0..planting.flows()).map(|number| planting.flow(number).kind).collect();
            assert_eq!(kinds.iter().filter(|kind| kind.is_cheetah()).count() as u64, cheetahs);
            for kind in PlantedKind::CHEETAHS {
                let count = kinds.iter().filter(|&&other| other == kind).count() as u64;
                assert!(count == cheetahs / 4 || count == cheetahs.div_ceil(4));
            }
        }
    }

    #[test]
    fn planted_flows_fit_at_all_rate_thresholds() {
        for (window_ns, threshold) in
            [(1_000_000, 32_768), (100_000_000, 625_000), (3_000_000_000, 37_500_000_000)]
        {
            let planting = Planting { seed: 5, cheetahs: 40, near_misses: 30, window_ns, threshold };
            for number in 0..planting.flows() {
                let flow = planting.flow(number);
                assert!(flow.packets() > 5);
                assert!(flow.duration() < MAX_PLANTED_WINDOWS * window_ns);
            }
        }
    }
}
