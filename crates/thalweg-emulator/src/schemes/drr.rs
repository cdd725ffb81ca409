//! Deficit round robin (Shreedhar and Varghese, "Efficient fair queueing using deficit round robin", SIGCOMM 1995).
//! Queues take turns. Each turn adds a quantum of bytes to a queue's deficit, and a backlogged queue keeps the unused
//! rest for its next turn.
//!
//! While two queues are backlogged, the bytes that they have sent differ by at most a quantum and a longest packet
//! (after lemma 2). With a quantum no smaller than the longest packet, each turn sends at least one packet, so a packet
//! costs O(1); longer packets take several rounds. A [hash](FlowHash) assigns flows to queues.
//!
//! Where we differ: turns follow queue numbers in a bitmap, where the paper has a list. A newly backlogged queue waits
//! for at most one round either way.

use thalweg_network::PortIndex;

use super::error::{SchemeError, Settings};
use super::flow_hash::FlowHash;
use super::priority::DropWhenQueueFull;
use crate::packet::Packet;
use crate::queues::bank::{MAX_QUEUES, QueueBank};
use crate::router::context::Context;
use crate::router::{Pattern, Plain, RouterPorts, Schedule};

/// The current turn of a port, and the deficits of its queues.
#[derive(Clone, Copy, Debug)]
struct Round {
    turn: usize,
    /// In bytes, by queue.
    deficits: [u32; MAX_QUEUES],
}

/// Serves queues in turn.
#[derive(Clone, Debug)]
pub struct DeficitRoundRobin {
    rounds: Box<[Round]>,
    quantum: u32,
}

impl<C: Copy + Default> Schedule<C, QueueBank<Packet<C>>> for DeficitRoundRobin {
    #[inline]
    fn schedule(
        &mut self,
        port: PortIndex,
        store: &mut QueueBank<Packet<C>>,
        _context: &mut Context<'_>,
    ) -> Option<Packet<C>> {
        let occupied = store.occupied(port);
        if occupied == 0 {
            return None;
        }
        let Round { turn, deficits } = &mut self.rounds[port.index()];
        loop {
            if let Some(first) = store.first(port, *turn)
                && u32::from(first.length()) <= deficits[*turn]
            {
                let packet = store.pop(port, *turn)?;
                let still_backlogged = store.occupied(port) >> *turn & 1;
                deficits[*turn] = (deficits[*turn] - u32::from(packet.length())) * still_backlogged as u32;
                return Some(packet);
            }
            // The next backlogged queue in cyclic order, possibly the same one.
            let skipped = occupied.rotate_right(*turn as u32 + 1).trailing_zeros() as usize;
            *turn = (*turn + 1 + skipped) % MAX_QUEUES;
            deficits[*turn] += self.quantum;
        }
    }
}

/// Settings of deficit round robin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrrConfig {
    /// Queues per port. 64 (Flexplane, section 4).
    pub queues: u8,
    /// Bytes per turn, framing included: at least the longest packet, for O(1). 1,538, a full-size frame of Ethernet
    /// with preamble and gap.
    pub quantum: u32,
    /// The capacity of each queue in packets. 1,024, like DropTail (Flexplane, section 5.1).
    pub buffer: u32,
}

impl Default for DrrConfig {
    fn default() -> Self {
        DrrConfig { queues: MAX_QUEUES as u8, quantum: 1_538, buffer: 1_024 }
    }
}

impl DrrConfig {
    /// Checks all settings.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), SchemeError> {
        let settings = Settings("drr");
        let holds = (1..=MAX_QUEUES).contains(&usize::from(self.queues));
        settings.expect("queues", self.queues, holds, "1 to 64")?;
        let holds = (1_500..=1 << 20).contains(&self.quantum);
        settings.expect("quantum", self.quantum, holds, "1,500 to 1,048,576 bytes")?;
        settings.expect_buffer(self.buffer)
    }
}

/// A router with deficit round robin.
pub type Drr<R> = Pattern<R, FlowHash, DropWhenQueueFull, DeficitRoundRobin, QueueBank<Packet>>;

/// Builds a router with deficit round robin.
///
/// # Panics
/// If the settings are not [valid](DrrConfig::validate).
pub fn drr<R>(route: R, ports: RouterPorts<'_>, config: &DrrConfig) -> Drr<R> {
    let store = QueueBank::new(ports.ports(), usize::from(config.queues), config.buffer);
    let classify = FlowHash::over(u32::from(config.queues));
    let rounds = vec![Round { turn: 0, deficits: [0; MAX_QUEUES] }; ports.ports()].into_boxed_slice();
    let schedule = DeficitRoundRobin { rounds, quantum: config.quantum };
    Pattern { route, classify, enqueue: DropWhenQueueFull, schedule, store, headers: Plain }
}

#[cfg(test)]
mod tests;
