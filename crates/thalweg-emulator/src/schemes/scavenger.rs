//! A primary and a scavenger queue: traffic that must not harm other traffic waits in a queue of its own at the same
//! port, so that moving a flow there does not reorder it.
//!
//! Maji, "Network Support for High-Performance Distributed Applications" (dissertation, University of Virginia 2018),
//! isolates detected flows in two ways. In its section 4.3.1 the scavenger queue is served when the primary queue is
//! empty: strict priority. In its section 3.5.1 both queues have a rate and borrow what the other leaves: a weighted,
//! work-conserving scheduler. [`Sharing`] is both, with a share of 0 for strict priority.
//!
//! Packets with code point 1, "lower effort" (RFC 8622), go to the scavenger queue, and so do those of
//! [redirected](crate::redirection) flows, all others to the primary one. Each queue has its own buffer, in bytes on the
//! link, as routers have. The packet being sent no longer occupies it.

mod redirected;

use thalweg_network::PortIndex;

use redirected::RedirectedFlows;

use super::error::{SchemeError, Settings};
use crate::outcome::Reason;
use crate::packet::{Packet, SHORTEST};
use crate::ports::tally::{PortTally, Traffic};
use crate::queues::backlog::Backlog;
use crate::queues::bank::QueueBank;
use crate::queues::fifos::MAX_CAPACITY;
use crate::queues::port_set::PortSet;
use crate::redirection::{FlowDirection, QueueTallies, QueueTally, RedirectError, Redirected, Redirector};
use crate::router::classes::ClassOf;
use crate::router::context::Context;
use crate::router::{Classify, Enqueue, Pattern, Plain, RouterPorts, Schedule, Store};

/// The code point of the scavenger queue: "lower effort" (RFC 8622, section 4).
pub const LOWER_EFFORT: u8 = 1;

/// The numbers of the queues.
pub const PRIMARY: usize = 0;
/// See [`PRIMARY`].
pub const SCAVENGER: usize = 1;

/// Decides which of two backlogged queues is next, so that the scavenger queue gets a share of the bytes.
///
/// While both queues are backlogged, the scavenger's bytes differ from its share by at most a longest packet of each
/// queue. What a queue leaves, the other borrows; nothing is saved up for a queue that is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The scavenger's share in [`SCALE`].
    share: i64,
    /// Bytes that the scavenger queue is entitled to, times [`SCALE`].
    credit: i64,
}

/// The resolution of shares.
const SCALE: i64 = 1 << 16;

impl Sharing {
    /// The scavenger queue gets `share` of the link, 0 to 1, while both queues are backlogged. 0 is strict priority.
    pub fn new(share: f64) -> Sharing {
        Sharing { share: (share.clamp(0.0, 1.0) * SCALE as f64).round() as i64, credit: 0 }
    }

    /// The next queue of two whose first packets have these lengths, `None` for an empty queue.
    #[inline]
    pub fn next(&self, primary: Option<u16>, scavenger: Option<u16>) -> Option<usize> {
        match (primary, scavenger) {
            (None, None) => None,
            (Some(_), None) => Some(PRIMARY),
            (None, Some(_)) => Some(SCAVENGER),
            (Some(_), Some(length)) => {
                let is_due = self.credit >= i64::from(length) * (SCALE - self.share);
                Some(if is_due { SCAVENGER } else { PRIMARY })
            }
        }
    }

    /// Notes that `queue` has started to send `length` bytes, and whether the scavenger queue is backlogged behind it.
    #[inline]
    pub fn sent(&mut self, queue: usize, length: u16, scavenger_is_backlogged: bool) {
        let length = i64::from(length);
        self.credit = match (queue, scavenger_is_backlogged) {
            (PRIMARY, true) => self.credit + length * self.share,
            (_, true) => (self.credit - length * (SCALE - self.share)).max(0),
            (_, false) => 0,
        };
    }
}

/// The state of a port.
#[derive(Clone, Copy, Debug)]
struct PortState {
    bytes: [u64; 2],
    sharing: Sharing,
    /// What the scavenger queue has sent. The primary queue has sent the rest of the port's traffic.
    scavenger_sent: Traffic,
    /// Packets that found the scavenger queue full.
    scavenger_dropped: u64,
}

/// Both queues of all ports, with their bytes, and the redirected flows.
#[derive(Clone, Debug)]
pub struct TwoQueues {
    bank: QueueBank<Packet>,
    ports: Box<[PortState]>,
    flows: RedirectedFlows,
}

