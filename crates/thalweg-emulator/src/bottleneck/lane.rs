//! Recorded packets and one flow through a port.

use super::fifo::FifoPort;
use super::port::{Origin, Port, Queue, Tally};
use crate::workloads::burst_process::{Arrival, PACKET_BYTES};

/// A flow that sends full-size packets into a port, and learns when they leave it.
pub trait PortFlow {
    /// When the flow acts next, if nothing leaves the port before; the end of time if it does not.
    fn next_ps(&self) -> u64;

    /// The shortest time between the departure of a packet and the flow's reaction to it.
    fn reaction_ps(&self) -> u64;

    /// Acts at `now_ps`, which is [`next_ps`](Self::next_ps). `primary_bytes` counts the bytes in the primary queue,
    /// which takes time. Returns whether a packet is sent now; if so, [`was_queued`](Self::was_queued) or
    /// [`leaves`](Self::leaves) follows.
    fn act(&mut self, now_ps: u64, primary_bytes: impl FnOnce() -> u64) -> bool;

    /// The queue of the packet that was just sent; `queue` is that of the lane.
    #[inline]
    fn queue(&self, queue: Queue) -> Queue {
        queue
    }

    /// Whether all packets are in the queue of the lane. If not, [`queue`](Self::queue) tells which.
    #[inline]
    fn keeps_queue(&self) -> bool {
        true
    }

    /// Reports whether the port has queued the packet that was just sent.
    fn was_queued(&mut self, queued: bool);

    /// The first of the queued packets leaves the port at `at_ps`.
    fn left(&mut self, at_ps: u64);

    /// Reports when the packet that was just sent will have left the port, if that is known; `None` if it was not
    /// queued. Takes the place of [`was_queued`](Self::was_queued) and [`left`](Self::left).
    #[inline]
    fn leaves(&mut self, at_ps: Option<u64>) {
        self.was_queued(at_ps.is_some());
        at_ps.into_iter().for_each(|at_ps| self.left(at_ps));
    }

    /// Everything up to and including `now_ps` has happened.
    #[inline]
    fn reached(&mut self, _now_ps: u64) {}
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

    fn act(&mut self, _now_ps: u64, _primary_bytes: impl FnOnce() -> u64) -> bool {
        false
    }

    fn was_queued(&mut self, _queued: bool) {}

    fn left(&mut self, _at_ps: u64) {}
}

/// A port with background traffic in the primary queue, and a flow in one of them.
#[derive(Clone, Debug)]
pub struct Lane<F> {
    port: LanePort,
    flow: F,
    queue: Queue,
    now_ps: u64,
}

/// The port of a lane.
#[derive(Clone, Debug)]
enum LanePort {
    /// If the flow is always in the primary queue.
    Fifo(FifoPort),
    Queues(Port),
}

impl<F: PortFlow> Lane<F> {
    /// A lane whose `flow` uses `queue`.
    pub fn new(port: Port, flow: F, queue: Queue) -> Lane<F> {
        let is_shared = queue == Queue::Primary && flow.keeps_queue();
        match FifoPort::of(&port).filter(|_| is_shared) {
            Some(fifo) => Lane { port: LanePort::Fifo(fifo), flow, queue, now_ps: 0 },
            None => Lane::with_both_queues(port, flow, queue),
        }
    }

    /// A lane that makes no use of the flow's being always in the primary queue. Tests compare both.
    pub(super) fn with_both_queues(port: Port, flow: F, queue: Queue) -> Lane<F> {
        Lane { port: LanePort::Queues(port), flow, queue, now_ps: 0 }
    }

    /// Background packets arrive, in order of time and after all earlier ones.
    #[inline]
    pub fn run(&mut self, packets: &[Arrival]) {
        let Lane { port, flow, queue, now_ps } = self;
        match port {
            LanePort::Fifo(port) => {
                for packet in packets {
                    run_fifo(port, flow, now_ps, packet.at_ps);
                    port.arrive(packet.at_ps, Origin::Background, packet.length);
                }
            }
            LanePort::Queues(port) => {
                for packet in packets {
                    run_queues(port, flow, *queue, now_ps, packet.at_ps);
                    port.arrive(packet.at_ps, Queue::Primary, Origin::Background, packet.length);
                }
            }
        }
        self.reach(packets.last().map_or(0, |packet| packet.at_ps));
    }

    /// Runs the flow up to and including `until_ps`; nothing happens if that has passed.
    pub fn run_until(&mut self, until_ps: u64) {
        let Lane { port, flow, queue, now_ps } = self;
        match port {
            LanePort::Fifo(port) => run_fifo(port, flow, now_ps, until_ps),
            LanePort::Queues(port) => run_queues(port, flow, *queue, now_ps, until_ps),
        }
        self.reach(until_ps);
    }

    fn reach(&mut self, at_ps: u64) {
        self.now_ps = self.now_ps.max(at_ps);
        self.flow.reached(self.now_ps);
    }

    /// The packets of an origin.
    pub fn tally(&self, origin: Origin) -> Tally {
        match &self.port {
            LanePort::Fifo(port) => port.tally(self.now_ps, origin),
            LanePort::Queues(port) => port.tally(origin),
        }
    }

    /// The flow.
    pub fn flow(&self) -> &F {
        &self.flow
    }

    /// Checks that every packet was sent, dropped, or is queued, and that bytes are those of the packets.
    ///
    /// # Panics
    /// If not.
    pub fn check_invariants(&self) {
        match &self.port {
            LanePort::Fifo(port) => port.check_invariants(self.now_ps),
            LanePort::Queues(port) => port.check_invariants(),
        }
    }
}

/// Runs `flow` up to and including `until_ps`, in the queue of the background packets.
#[inline(always)]
fn run_fifo(port: &mut FifoPort, flow: &mut impl PortFlow, now_ps: &mut u64, until_ps: u64) {
    while flow.next_ps() <= until_ps {
        let at_ps = flow.next_ps().max(*now_ps);
        *now_ps = at_ps;
        if flow.act(at_ps, || port.bytes(at_ps)) {
            assert!(flow.queue(Queue::Primary) == Queue::Primary, "a flow that keeps its queue");
            flow.leaves(port.arrive(at_ps, Origin::Flow, PACKET_BYTES));
        }
    }
}

/// Runs `flow` up to and including `until_ps`.
///
/// The port never advances beyond the earliest time at which the flow can react to what leaves meanwhile.
#[inline]
fn run_queues(port: &mut Port, flow: &mut impl PortFlow, queue: Queue, now_ps: &mut u64, until_ps: u64) {
    loop {
        let horizon_ps = now_ps.saturating_add(flow.reaction_ps());
        *now_ps = flow.next_ps().min(until_ps).min(horizon_ps).max(*now_ps);
        port.advance(*now_ps, |at_ps| flow.left(at_ps));
        if flow.next_ps() <= *now_ps {
            if flow.act(*now_ps, || port.bytes(Queue::Primary)) {
                let queued = port.arrive(*now_ps, flow.queue(queue), Origin::Flow, PACKET_BYTES);
                flow.was_queued(queued);
            }
        } else if *now_ps >= until_ps {
            return;
        }
    }
}
