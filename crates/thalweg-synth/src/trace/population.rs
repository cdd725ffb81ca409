//! Background traffic: connections and exchanges of datagrams that no detector may take for cheetahs.
//!
//! **Sizes** are those of [`FlowSizes`]. The 4,096 largest flows live as long as the trace nearly, as the large
//! flows of a minute of a backbone do; the rest arrive evenly over it and last milliseconds to seconds.
//!
//! **Shape of a flow.** TCP: handshake, a request, two data segments for every acknowledgement, FIN from both
//! sides. Connections too short for that are probes: an unanswered SYN, a refusal, a handshake broken off by
//! RST. UDP: question and answer, a download with a few packets back, or a conversation.
//!
//! **Pace.** After a packet of `b` bytes a flow is silent for at least `b / (0.8 R)`, whichever way the packet
//! went. So both directions together move at most `0.8 R*T` and one packet in a window of T, and as R*T is at
//! least 32 KiB that is below `0.85 R*T`. The direction of the data moves most of it, the other less than
//! half. Packets are due on an even grid, each up to half a step late, so that gaps are half to one and a half
//! steps; a step is at most [`MAX_STEP_NS`].

use thalweg_wire::{Protocol, TcpFlags};

use super::connection::{Connection, Segment, Side};
use super::flow_sizes::FlowSizes;
use super::options::Plan;
use crate::random::Random;

/// Flows, largest first, that live as long as the trace.
const LONG_LIVED_FLOWS: u64 = 4_096;
/// Longest step of a flow.
const MAX_STEP_NS: u64 = 2_048_000_000;
/// Longest IP packet.
const FULL_LENGTH: u64 = 1500;
/// Mean IP length of a large flow: two full packets and an acknowledgement.
const MEAN_LENGTH: u32 = 1_020;
/// Payload of the request that begins a connection whose data the server sends.
const REQUEST_LENGTH: u16 = 120;

/// Deals out background flows.
pub(super) struct Population {
    sizes: FlowSizes,
    duration_ns: u64,
    pace: Pace,
    long_lived: u64,
    /// Other flows.
    arrivals: u64,
    arrived: u64,
    /// Brings the ranks of arrivals in an order without a trend: coprime to their number.
    multiplier: u64,
}

/// A flow with its first packet's time, from the beginning of the trace.
pub(super) struct Arrival {
    pub(super) at: u64,
    pub(super) packets: u64,
    /// Time from one packet to the next, on average.
    pub(super) step: u64,
}

impl Population {
    /// The background flows of `plan`; `None` if it has none.
    pub(super) fn new(plan: &Plan, shape: Option<f64>) -> Option<Population> {
        if plan.background_flows == 0 {
            return None;
        }
        let pace = Pace::new(plan.rate);
        // At the full pace it would take three quarters of the duration.
        let largest = plan.duration_ns / 4 * 3 / pace.silence_after(MEAN_LENGTH);
        let sizes = FlowSizes::new(plan.background_flows, plan.background_packets, largest, shape);
        let long_lived = plan.background_flows.min(LONG_LIVED_FLOWS);
        let arrivals = plan.background_flows - long_lived;
        Some(Population {
            sizes,
            duration_ns: plan.duration_ns,
            pace,
            long_lived,
            arrivals,
            arrived: 0,
            multiplier: coprime_near_golden_ratio(arrivals),
        })
    }

    /// The long-lived flows, which must be dealt out first.
    pub(super) fn long_lived(&mut self, random: &mut Random) -> Vec<Arrival> {
        (0..self.long_lived)
            .map(|rank| {
                let packets = self.sizes.allot(rank);
                let gaps = (packets - 1).max(1);
                let span = (self.duration_ns / 32 * 31).min(gaps.saturating_mul(MAX_STEP_NS / 2));
                Arrival { at: random.below(self.duration_ns - span), packets, step: step(span, gaps) }
            })
            .collect()
    }

    /// The next of the other flows, in order of time: one in each of as many equal parts of the trace.
    pub(super) fn next_arrival(&mut self, random: &mut Random) -> Option<Arrival> {
        if self.arrived == self.arrivals {
            return None;
        }
        let rank = u128::from(self.arrived) * u128::from(self.multiplier) % u128::from(self.arrivals);
        let packets = self.sizes.allot(self.long_lived + rank as u64);
        let at = spread(self.arrived, self.arrivals, self.duration_ns / 32 * 31, random);
        self.arrived += 1;
        let gaps = (packets - 1).max(1);
        // Steps of 1 ms to 2 s, each octave as likely as another, but none lasts beyond a sixteenth of the
        // trace or its end.
        let natural = random.octave(11) * (MAX_STEP_NS >> 11);
        let room = (self.duration_ns - at).min(self.duration_ns / 16);
        Some(Arrival { at, packets, step: natural.min(step(room, gaps)) })
    }

