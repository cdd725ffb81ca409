//! DCTCP's marking: a packet that finds the queue at or above a threshold is marked (Alizadeh et al., "Data center
//! TCP", SIGCOMM 2010, section 3.1, component 1).
//!
//! The queue is the instantaneous one, without the new packet; with it, queues longer than K are marked, as the paper
//! says. Packets without ECN pass unmarked. A full buffer acts as DropTail.

use thalweg_network::PortIndex;

use super::drop_tail::Fifo;
use super::error::{SchemeError, Settings};
use crate::outcome::Reason;
use crate::packet::Packet;
use crate::queues::fifos::Fifos;
use crate::router::context::Context;
use crate::router::{Enqueue, OneQueue, Pattern, Plain, RouterPorts};

/// Marks packets that find a long queue, drops packets that find a full one, whatever header fields a scheme adds to
/// packets (type `C`).
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    /// The length in packets from which a queue is long: K.
    pub packets: u32,
}

impl<C: Copy + Default> Enqueue<C, Fifos<Packet<C>>> for Threshold {
    #[inline]
    fn enqueue(
        &mut self,
        mut packet: Packet<C>,
        port: PortIndex,
        _queue: usize,
        store: &mut Fifos<Packet<C>>,
        context: &mut Context<'_>,
    ) {
        let waiting = store.packets(port);
        if waiting >= self.packets && waiting < store.capacity() {
            let _marked = context.try_mark(&mut packet, port);
        }
        if !store.push(port, packet) {
            context.drop(packet, port, Reason::Full);
        }
    }
}

/// Settings of DCTCP's marking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DctcpConfig {
    /// The queue length in packets from which arrivals are marked: K. 65 at 10 Gbit/s (Alizadeh et al. 2010, section
    /// 3.4).
    pub threshold: u32,
    /// The buffer of a port in packets. 1,024, like DropTail (Flexplane, section 5.1).
    pub buffer: u32,
}

impl Default for DctcpConfig {
    fn default() -> Self {
        DctcpConfig { threshold: 65, buffer: 1_024 }
    }
}

impl DctcpConfig {
    /// Checks all settings.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), SchemeError> {
        let settings = Settings("dctcp");
        settings.expect_buffer(self.buffer)?;
        settings.expect("threshold", self.threshold, self.threshold < self.buffer, "less than `buffer`")
    }
}

/// A router that marks for DCTCP.
pub type Dctcp<R> = Pattern<R, OneQueue, Threshold, Fifo, Fifos<Packet>>;

/// Builds a router that marks for DCTCP.
///
/// # Panics
/// If the settings are not [valid](DctcpConfig::validate).
pub fn dctcp<R>(route: R, ports: RouterPorts<'_>, config: &DctcpConfig) -> Dctcp<R> {
    let store = Fifos::new(ports.ports(), config.buffer);
    let enqueue = Threshold { packets: config.threshold };
    Pattern { route, classify: OneQueue, enqueue, schedule: Fifo, store, headers: Plain }
}

#[cfg(test)]
mod tests;
