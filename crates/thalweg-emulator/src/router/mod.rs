//! What a scheme programs. The **pattern API** takes a router apart into four decisions (Flexplane, table 1):
//! [`Route`], [`Classify`], [`Enqueue`], [`Schedule`], each a type of its own and freely composed by [`Pattern`].
//! The **generic API** is [`Router`] itself: batches in, batches out. Either way all is known when it is compiled,
//! and nothing is called through a pointer for a packet.

pub mod context;
mod pattern;
mod route;

pub use pattern::{Classify, Enqueue, Headers, OneQueue, Pattern, Plain, Route, Schedule, Store};
pub use route::{Balance, Routing};

use thalweg_network::PortIndex;
use thalweg_network::routing::{ForwardingTable, NextHops};
use thalweg_wire::BitRate;

use crate::outcome::Request;
use crate::packet::Packet;
use crate::ports::port::Ports;
use crate::queues::backlog::Backlog;
use crate::router::context::Context;
use crate::slot::SlotClock;

/// What a scheme is built for: the ports of one router.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// The length of a slot.
    pub clock: SlotClock,
    /// The rate of each port.
    pub rates: &'a [BitRate],
    /// Bytes of the longest packet, framing included.
    pub longest: u16,
}

impl Shape<'_> {
    /// Number of ports.
    pub fn ports(&self) -> usize {
        self.rates.len()
    }
}

/// A router, and what endpoints must know of its scheme.
pub trait Router: Send {
    /// Header fields that the scheme carries through the network; `()` if none.
    type Custom: Copy + Default + Send + Sync + 'static;

    /// Takes packets that have arrived on one link or from one rack. Whatever is not kept is dropped through the context.
    fn input(&mut self, packets: &[Packet<Self::Custom>], context: &mut Context<'_>);

    /// Sends packets in this slot, as long as ports are free.
    fn output(&mut self, ports: &mut Ports<'_, Self::Custom>, context: &mut Context<'_>);

    /// What waits at a port.
    fn backlog(&self, port: PortIndex) -> Backlog;

    /// Drops whatever waits at a port, whose link has gone down.
    fn flush(&mut self, port: PortIndex, context: &mut Context<'_>);

    /// Takes in how the network looks now that links have failed or been repaired.
    fn rewire(&mut self, next_hops: &NextHops);

    /// Sets the forwarding table that goes before shortest paths, or takes it away.
    fn set_forwarding(&mut self, table: Option<ForwardingTable>);

    /// Fills in the custom fields of a packet before it enters the network (`prepare_request`).
    #[inline]
    fn prepare_request(_request: &Request) -> Self::Custom {
        Self::Custom::default()
    }

    /// Turns what the scheme has written into headers that the destination reads (`prepare_to_send`).
    #[inline]
    fn prepare_to_send(packet: &Packet<Self::Custom>) -> Packet {
        packet.with_custom(())
    }
}