    /// What an arrived flow does; `protocol` is TCP or UDP.
    pub(super) fn flow(&self, arrival: &Arrival, protocol: Protocol, random: &mut Random) -> Background {
        let exchange = match protocol {
            Protocol::UDP => Exchange::udp(arrival.packets, random),
            _ => Exchange::tcp(arrival.packets, random),
        };
        let Arrival { at: start, packets, step } = *arrival;
        Background { exchange, packets, sent: 0, start, step, pace: self.pace }
    }
}

/// The longest step with which a flow of so many gaps ends within `span`, its last packet half a step late.
const fn step(span: u64, gaps: u64) -> u64 {
    2 * span / (2 * gaps + 1)
}

/// Time of item `number` of `items`, somewhere in its own part of `span`.
pub(super) fn spread(number: u64, items: u64, span: u64, random: &mut Random) -> u64 {
    let edge = |number: u64| (u128::from(number) * u128::from(span) / u128::from(items)) as u64;
    edge(number) + random.below(edge(number + 1) - edge(number))
}

fn coprime_near_golden_ratio(modulus: u64) -> u64 {
    let golden = ((u128::from(modulus) * 0x9E37_79B9) >> 32) as u64;
    (golden.max(1)..).find(|&n| greatest_common_divisor(n, modulus) == 1).unwrap_or(1)
}

const fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// The limit of 0.8 R.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Nanoseconds for `2^16` bytes, rounded up.
    ns_per_64_kib: u64,
}

impl Pace {
    /// For R in bit/s.
    const fn new(rate: u64) -> Pace {
        let ns = (65_536 * 8 * 1_000_000_000u128 * 10).div_ceil(8 * rate as u128);
        Pace { ns_per_64_kib: ns as u64 }
    }

    /// Least time from a packet to the next.
    #[inline]
    const fn silence_after(self, bytes: u32) -> u64 {
        (bytes as u64 * self.ns_per_64_kib).div_ceil(65_536)
    }
}

/// What the two sides say to each other.
#[derive(Clone, Copy, Debug)]
enum Exchange {
    /// A connection whose data goes one way, in segments that make IP packets of `length`.
    Bulk { sender: Side, length: u16 },
    /// A connection whose data goes one way, in short segments.
    Interactive { sender: Side },
    /// A question of the client and an answer of the server, both UDP.
    Question,
    /// Datagrams of the server that make IP packets of `length`, and every fourth packet a short one back.
    Download { length: u16 },
    /// Datagrams of `length` in turn.
    Conversation { length: u16 },
}

impl Exchange {
    /// Small connections are as often interactive as not, large ones seldom. Most fill Ethernet's 1500 bytes;
    /// some go through tunnels, some keep to the 576 of old.
    fn tcp(packets: u64, random: &mut Random) -> Exchange {
        let sender = if random.chance(0.8) { Side::Server } else { Side::Client };
        if random.chance(if packets > 40 { 0.15 } else { 0.5 }) {
            return Exchange::Interactive { sender };
        }
        let length = match random.below(20) {
            0 => 576,
            1..4 => random.between(1_400, 1_492),
            _ => FULL_LENGTH,
        };
        Exchange::Bulk { sender, length: length as u16 }
    }

    fn udp(packets: u64, random: &mut Random) -> Exchange {
        match packets {
            0..=2 => Exchange::Question,
            _ if random.chance(0.6) => Exchange::Download { length: random.between(1_228, 1_400) as u16 },
            _ => Exchange::Conversation { length: random.between(100, 260) as u16 },
        }
    }

    /// The side that most bytes come from.
    const fn sender(self) -> Side {
        match self {
            Exchange::Bulk { sender, .. } | Exchange::Interactive { sender } => sender,
            _ => Side::Server,
        }
    }
}

/// A background flow under way.
#[derive(Clone, Debug)]
pub(super) struct Background {
    exchange: Exchange,
    packets: u64,
    sent: u64,
    /// When it begins, and its step; nanoseconds.
    start: u64,
    step: u64,
    pace: Pace,
}

impl Background {
    /// The only side whose packets can make more than half of R*T in a window, if there is one: full packets at
    /// least half a step apart cannot be more. (Where the pace holds packets back they come closer than that,
    /// but then half a step is less than the pace allows, which is more than half of R*T.)
    pub(super) fn watched_side(&self, window_ns: u64, threshold: u64) -> Option<Side> {
        let packets_in_window = (window_ns / (self.step / 2).max(1) + 1).min(self.packets);
        let most = packets_in_window.saturating_mul(FULL_LENGTH);
        (most > threshold / 2).then_some(self.exchange.sender())
    }

