//! Background traffic: TCP connections and UDP exchanges that stay below the cheetah threshold.
//!
//! **Sizes** follow [`FlowSizes`]. The 4,096 largest flows last for almost the whole trace, like the large flows of a
//! minute of backbone traffic; the rest arrive evenly over the trace and last milliseconds to seconds.
//!
//! **Structure.** TCP: handshake, a request, two data segments per acknowledgement, FIN from both sides. Shorter
//! connections are probes: an unanswered SYN, a refusal, a handshake aborted by RST. UDP: query and response, a download
//! with a few packets in the other direction, or a conversation.
//!
//! **Pace.** After a packet of `b` bytes in either direction, a flow is silent for at least `b / (0.8 R)`. So both
//! directions together move at most `0.8 R*T` and one packet in a window of T; as R*T is at least 32 KiB, that is below
//! `0.85 R*T`. The data direction moves most of it, the other less than half. Packets are due on an even grid, each up
//! to half a step late, so gaps are half to one and a half steps; a step is at most [`MAX_STEP_NS`].

use thalweg_wire::{Protocol, TcpFlags};

use super::connection::{Connection, Segment, Side};
use super::flow_sizes::FlowSizes;
use super::options::Plan;
use crate::random::Random;

/// Number of the largest flows, which last as long as the trace.
const LONG_LIVED_FLOWS: u64 = 4_096;
/// Maximum step of a flow.
const MAX_STEP_NS: u64 = 2_048_000_000;
/// Maximum length of an IP packet.
const FULL_LENGTH: u64 = 1500;
/// Mean IP length of a large flow: two full packets and an acknowledgement.
const MEAN_LENGTH: u32 = 1_020;
/// Payload of the request, if the server sends the data.
const REQUEST_LENGTH: u16 = 120;

/// Generates background flows.
pub(super) struct Population {
    sizes: FlowSizes,
    duration_ns: u64,
    pace: Pace,
    long_lived: u64,
    /// Other flows.
    arrivals: u64,
    arrived: u64,
    /// Permutes the ranks of arrivals without a trend: coprime to their number.
    multiplier: u64,
}

/// A flow and the time of its first packet, relative to the start of the trace.
pub(super) struct Arrival {
    pub(super) at: u64,
    pub(super) packets: u64,
    /// Mean time between two packets.
    pub(super) step: u64,
}

impl Population {
    /// Returns the background flows of `plan`; `None` without any.
    pub(super) fn new(plan: &Plan, shape: Option<f64>) -> Option<Population> {
        if plan.background_flows == 0 {
            return None;
        }
        let pace = Pace::new(plan.rate);
        // At the full pace it lasts three quarters of the duration.
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

    /// Returns the long-lived flows; call it before `next_arrival`.
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

    /// Returns the next of the other flows, in order of time: one in each of as many equal parts of the trace.
    pub(super) fn next_arrival(&mut self, random: &mut Random) -> Option<Arrival> {
        if self.arrived == self.arrivals {
            return None;
        }
        let rank = u128::from(self.arrived) * u128::from(self.multiplier) % u128::from(self.arrivals);
        let packets = self.sizes.allot(self.long_lived + rank as u64);
        let at = spread(self.arrived, self.arrivals, self.duration_ns / 32 * 31, random);
        self.arrived += 1;
        let gaps = (packets - 1).max(1);
        // Steps of 1 ms to 2 s, all octaves equally likely, but no flow lasts longer than a sixteenth of the trace or
        // beyond its end.
        let natural = random.octave(11) * (MAX_STEP_NS >> 11);
        let room = (self.duration_ns - at).min(self.duration_ns / 16);
        Some(Arrival { at, packets, step: natural.min(step(room, gaps)) })
    }

    /// Returns the packets of an arrived flow; `protocol` is TCP or UDP.
    pub(super) fn flow(&self, arrival: &Arrival, protocol: Protocol, random: &mut Random) -> Background {
        let exchange = match protocol {
            Protocol::UDP => Exchange::udp(arrival.packets, random),
            _ => Exchange::tcp(arrival.packets, random),
        };
        let Arrival { at: start, packets, step } = *arrival;
        Background { exchange, packets, sent: 0, start, step, pace: self.pace }
    }
}

/// Returns the longest step at which a flow with `gaps` gaps ends within `span`, its last packet half a step late.
const fn step(span: u64, gaps: u64) -> u64 {
    2 * span / (2 * gaps + 1)
}

/// Returns a random time for item `number` of `items`, within its own part of `span`.
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

/// The pace limit of 0.8 R.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Nanoseconds for `2^16` bytes, rounded up.
    ns_per_64_kib: u64,
}