impl TwoQueues {
    fn first_length(&self, port: PortIndex, queue: usize) -> Option<u16> {
        self.bank.first(port, queue).map(Packet::length)
    }

    fn pop(&mut self, port: PortIndex, queue: usize) -> Option<Packet> {
        let packet = self.bank.pop(port, queue)?;
        self.ports[port.index()].bytes[queue] -= u64::from(packet.length());
        Some(packet)
    }
}

impl Store for TwoQueues {
    #[inline]
    fn backlogged(&self) -> &PortSet {
        self.bank.backlogged()
    }

    fn backlog(&self, port: PortIndex) -> Backlog {
        self.bank.backlog(port)
    }

    fn take_any(&mut self, port: PortIndex) -> Option<Packet> {
        self.pop(port, PRIMARY).or_else(|| self.pop(port, SCAVENGER))
    }

    fn redirector(&mut self) -> Option<&mut dyn Redirector> {
        Some(self)
    }
}

impl Redirector for TwoQueues {
    fn redirect(&mut self, flow: FlowDirection) -> Result<(), RedirectError> {
        self.flows.insert(flow)
    }

    fn release(&mut self, flow: FlowDirection) {
        self.flows.remove(flow);
    }

    fn redirected(&self, flow: FlowDirection) -> Option<Redirected> {
        self.flows.get(flow)
    }

    fn has_queued(&self, flow: FlowDirection) -> bool {
        let mut ports = (0..self.ports.len()).map(|port| PortIndex(port as u16));
        ports.any(|port| self.bank.iter(port, SCAVENGER).any(|packet| packet.who() == flow.who()))
    }

    fn queues(&self, port: PortIndex, tally: &PortTally) -> QueueTallies {
        let PortState { bytes, scavenger_sent, scavenger_dropped, .. } = self.ports[port.index()];
        let backlog = |queue: usize| Backlog { packets: self.bank.packets(port, queue), bytes: bytes[queue] };
        let sent = Traffic {
            packets: tally.sent.packets - scavenger_sent.packets,
            bytes: tally.sent.bytes - scavenger_sent.bytes,
        };
        let dropped = tally.verdicts.dropped[Reason::Full as usize] - scavenger_dropped;
        QueueTallies {
            primary: QueueTally { sent, dropped, backlog: backlog(PRIMARY) },
            scavenger: QueueTally {
                sent: scavenger_sent,
                dropped: scavenger_dropped,
                backlog: backlog(SCAVENGER),
            },
        }
    }
}

/// Chooses the scavenger queue for packets of lower effort.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByLowerEffort;

impl<C> Classify<C> for ByLowerEffort {
    #[inline]
    fn classify(&mut self, packet: &Packet<C>, _port: PortIndex) -> usize {
        if packet.dscp() == LOWER_EFFORT { SCAVENGER } else { PRIMARY }
    }
}

/// Puts packets of redirected flows into the scavenger queue. Drops packets that find no room for their bytes.
#[derive(Clone, Copy, Debug)]
pub struct DropWithoutRoom {
    buffers: [u64; 2],
}

impl Enqueue<(), TwoQueues> for DropWithoutRoom {
    #[inline]
    fn enqueue(
        &mut self,
        packet: Packet,
        port: PortIndex,
        queue: usize,
        store: &mut TwoQueues,
        context: &mut Context<'_>,
    ) {
        // Here, because `Classify` does not know the time, which is counted with the first packet.
        let queue = if store.flows.count(&packet, context.now) { SCAVENGER } else { queue };
        let state = &mut store.ports[port.index()];
        let with_packet = state.bytes[queue] + u64::from(packet.length());
        match with_packet <= self.buffers[queue] && store.bank.push(port, queue, packet) {
            true => state.bytes[queue] = with_packet,
            false => {
                state.scavenger_dropped += u64::from(queue == SCAVENGER);
                context.drop(packet, port, Reason::Full);
            }
        }
    }
}

/// Sends from the queue that [`Sharing`] chooses.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByShare;