    /// When the packet is sent that [`Background::next`] gave last, after one of `ip_length` at `now`.
    #[inline]
    pub(super) fn due(&self, now: u64, ip_length: u32, random: &mut Random) -> u64 {
        let on_grid = self.start + (self.sent - 1) * self.step + random.below(self.step / 2 + 1);
        on_grid.max(now + self.pace.silence_after(ip_length))
    }

    /// The next packet.
    #[inline]
    pub(super) fn next(&mut self, connection: &Connection, random: &mut Random) -> Option<Segment> {
        if self.sent == self.packets {
            return None;
        }
        let number = self.sent;
        self.sent += 1;
        Some(match self.exchange {
            Exchange::Bulk { sender, length } => self.tcp(number, sender, || {
                let full = connection.payload_for(u32::from(length));
                if random.below(16) == 0 { random.between(1, u64::from(full)) as u16 } else { full }
            }),
            Exchange::Interactive { sender } => self.tcp(number, sender, || random.octave(9) as u16),
            Exchange::Question if number == 0 => datagram(Side::Client, random.between(30, 60) as u16),
            Exchange::Question => datagram(Side::Server, random.between(60, 480) as u16),
            Exchange::Download { .. } if number.is_multiple_of(4) => {
                datagram(Side::Client, random.between(25, 45) as u16)
            }
            Exchange::Download { length } => {
                datagram(Side::Server, connection.payload_for(u32::from(length)))
            }
            Exchange::Conversation { length } => {
                let from = if number.is_multiple_of(2) { Side::Client } else { Side::Server };
                datagram(from, connection.payload_for(u32::from(length)))
            }
        })
    }

    /// Packet `number` of a connection. The last acknowledgement, that of the second FIN, is never seen: a
    /// meter that ends a flow at the second FIN would count it as another flow.
    #[inline]
    fn tcp(&self, number: u64, sender: Side, data: impl FnOnce() -> u16) -> Segment {
        use Side::{Client, Server};
        const SYN: TcpFlags = TcpFlags::SYN;
        const ACK: TcpFlags = TcpFlags::ACK;
        let left = self.packets - number;
        let (from, flags) = match (number, self.packets) {
            (0, _) => (Client, SYN),
            (1, 2) => (Server, TcpFlags::RST | ACK),
            (1, _) => (Server, SYN | ACK),
            (2, 3) => (Client, TcpFlags::RST),
            (2, _) => (Client, ACK),
            (3, 4) => (Client, TcpFlags::RST | ACK),
            _ if left == 2 => (sender, TcpFlags::FIN | ACK),
            _ if left == 1 => (sender.other(), TcpFlags::FIN | ACK),
            (3, _) if sender == Server => {
                return Segment { from: Client, flags: TcpFlags::PSH | ACK, payload_length: REQUEST_LENGTH };
            }
            _ if number % 3 == 2 => (sender.other(), ACK),
            _ => return Segment { from: sender, flags: ACK, payload_length: data() },
        };
        Segment { from, flags, payload_length: 0 }
    }
}

/// A UDP datagram.
const fn datagram(from: Side, payload_length: u16) -> Segment {
    Segment { from, flags: TcpFlags(0), payload_length }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_arrives_once() {
        for modulus in [1, 2, 3, 10, 1_001, 4_096, 34_000] {
            let multiplier = coprime_near_golden_ratio(modulus);
            let mut ranks: Vec<u64> = (0..modulus).map(|number| number * multiplier % modulus).collect();
            ranks.sort_unstable();
            assert!(ranks.into_iter().eq(0..modulus), "{modulus}");
        }
    }

    #[test]
    fn the_pace_is_four_fifths_of_the_threshold_and_never_above() {
        for rate in [50_000_000, 87_381, 99_999_999_999] {
            let silence = Pace::new(rate).silence_after(1_500);
            let paced_rate = 1_500.0 * 8e9 / silence as f64;
            assert!(paced_rate <= 0.8 * rate as f64);
            assert!(silence < 1_000 || paced_rate > 0.7999 * rate as f64);
        }
    }

    #[test]
    fn parts_of_a_trace_do_not_overlap() {
        let mut random = Random::new(4);
        let times: Vec<u64> = (0..1_000).map(|number| spread(number, 1_000, 12_345, &mut random)).collect();
        assert!(times.is_sorted() && times[999] < 12_345);
    }
}
