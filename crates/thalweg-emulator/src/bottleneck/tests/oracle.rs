//! The simulation as it is written first: packets leave one by one, every event is handled at its time, and everything
//! under way is kept. Lanes are compared with it packet by packet.

use std::collections::VecDeque;

use proptest::prelude::*;
use thalweg_wire::{BitRate, Nanos, Timestamp};

use crate::bottleneck::SECOND_PS;
use crate::bottleneck::lane::{Lane, NoFlow, PortFlow};
use crate::bottleneck::port::{Origin, Port, Queue};
use crate::bottleneck::round_flow::RoundFlow;
use crate::bottleneck::tcp_flow::TcpFlow;
use crate::hosts::segment::{Ack, Data};
use crate::hosts::tcp::receiver::Receiver;
use crate::hosts::tcp::sender::Sender;
use crate::hosts::{Algorithm, HostConfig, TcpConfig};
use crate::schemes::scavenger::ScavengerConfig;
use crate::workloads::UNBOUNDED;
use crate::workloads::burst_process::{Arrival, PACKET_BYTES};

const MICROSECOND_PS: u64 = 1_000_000;

/// A queue in which each packet has the time at which it starts, length and origin.
#[derive(Default)]
struct PlainPort {
    rate: u64,
    buffer: u64,
    waiting: VecDeque<(u64, u16, Origin)>,
    end_ps: u64,
    /// By origin: offered, dropped, sent.
    tallies: [[u64; 3]; 2],
}

impl PlainPort {
    fn bytes(&self) -> u64 {
        self.waiting.iter().map(|packet| u64::from(packet.1)).sum()
    }

    fn advance(&mut self, now_ps: u64) {
        while let Some((_, _, origin)) = self.waiting.pop_front_if(|packet| packet.0 < now_ps) {
            self.tallies[origin as usize][2] += 1;
        }
    }

    fn arrive(&mut self, now_ps: u64, length: u16, origin: Origin) -> Option<u64> {
        self.advance(now_ps);
        self.tallies[origin as usize][0] += 1;
        if self.bytes() + u64::from(length) > self.buffer {
            self.tallies[origin as usize][1] += 1;
            return None;
        }
        let start_ps = self.end_ps.max(now_ps);
        let bits = u128::from(length) * 8;
        self.end_ps = start_ps + (bits * u128::from(SECOND_PS) / u128::from(self.rate)) as u64;
        self.waiting.push_back((start_ps, length, origin));
        Some(self.end_ps)
    }
}

/// TCP with all segments and acknowledgements under way, one event at a time.
struct PlainTcp {
    sender: Sender,
    receiver: Receiver,
    segments: VecDeque<(u64, Data)>,
    acks: VecDeque<(u64, Ack)>,
    one_way_ps: u64,
    gap_ps: u64,
    free_ps: u64,
    ready_ps: u64,
    offered: Option<Data>,
}

fn time(at_ps: u64) -> Timestamp {
    Timestamp(at_ps.div_ceil(1_000))
}

impl PlainTcp {
    fn new(config: TcpConfig, rate: BitRate, round_trip: Nanos, window: u64) -> PlainTcp {
        let mut config = config;
        config.rto.initial = Nanos(3 * round_trip.0).max(config.rto.min);
        PlainTcp {
            sender: Sender::new(&config, UNBOUNDED, u64::from(HostConfig::default().mss()), window),
            receiver: Receiver::new(UNBOUNDED, config.ack, config.echo()),
            segments: VecDeque::new(),
            acks: VecDeque::new(),
            one_way_ps: round_trip.0 * 1_000 / 2,
            gap_ps: 8 * u64::from(PACKET_BYTES) * SECOND_PS / rate.0,
            free_ps: 0,
            ready_ps: 0,
            offered: None,
        }
    }

    fn timers(&self) -> [u64; 2] {
        [self.receiver.deadline(), self.sender.deadline()].map(|deadline| deadline.0.saturating_mul(1_000))
    }
}

impl PortFlow for PlainTcp {
    fn next_ps(&self) -> u64 {
        let arrivals = [self.segments.front().map(|event| event.0), self.acks.front().map(|event| event.0)];
        let [receiver, sender] = self.timers();
        arrivals.into_iter().flatten().fold(self.ready_ps, u64::min).min(receiver).min(sender)
    }

    fn reaction_ps(&self) -> u64 {
        self.one_way_ps.max(1)
    }