impl Schedule<(), TwoQueues> for ByShare {
    #[inline]
    fn schedule(
        &mut self,
        port: PortIndex,
        store: &mut TwoQueues,
        _context: &mut Context<'_>,
    ) -> Option<Packet> {
        if store.bank.occupied(port) & (1 << SCAVENGER) == 0 {
            let packet = store.pop(port, PRIMARY)?;
            store.ports[port.index()].sharing.sent(PRIMARY, packet.length(), false);
            return Some(packet);
        }
        let firsts = [PRIMARY, SCAVENGER].map(|queue| store.first_length(port, queue));
        let queue = store.ports[port.index()].sharing.next(firsts[PRIMARY], firsts[SCAVENGER])?;
        let packet = store.pop(port, queue)?;
        let is_backlogged = store.bank.occupied(port) & (1 << SCAVENGER) != 0;
        let state = &mut store.ports[port.index()];
        state.sharing.sent(queue, packet.length(), is_backlogged);
        if queue == SCAVENGER {
            state.scavenger_sent += Traffic { packets: 1, bytes: u64::from(packet.length()) };
        }
        Some(packet)
    }
}

/// Tells the queue of a packet from what a step changed at the scavenger queue, because a redirection may end while packets of
/// its flow are queued.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByQueue;

impl ClassOf<TwoQueues> for ByQueue {
    /// Bytes in the scavenger queue, and packets dropped there.
    type Before = (u64, u64);

    #[inline]
    fn before(&self, queues: &TwoQueues, port: PortIndex) -> (u64, u64) {
        let PortState { bytes, scavenger_dropped, .. } = queues.ports[port.index()];
        (bytes[SCAVENGER], scavenger_dropped)
    }

    #[inline]
    fn class(&self, _: &Packet, port: PortIndex, before: (u64, u64), queues: &TwoQueues) -> usize {
        if self.before(queues, port) == before { PRIMARY } else { SCAVENGER }
    }
}

/// Settings of the two queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScavengerConfig {
    /// Bytes that the primary queue holds, framing included. 5 MB (dissertation, table 4.1).
    pub primary_buffer: u64,
    /// Bytes that the scavenger queue holds, framing included. 5 MB (dissertation, table 4.1).
    pub scavenger_buffer: u64,
    /// The scavenger's share of the link while both queues are backlogged. 0: strict priority (dissertation, section
    /// 4.3.1).
    pub scavenger_share: f64,
}

impl Default for ScavengerConfig {
    fn default() -> Self {
        ScavengerConfig { primary_buffer: 5_000_000, scavenger_buffer: 5_000_000, scavenger_share: 0.0 }
    }
}

/// The largest buffer: the packets of a queue, if all are the shortest.
const MAX_BUFFER: u64 = 1_000_000_000;

const _: () = assert!(MAX_BUFFER / SHORTEST as u64 <= MAX_CAPACITY as u64, "or a queue would refuse it");

impl ScavengerConfig {
    /// Checks all settings.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), SchemeError> {
        let settings = Settings("scavenger");
        for (field, buffer) in
            [("primary_buffer", self.primary_buffer), ("scavenger_buffer", self.scavenger_buffer)]
        {
            let holds = (1_538..=MAX_BUFFER).contains(&buffer);
            settings.expect(field, buffer, holds, "1,538 bytes to 1 GB")?;
        }
        let holds = (0.0..=1.0).contains(&self.scavenger_share);
        settings.expect("scavenger_share", self.scavenger_share, holds, "0 to 1")
    }

    /// The largest number of packets in one queue.
    pub const fn packets(&self) -> u32 {
        let larger = match self.primary_buffer > self.scavenger_buffer {
            true => self.primary_buffer,
            false => self.scavenger_buffer,
        };
        (larger / SHORTEST as u64 + 1) as u32
    }
}

/// A router with a primary and a scavenger queue.
pub type Scavenger<R> = Pattern<R, ByLowerEffort, DropWithoutRoom, ByShare, TwoQueues>;

/// Builds a router with a primary and a scavenger queue.
///
/// # Panics
/// If the settings are not [valid](ScavengerConfig::validate).
pub fn scavenger<R>(route: R, ports: RouterPorts<'_>, config: &ScavengerConfig) -> Scavenger<R> {
    let state = PortState {
        bytes: [0; 2],
        sharing: Sharing::new(config.scavenger_share),
        scavenger_sent: Traffic::default(),
        scavenger_dropped: 0,
    };
    let store = TwoQueues {
        bank: QueueBank::new(ports.ports(), 2, config.packets()),
        ports: vec![state; ports.ports()].into_boxed_slice(),
        flows: RedirectedFlows::default(),
    };
    let enqueue = DropWithoutRoom { buffers: [config.primary_buffer, config.scavenger_buffer] };
    Pattern { route, classify: ByLowerEffort, enqueue, schedule: ByShare, store, headers: Plain }
}

#[cfg(test)]
mod tests;
