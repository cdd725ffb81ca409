//! Recorded packets and one flow through a port.

use super::port::{Origin, Port, Queue, Tally};
use crate::workloads::burst_process::{Arrival, PACKET_BYTES};

/// A flow that sends full-size packets into a port, and learns when they leave it.
pub trait PortFlow {
    /// When the flow acts next, if nothing leaves the port before; the end of time if it does not.
    fn next_ps(&self) -> u64;

    /// The shortest time between the departure of a packet and the flow's reaction to it.
    fn reaction_ps(&self) -> u64;

    /// Acts at `now_ps`, which is [`next_ps`](Self::next_ps). `primary_bytes` are queued in the primary queue. Returns
    /// whether a packet is sent now; if so, [`was_queued`](Self::was_queued) follows.
    fn act(&mut self, now_ps: u64, primary_bytes: u64) -> bool;

    /// The queue of the packet that was just sent; `queue` is that of the lane.
    #[inline]
    fn queue(&self, queue: Queue) -> Queue {
        queue
    }

    /// Reports whether the port has queued the packet that was just sent.
    fn was_queued(&mut self, queued: bool);

    /// The first of the queued packets leaves the port at `at_ps`.
    fn left(&mut self, at_ps: u64);
}

/// No flow: background traffic alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFlow;

impl PortFlow for NoFlow {
    fn next_ps(&self) -> u64 {
        u64::MAX
    }

    fn reaction_ps(&self) -> u64 {
        u64::MAX
    }

    fn act(&mut self, _now_ps: u64, _primary_bytes: u64) -> bool {
        false
    }

    fn was_queued(&mut self, _queued: bool) {}

    fn left(&mut self, _at_ps: u64) {}
}

/// A port with background traffic in the primary queue, and a flow in one of them.
#[derive(Clone, Debug)]
pub struct Lane<F> {
    port: Port,
    flow: F,
    queue: Queue,
    now_ps: u64,
}

impl<F: PortFlow> Lane<F> {
    /// A lane whose `flow` uses `queue`.
    pub fn new(port: Port, flow: F, queue: Queue) -> Lane<F> {
        Lane { port, flow, queue, now_ps: 0 }
    }

    /// Background packets arrive, in order of time and after all earlier ones.
    #[inline]
    pub fn run(&mut self, packets: &[Arrival]) {
        for packet in packets {
            self.run_until(packet.at_ps);
            self.port.arrive(packet.at_ps, Queue::Primary, Origin::Background, packet.length);
        }
    }

    /// Runs the flow up to and including `until_ps`; nothing happens if that has passed.
    ///
    /// The port never advances beyond the earliest time at which the flow can react to what leaves meanwhile.
    #[inline]
    pub fn run_until(&mut self, until_ps: u64) {
        loop {
            let horizon_ps = self.now_ps.saturating_add(self.flow.reaction_ps());
            let now_ps = self.flow.next_ps().min(until_ps).min(horizon_ps).max(self.now_ps);
            let flow = &mut self.flow;
            self.port.advance(now_ps, |at_ps| flow.left(at_ps));
            self.now_ps = now_ps;
            if self.flow.next_ps() <= now_ps {
                if self.flow.act(now_ps, self.port.bytes(Queue::Primary)) {
                    let queue = self.flow.queue(self.queue);
                    let queued = self.port.arrive(now_ps, queue, Origin::Flow, PACKET_BYTES);
                    self.flow.was_queued(queued);
                }
            } else if now_ps >= until_ps {
                return;
            }
        }
    }

    /// The packets of an origin.
    pub fn tally(&self, origin: Origin) -> Tally {
        self.port.tally(origin)
    }

    /// The flow.
    pub fn flow(&self) -> &F {
        &self.flow
    }

    /// The port.
    pub fn port(&self) -> &Port {
        &self.port
    }
}