    fn act(&mut self, now_ps: u64, _primary_bytes: impl FnOnce() -> u64) -> bool {
        let [receiver, sender] = self.timers();
        let back_ps = now_ps + self.one_way_ps;
        if let Some((_, data)) = self.segments.pop_front_if(|event| event.0 <= now_ps) {
            let acks = &mut self.acks;
            self.receiver.on_data(&data, false, time(now_ps), |ack| acks.push_back((back_ps, ack)));
        } else if let Some((_, ack)) = self.acks.pop_front_if(|event| event.0 <= now_ps) {
            self.sender.on_ack(&ack, time(now_ps));
            self.ready_ps = now_ps.max(self.free_ps);
        } else if receiver <= now_ps {
            let ack = self.receiver.on_timer(time(now_ps));
            self.acks.extend(ack.map(|ack| (back_ps, ack)));
        } else if sender <= now_ps {
            self.sender.on_timer(time(now_ps));
            self.ready_ps = now_ps.max(self.free_ps);
        } else if self.ready_ps <= now_ps {
            self.offered = self.sender.transmit(time(now_ps));
            self.ready_ps = u64::MAX;
            if self.offered.is_some() {
                self.free_ps = now_ps + self.gap_ps;
                self.ready_ps = self.free_ps;
            }
        }
        self.offered.is_some()
    }

    fn was_queued(&mut self, _queued: bool) {}

    fn left(&mut self, _at_ps: u64) {}

    fn leaves(&mut self, at_ps: Option<u64>) {
        let offered = self.offered.take().filter(|_| at_ps.is_some());
        self.segments.extend(offered.map(|data| (at_ps.unwrap() + self.one_way_ps, data)));
    }
}

/// A packet of the flow: when it was sent, and when it leaves the port.
type Sent = Vec<(u64, Option<u64>)>;

/// What is known after a background packet: tallies, and the delivered bytes of TCP.
type Seen = Vec<([[u64; 3]; 2], u64)>;

/// Runs a flow one event at a time.
fn plain<F: PortFlow>(
    mut port: PlainPort,
    mut flow: F,
    packets: &[Arrival],
    delivered: impl Fn(&F) -> u64,
) -> (Sent, Seen) {
    let (mut sent, mut seen) = (Vec::new(), Vec::new());
    for packet in packets {
        while flow.next_ps() <= packet.at_ps {
            let now_ps = flow.next_ps();
            port.advance(now_ps);
            if flow.act(now_ps, || port.bytes()) {
                let leaves = port.arrive(now_ps, PACKET_BYTES, Origin::Flow);
                sent.push((now_ps, leaves));
                match leaves {
                    Some(_) => flow.leaves(leaves),
                    None => {
                        flow.leaves(None);
                        flow.was_queued(false);
                    }
                }
            }
        }
        port.arrive(packet.at_ps, packet.length, Origin::Background);
        seen.push((port.tallies, delivered(&flow)));
    }
    (sent, seen)
}

/// A flow that notes what happens to its packets.
struct Noted<F> {
    flow: F,
    now_ps: u64,
    sent: Sent,
    /// Places of packets in the port.
    in_port: VecDeque<usize>,
}

impl<F: PortFlow> PortFlow for Noted<F> {
    fn next_ps(&self) -> u64 {
        self.flow.next_ps()
    }

    fn reaction_ps(&self) -> u64 {
        self.flow.reaction_ps()
    }

    fn act(&mut self, now_ps: u64, primary_bytes: impl FnOnce() -> u64) -> bool {
        self.now_ps = now_ps;
        self.flow.act(now_ps, primary_bytes)
    }

    fn was_queued(&mut self, queued: bool) {
        if queued {
            self.in_port.push_back(self.sent.len());
        }
        self.sent.push((self.now_ps, None));
        self.flow.was_queued(queued);
    }

    fn left(&mut self, at_ps: u64) {
        let place = self.in_port.pop_front().unwrap();
        self.sent[place].1 = Some(at_ps);
        self.flow.left(at_ps);
    }

    fn leaves(&mut self, at_ps: Option<u64>) {
        self.sent.push((self.now_ps, at_ps));
        self.flow.leaves(at_ps);
    }

    fn reached(&mut self, now_ps: u64) {
        self.flow.reached(now_ps);
    }
}

/// Runs a flow in a lane.
fn in_lane<F: PortFlow>(
    port: Port,
    flow: F,
    has_both_queues: bool,
    packets: &[Arrival],
    delivered: impl Fn(&F) -> u64,
) -> (Sent, Seen) {
    let noted = Noted { flow, now_ps: 0, sent: Vec::new(), in_port: VecDeque::new() };
    let mut lane = match has_both_queues {
        true => Lane::with_both_queues(port, noted, Queue::Primary),
        false => Lane::new(port, noted, Queue::Primary),
    };
    let seen = |packet: &Arrival| {
        lane.run(std::slice::from_ref(packet));
        lane.check_invariants();
        let tallies = [Origin::Background, Origin::Flow].map(|origin| {
            let tally = lane.tally(origin);
            [tally.offered, tally.dropped, tally.sent]
        });
        (tallies, delivered(&lane.flow().flow))
    };
    let seen = packets.iter().map(seen).collect();
    (lane.flow().sent.clone(), seen)
}

