//! The flow of an emulated host: sender and receiver of [`hosts::tcp`](crate::hosts::tcp), at both ends of the port.
//!
//! The sender is next to the port and paced at the flow's rate, like a host behind `tc` whose interface queue is kept
//! short. Half of the round-trip time follows the port, the other half is the way of acknowledgements, which are never
//! lost. The flow does not end, and nothing but its congestion control limits its window.
//!
//! What the receiver does shows at the sender half a round-trip time later. So the receiver acts when its next
//! acknowledgement may be due at the sender, and in the order of its own times. Only segments are kept, not
//! acknowledgements: 32 bytes for each that is under way.

use std::collections::VecDeque;

use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::SECOND_PS;
use super::lane::PortFlow;
use crate::hosts::segment::{Ack, Data};
use crate::hosts::tcp::receiver::Receiver;
use crate::hosts::tcp::sender::Sender;
use crate::hosts::{Algorithm, HostConfig, TcpConfig};
use crate::workloads::UNBOUNDED;
use crate::workloads::burst_process::PACKET_BYTES;

/// No event.
const NEVER: u64 = u64::MAX;
/// Picoseconds per nanosecond.
const NANO_PS: u64 = 1_000;
/// The receiver's window: four times what a gigabit per second has under way in a second.
const RECEIVE_WINDOW: u64 = 500_000_000;

/// The flow.
#[derive(Clone, Debug)]
pub struct TcpFlow {
    sender: Sender,
    receiver: Receiver,
    /// The full-size segment that the port is deciding on.
    offered: Option<Data>,
    /// Segments in the port, and those behind it with the time of their arrival.
    in_port: VecDeque<Data>,
    segments: VecDeque<(u64, Data)>,
    /// The receiver's next acknowledgement, after which the receiver has not acted, and the time of its arrival. Without
    /// one, the earliest time at which one can arrive.
    ack: Option<Ack>,
    ack_ps: u64,
    one_way_ps: u64,
    gap_ps: u64,
    /// When the interface can send again, and when the sender may have something to send.
    free_ps: u64,
    ready_ps: u64,
    /// The earliest event at the sender.
    next_ps: u64,
    now_ps: u64,
}

impl TcpFlow {
    /// A flow with H-TCP of at most `rate`, framing included, with an idle round-trip time of `round_trip`.
    pub fn new(rate: BitRate, round_trip: Nanos) -> TcpFlow {
        TcpFlow::with(TcpConfig::with(Algorithm::HTcp), rate, round_trip)
    }

    /// The same with other settings of TCP.
    pub fn with(config: TcpConfig, rate: BitRate, round_trip: Nanos) -> TcpFlow {
        TcpFlow::with_window(config, rate, round_trip, RECEIVE_WINDOW)
    }

    /// The same with a receive window of `receive_window` bytes, which limits the window as a TCP buffer does.
    pub fn with_window(config: TcpConfig, rate: BitRate, round_trip: Nanos, receive_window: u64) -> TcpFlow {
        let mss = u64::from(HostConfig::default().mss());
        // The initial timeout is that of a handshake's measurement R: R + 4 R/2 (RFC 6298, rule 2.2).
        let mut config = config;
        config.rto.initial = Nanos(3 * round_trip.0).max(config.rto.min);
        TcpFlow {
            sender: Sender::new(&config, UNBOUNDED, mss, receive_window),
            receiver: Receiver::new(UNBOUNDED, config.ack, config.echo()),
            offered: None,
            in_port: VecDeque::new(),
            segments: VecDeque::new(),
            ack: None,
            ack_ps: NEVER,
            one_way_ps: round_trip.0 * NANO_PS / 2,
            gap_ps: 8 * u64::from(PACKET_BYTES) * SECOND_PS / rate.0.max(1),
            free_ps: 0,
            ready_ps: 0,
            next_ps: 0,
            now_ps: 0,
        }
    }

    /// Bytes of payload that the receiving application has.
    pub fn delivered(&self) -> u64 {
        let mut receiver = self.receiver.clone();
        let arrived = self.segments.iter().take_while(|segment| segment.0 <= self.now_ps);
        arrived.for_each(|(at_ps, data)| _ = receiver.on_data(data, false, time(*at_ps), |_| ()));
        receiver.delivered()
    }

