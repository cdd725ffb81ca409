//! The programming interface of schemes. The **pattern API** splits a router into four decisions (Flexplane, table 1):
//! [`Route`], [`Classify`], [`Enqueue`], [`Schedule`]. Each is a type, and [`Pattern`] composes them freely. The
//! **generic API** is [`Router`] itself: batches in, batches out. Both are resolved at compile time; there are no
//! indirect calls per packet.

pub mod classes;
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
use crate::redirection::Redirector;
use crate::router::classes::PortClasses;
use crate::router::context::Context;
use crate::slot::SlotClock;

/// The ports of one router, for which a scheme is built.
#[derive(Clone, Copy, Debug)]
pub struct RouterPorts<'a> {
    /// The slot clock.
    pub clock: SlotClock,
    /// The rate of each port.
    pub rates: &'a [BitRate],
    /// Bytes of the longest packet, framing included.
    pub longest: u16,
}

impl RouterPorts<'_> {
    /// The number of ports.
    pub fn ports(&self) -> usize {
        self.rates.len()
    }
}

/// A router, and the scheme's part in the endpoints.
pub trait Router: Send {
    /// Header fields that the scheme carries through the network; `()` if none.
    type Custom: Copy + Default + Send + Sync + 'static;

    /// Takes packets that arrived on one link or from one rack. Packets that are not kept are dropped through the
    /// context.
    fn input(&mut self, packets: &[Packet<Self::Custom>], context: &mut Context<'_>);

    /// Sends packets in this slot, while ports are free.
    fn output(&mut self, ports: &mut Ports<'_, Self::Custom>, context: &mut Context<'_>);

    /// The queue of a port.
    fn backlog(&self, port: PortIndex) -> Backlog;

    /// Drops all packets queued at a port whose link went down.
    fn flush(&mut self, port: PortIndex, context: &mut Context<'_>);

    /// Installs new shortest paths after links failed or were repaired.
    fn rewire(&mut self, next_hops: &NextHops);

    /// Sets or removes the forwarding table, which has precedence over shortest paths.
    fn set_forwarding(&mut self, table: Option<ForwardingTable>);

    /// Redirects flows to scavenger queues; `None` if the scheme has none.
    fn redirector(&mut self) -> Option<&mut dyn Redirector> {
        None
    }

    /// Counters by class; `None` if the router has none.
    fn classes(&mut self) -> Option<&mut dyn PortClasses> {
        None
    }

    /// Sets the custom fields of a packet before it enters the network (`prepare_request`).
    #[inline]
    fn prepare_request(_request: &Request) -> Self::Custom {
        Self::Custom::default()
    }

    /// Converts the scheme's fields to headers for the destination (`prepare_to_send`).
    #[inline]
    fn prepare_to_send(packet: &Packet<Self::Custom>) -> Packet {
        packet.with_custom(())
    }
}