/// Packets, port and flow of a comparison.
#[derive(Clone, Debug)]
struct Case {
    packets: Vec<Arrival>,
    rate: BitRate,
    buffer: u64,
    flow_rate: BitRate,
    round_trip: Nanos,
}

impl Case {
    fn port(&self) -> Port {
        let queues = ScavengerConfig { primary_buffer: self.buffer, ..ScavengerConfig::default() };
        Port::new(self.rate, &queues).unwrap()
    }

    fn plain_port(&self) -> PlainPort {
        PlainPort { rate: self.rate.0, buffer: self.buffer, ..PlainPort::default() }
    }

    fn compare<F: PortFlow, P: PortFlow>(
        &self,
        flow: impl Fn() -> F,
        plain_flow: impl Fn() -> P,
        delivered: impl Fn(&F) -> u64 + Copy,
        plain_delivered: impl Fn(&P) -> u64,
    ) -> Result<(), TestCaseError> {
        let expected = plain(self.plain_port(), plain_flow(), &self.packets, plain_delivered);
        for has_both_queues in [false, true] {
            let (mut sent, seen) = in_lane(self.port(), flow(), has_both_queues, &self.packets, delivered);
            prop_assert_eq!(sent.len(), expected.0.len());
            for (place, (packet, expected)) in sent.iter_mut().zip(&expected.0).enumerate() {
                // With both queues, a departure is known when the packet starts.
                if has_both_queues
                    && packet.1.is_none()
                    && expected.1 > self.packets.last().map(|last| last.at_ps)
                {
                    packet.1 = expected.1;
                }
                prop_assert_eq!(
                    &*packet,
                    expected,
                    "packet {} of the flow, both queues: {}",
                    place,
                    has_both_queues
                );
            }
            for (place, (seen, expected)) in seen.iter().zip(&expected.1).enumerate() {
                prop_assert_eq!(seen, expected, "after packet {}, both queues: {}", place, has_both_queues);
            }
        }
        Ok(())
    }
}

prop_compose! {
    /// Clusters of packets, most of one length, through ports whose rates divide the time of a byte or do not, with
    /// buffers of up to 40 packets.
    fn any_case()(
        clusters in prop::collection::vec((0u64..30_000, 1u64..60, 0u64..30, any::<bool>(), 0u16..2_000), 1..60),
        rate in prop::sample::select(vec![100_000_000u64, 1_000_000_000, 999_999_937, 7_000_000_000]),
        buffer in 3_000u64..60_000,
        flow_share in 0.05f64..1.5,
        round_trip in 1u64..8_000,
    ) -> Case {
        let (mut at_ps, mut packets) = (0, Vec::new());
        for (number, (wait, count, gap, is_mixed, length)) in (0u64..).zip(clusters) {
            at_ps += wait * MICROSECOND_PS + number;
            for place in 0..count {
                let length = match is_mixed {
                    true => (u64::from(length) * place % 1_501) as u16,
                    false => PACKET_BYTES,
                };
                packets.push(Arrival { at_ps, length });
                at_ps += gap * MICROSECOND_PS;
            }
        }
        Case {
            packets,
            rate: BitRate(rate),
            buffer,
            flow_rate: BitRate((rate as f64 * flow_share) as u64),
            round_trip: Nanos::from_micros(round_trip),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn background_alone_is_that_of_the_oracle(case in any_case()) {
        case.compare(|| NoFlow, || NoFlow, |_| 0, |_| 0)?;
    }

    #[test]
    fn rounds_are_those_of_the_oracle(case in any_case()) {
        let flow = || RoundFlow::new(case.flow_rate, case.round_trip, case.rate);
        case.compare(flow, flow, |flow| flow.window(), |flow| flow.window())?;
    }

    #[test]
    fn tcp_is_that_of_the_oracle(
        case in any_case(),
        algorithm in prop::sample::select(Algorithm::ALL.to_vec()),
        every in 1u32..4,
        window in 20_000u64..2_000_000,
    ) {
        let mut config = TcpConfig::with(algorithm);
        config.ack.every = every;
        case.compare(
            || TcpFlow::with_window(config, case.flow_rate, case.round_trip, window),
            || PlainTcp::new(config, case.flow_rate, case.round_trip, window),
            |flow| flow.delivered(),
            |flow| flow.receiver.delivered(),
        )?;
    }
}
