//! The flow of an emulated host: sender and receiver of [`hosts::tcp`](crate::hosts::tcp), at both ends of the port.
//!
//! The sender is next to the port and paced at the flow's rate, like a host behind `tc` whose interface queue is kept
//! short. Half of the round-trip time follows the port, the other half is the way of acknowledgements, which are never
//! lost. The flow does not end, and nothing but its congestion control limits its window.

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
    /// Segments in the port, and segments and acknowledgements behind it with the time of their arrival.
    in_port: VecDeque<Data>,
    segments: VecDeque<(u64, Data)>,
    acks: VecDeque<(u64, Ack)>,
    one_way_ps: u64,
    gap_ps: u64,
    /// When the interface can send again, and when the sender may have something to send.
    free_ps: u64,
    ready_ps: u64,
    /// The earliest of all events.
    next_ps: u64,
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
            acks: VecDeque::new(),
            one_way_ps: round_trip.0 * NANO_PS / 2,
            gap_ps: 8 * u64::from(PACKET_BYTES) * SECOND_PS / rate.0.max(1),
            free_ps: 0,
            ready_ps: 0,
            next_ps: 0,
        }
    }

    /// Bytes of payload that the receiving application has.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// The sender.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    fn wake(&mut self, now_ps: u64) {
        self.ready_ps = now_ps.max(self.free_ps);
    }

    /// Finds the earliest event, after each that was handled.
    #[inline]
    fn schedule(&mut self) {
        let timers = deadline_ps(self.sender.deadline()).min(deadline_ps(self.receiver.deadline()));
        self.next_ps = front(&self.segments).min(front(&self.acks)).min(self.ready_ps).min(timers);
    }

    fn receive(&mut self, now_ps: u64, data: &Data) {
        let at_ps = now_ps + self.one_way_ps;
        let acks = &mut self.acks;
        self.receiver.on_data(data, false, time(now_ps), |ack| acks.push_back((at_ps, ack)));
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

    /// Handles one event: of several at the same time, arrivals first, then timers, then the interface.
    fn act(&mut self, now_ps: u64, _primary_bytes: u64) -> bool {
        if let Some((_, data)) = self.segments.pop_front_if(|event| event.0 <= now_ps) {
            self.receive(now_ps, &data);
        } else if let Some((_, ack)) = self.acks.pop_front_if(|event| event.0 <= now_ps) {
            self.sender.on_ack(&ack, time(now_ps));
            self.wake(now_ps);
        } else if deadline_ps(self.receiver.deadline()) <= now_ps {
            let ack = self.receiver.on_timer(time(now_ps));
            self.acks.extend(ack.map(|ack| (now_ps + self.one_way_ps, ack)));
        } else if deadline_ps(self.sender.deadline()) <= now_ps {
            self.sender.on_timer(time(now_ps));
            self.wake(now_ps);
        } else if self.ready_ps <= now_ps {
            self.offered = self.sender.transmit(time(now_ps));
            let sends = self.offered.is_some();
            (self.free_ps, self.ready_ps) = match sends {
                true => (now_ps + self.gap_ps, now_ps + self.gap_ps),
                false => (self.free_ps, NEVER),
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
            self.segments.push_back((at_ps + self.one_way_ps, data));
            self.next_ps = self.next_ps.min(at_ps + self.one_way_ps);
        }
    }
}