impl Pace {
    /// Returns the limit for R in bit/s.
    const fn new(rate: u64) -> Pace {
        let ns = (65_536 * 8 * 1_000_000_000u128 * 10).div_ceil(8 * rate as u128);
        Pace { ns_per_64_kib: ns as u64 }
    }

    /// Returns the minimum time from a packet to the next.
    #[inline]
    const fn silence_after(self, bytes: u32) -> u64 {
        (bytes as u64 * self.ns_per_64_kib).div_ceil(65_536)
    }
}

/// The packet pattern of a flow.
#[derive(Clone, Copy, Debug)]
enum Exchange {
    /// A connection with data in one direction, in segments that make IP packets of `length`.
    Bulk { sender: Side, length: u16 },
    /// A connection with data in one direction, in short segments.
    Interactive { sender: Side },
    /// A UDP query of the client and a response of the server.
    Query,
    /// Datagrams of the server that make IP packets of `length`; every fourth packet is a short one from the client.
    Download { length: u16 },
    /// Alternating datagrams that make IP packets of `length`.
    Conversation { length: u16 },
}

impl Exchange {
    /// Half of the small connections are interactive, but few large ones. Most fill Ethernet's 1500 bytes; some use tunnels,
    /// some the historic 576 bytes.
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
            0..=2 => Exchange::Query,
            _ if random.chance(0.6) => Exchange::Download { length: random.between(1_228, 1_400) as u16 },
            _ => Exchange::Conversation { length: random.between(100, 260) as u16 },
        }
    }

    /// Returns the side that sends most bytes.
    const fn sender(self) -> Side {
        match self {
            Exchange::Bulk { sender, .. } | Exchange::Interactive { sender } => sender,
            _ => Side::Server,
        }
    }
}

/// An active background flow.
#[derive(Clone, Debug)]
pub(super) struct Background {
    exchange: Exchange,
    packets: u64,
    sent: u64,
    /// Its start and step, in nanoseconds.
    start: u64,
    step: u64,
    pace: Pace,
}

impl Background {
    /// Returns the only side whose packets can exceed half of R*T in a window, if any: full packets at least half a step
    /// apart cannot exceed it. (Packets held back by the pace are closer, but then half a step is less than the pace allows,
    /// which is more than half of R*T.)
    pub(super) fn watched_side(&self, window_ns: u64, threshold: u64) -> Option<Side> {
        let packets_in_window = (window_ns / (self.step / 2).max(1) + 1).min(self.packets);
        let most = packets_in_window.saturating_mul(FULL_LENGTH);
        (most > threshold / 2).then_some(self.exchange.sender())
    }

    /// Returns the sending time of the packet that [`Background::next`] returned last, after one of `ip_length` at `now`.
    #[inline]
    pub(super) fn due(&self, now: u64, ip_length: u32, random: &mut Random) -> u64 {
        let on_grid = self.start + (self.sent - 1) * self.step + random.below(self.step / 2 + 1);
        on_grid.max(now + self.pace.silence_after(ip_length))
    }

    /// Returns the next packet.
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
            Exchange::Query if number == 0 => datagram(Side::Client, random.between(30, 60) as u16),
            Exchange::Query => datagram(Side::Server, random.between(60, 480) as u16),
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

    /// Returns packet `number` of a connection. The acknowledgement of the second FIN is left out: a meter that ends a flow
    /// at the second FIN would count it as another flow.
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

/// Returns a UDP datagram.
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
    fn the_pace_is_at_most_four_fifths_of_the_threshold() {
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