    /// The sender.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    fn wake(&mut self, now_ps: u64) {
        self.ready_ps = now_ps.max(self.free_ps);
    }

    /// The earliest event at the sender.
    #[inline]
    fn schedule(&mut self) {
        self.next_ps = self.ack_ps.min(self.ready_ps).min(deadline_ps(self.sender.deadline()));
    }

    /// The receiver acts up to and including `until_ps`, or until it acknowledges. Segments come before the timer.
    #[inline]
    fn receive(&mut self, until_ps: u64) {
        loop {
            let (segment_ps, timer_ps) = (front(&self.segments), deadline_ps(self.receiver.deadline()));
            let at_ps = segment_ps.min(timer_ps);
            self.ack_ps = at_ps.saturating_add(self.one_way_ps);
            if at_ps > until_ps {
                return;
            }
            let now = time(at_ps);
            match self.segments.pop_front_if(|_| segment_ps <= timer_ps) {
                Some((_, data)) => {
                    // Without marks, a segment causes one acknowledgement at most.
                    let ack = &mut self.ack;
                    self.receiver.on_data(&data, false, now, |sent| *ack = Some(sent));
                }
                None => self.ack = self.receiver.on_timer(now),
            }
            if self.ack.is_some() {
                return;
            }
        }
    }

    /// Acknowledgements arrive at the sender up to `now_ps`.
    fn acknowledge(&mut self, now_ps: u64) {
        let now = time(now_ps);
        while self.ack_ps <= now_ps {
            if let Some(ack) = &self.ack {
                self.sender.on_ack(ack, now);
                self.ack = None;
                self.wake(now_ps);
            }
            self.receive(now_ps);
        }
    }

    #[inline]
    fn is_under_way(&mut self, left_ps: u64, data: Data) {
        let at_ps = left_ps + self.one_way_ps;
        self.segments.push_back((at_ps, data));
        if self.ack.is_none() {
            self.ack_ps = self.ack_ps.min(at_ps + self.one_way_ps);
            self.next_ps = self.next_ps.min(self.ack_ps);
        }
    }
}

/// A time in whole nanoseconds, rounded up so that timers have expired.
fn time(at_ps: u64) -> Timestamp {
    Timestamp(at_ps.div_ceil(NANO_PS))
}

/// A deadline of TCP; never, if its timer is off.
fn deadline_ps(deadline: Timestamp) -> u64 {
    deadline.0.saturating_mul(NANO_PS)
}

fn front<T>(events: &VecDeque<(u64, T)>) -> u64 {
    events.front().map_or(NEVER, |event| event.0)
}

impl PortFlow for TcpFlow {
    #[inline]
    fn next_ps(&self) -> u64 {
        self.next_ps
    }

    fn reaction_ps(&self) -> u64 {
        self.one_way_ps.max(1)
    }

    /// Handles what is due: acknowledgements first, then the timer, then the interface.
    #[inline]
    fn act(&mut self, now_ps: u64, _primary_bytes: impl FnOnce() -> u64) -> bool {
        if self.ack_ps <= now_ps {
            self.acknowledge(now_ps);
        }
        if deadline_ps(self.sender.deadline()) <= now_ps {
            self.sender.on_timer(time(now_ps));
            self.wake(now_ps);
        }
        if self.ready_ps <= now_ps {
            self.offered = self.sender.transmit(time(now_ps));
            if self.offered.is_some() {
                self.free_ps = now_ps + self.gap_ps;
            }
            // Acknowledgements and timers wake the sender before its window grows.
            self.ready_ps = match self.offered.is_some() && self.sender.has_window() {
                true => self.free_ps,
                false => NEVER,
            };
        }
        self.schedule();
        self.offered.is_some()
    }

    #[inline]
    fn was_queued(&mut self, queued: bool) {
        let offered = self.offered.take();
        self.in_port.extend(offered.filter(|_| queued));
    }

    #[inline]
    fn left(&mut self, at_ps: u64) {
        if let Some(data) = self.in_port.pop_front() {
            self.is_under_way(at_ps, data);
        }
    }

    #[inline]
    fn leaves(&mut self, at_ps: Option<u64>) {
        if let (Some(data), Some(at_ps)) = (self.offered.take(), at_ps) {
            self.is_under_way(at_ps, data);
        }
    }

    #[inline]
    fn reached(&mut self, now_ps: u64) {
        self.now_ps = now_ps;
    }
}
