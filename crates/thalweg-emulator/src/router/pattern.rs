//! The pattern API: route, classify, enqueue, schedule.

use thalweg_network::PortIndex;
use thalweg_network::routing::{ForwardingTable, NextHops};

use super::Router;
use crate::outcome::{Reason, Request};
use crate::packet::Packet;
use crate::ports::port::Ports;
use crate::queues::backlog::Backlog;
use crate::queues::bank::QueueBank;
use crate::queues::fifos::Fifos;
use crate::queues::port_set::{Members, PortSet};
use crate::redirection::Redirector;
use crate::router::classes::PortClasses;
use crate::router::context::Context;

/// Chooses the output port.
pub trait Route: Send {
    /// The port for a packet, `None` if no path leads to its destination.
    fn route<C: Copy>(&mut self, packet: &Packet<C>, context: &mut Context<'_>) -> Option<PortIndex>;

    /// See [`Router::rewire`]. Ignored unless routing uses shortest paths.
    fn rewire(&mut self, _next_hops: &NextHops) {}

    /// See [`Router::set_forwarding`]. Ignored without a forwarding table.
    fn set_forwarding(&mut self, _table: Option<ForwardingTable>) {}
}

/// Chooses among the queues of a port.
pub trait Classify<C>: Send {
    /// The queue for a packet at `port`.
    fn classify(&mut self, packet: &Packet<C>, port: PortIndex) -> usize;
}

/// Puts a packet into its queue, or drops it.
pub trait Enqueue<C, S>: Send {
    /// Stores `packet`, marked or not, or drops it or another packet.
    fn enqueue(
        &mut self,
        packet: Packet<C>,
        port: PortIndex,
        queue: usize,
        store: &mut S,
        context: &mut Context<'_>,
    );
}

/// Chooses which packet a port sends next.
pub trait Schedule<C, S>: Send {
    /// Takes the next packet of `port` from the store.
    fn schedule(&mut self, port: PortIndex, store: &mut S, context: &mut Context<'_>) -> Option<Packet<C>>;
}

/// The queues between `enqueue` and `schedule`.
pub trait Store: Send {
    /// Ports with queued packets.
    fn backlogged(&self) -> &PortSet;

    /// The queue of a port.
    fn backlog(&self, port: PortIndex) -> Backlog;

    /// Takes any packet queued at a port, without its custom fields.
    fn take_any(&mut self, port: PortIndex) -> Option<Packet>;

    /// See [`Router::redirector`].
    fn redirector(&mut self) -> Option<&mut dyn Redirector> {
        None
    }

    /// See [`Router::classes`].
    fn classes(&mut self) -> Option<&mut dyn PortClasses> {
        None
    }
}

impl<C: Copy + Default + Send> Store for Fifos<Packet<C>> {
    #[inline(always)]
    fn backlogged(&self) -> &PortSet {
        Fifos::backlogged(self)
    }

    fn backlog(&self, port: PortIndex) -> Backlog {
        Fifos::backlog(self, port)
    }

    fn take_any(&mut self, port: PortIndex) -> Option<Packet> {
        self.pop(port).map(|packet| packet.with_custom(()))
    }
}

impl<C: Copy + Default + Send> Store for QueueBank<Packet<C>> {
    #[inline]
    fn backlogged(&self) -> &PortSet {
        QueueBank::backlogged(self)
    }

    fn backlog(&self, port: PortIndex) -> Backlog {
        QueueBank::backlog(self, port)
    }

    fn take_any(&mut self, port: PortIndex) -> Option<Packet> {
        let queue = self.occupied(port).trailing_zeros() as usize;
        if queue >= self.queues() {
            return None;
        }
        self.pop(port, queue).map(|packet| packet.with_custom(()))
    }
}

/// One queue per port.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneQueue;

impl<C> Classify<C> for OneQueue {
    #[inline]
    fn classify(&mut self, _packet: &Packet<C>, _port: PortIndex) -> usize {
        0
    }
}

/// Header fields that a scheme carries through the network, and the functions that set and read them at endpoints
/// (`prepare_request` and `prepare_to_send` of Flexplane, table 1).
pub trait Headers: Send {
    /// The fields.
    type Custom: Copy + Default + Send + Sync + 'static;

    /// See [`Router::prepare_request`].
    #[inline]
    fn prepare_request(_request: &Request) -> Self::Custom {
        Self::Custom::default()
    }

    /// See [`Router::prepare_to_send`].
    #[inline]
    fn prepare_to_send(packet: &Packet<Self::Custom>) -> Packet {
        packet.with_custom(())
    }
}

/// No header fields beyond those of all packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Headers for Plain {
    type Custom = ();
}

/// A router composed of four decisions, a store and header fields (the pattern API of Flexplane, section 4).
#[derive(Clone, Debug)]
pub struct Pattern<R, K, E, S, Q, H = Plain> {
    /// Chooses the port.
    pub route: R,
    /// Chooses the queue.
    pub classify: K,
    /// Stores, marks or drops.
    pub enqueue: E,
    /// Chooses the packet to send.
    pub schedule: S,
    /// The queues.
    pub store: Q,
    /// The scheme's header fields.
    pub headers: H,
}

impl<R, K, E, S, Q, H> Router for Pattern<R, K, E, S, Q, H>
where
    R: Route,
    K: Classify<H::Custom>,
    E: Enqueue<H::Custom, Q>,
    S: Schedule<H::Custom, Q>,
    Q: Store,
    H: Headers,
{
    type Custom = H::Custom;

    #[inline]
    fn input(&mut self, packets: &[Packet<H::Custom>], context: &mut Context<'_>) {
        for &packet in packets {
            let Some(port) = self.route.route(&packet, context) else {
                context.drop_unrouted(packet);
                continue;
            };
            if context.is_down(port) {
                context.drop(packet, port, Reason::LinkDown);
                continue;
            }
            let queue = self.classify.classify(&packet, port);
            self.enqueue.enqueue(packet, port, queue, &mut self.store, context);
        }
    }

    #[inline]
    fn output(&mut self, ports: &mut Ports<'_, H::Custom>, context: &mut Context<'_>) {
        for word in 0..self.store.backlogged().words() {
            for port in Members::of(self.store.backlogged().word(word), word * 64) {
                while ports.is_free(port) {
                    match self.schedule.schedule(port, &mut self.store, context) {
                        Some(packet) => ports.send(port, packet),
                        None => break,
                    }
                }
            }
        }
    }

    fn backlog(&self, port: PortIndex) -> Backlog {
        self.store.backlog(port)
    }

    fn flush(&mut self, port: PortIndex, context: &mut Context<'_>) {
        while let Some(packet) = self.store.take_any(port) {
            context.drop(packet, port, Reason::LinkDown);
        }
    }

    fn rewire(&mut self, next_hops: &NextHops) {
        self.route.rewire(next_hops);
    }

    fn set_forwarding(&mut self, table: Option<ForwardingTable>) {
        self.route.set_forwarding(table);
    }

    fn redirector(&mut self) -> Option<&mut dyn Redirector> {
        self.store.redirector()
    }

    fn classes(&mut self) -> Option<&mut dyn PortClasses> {
        self.store.classes()
    }

    #[inline]
    fn prepare_request(request: &Request) -> H::Custom {
        H::prepare_request(request)
    }

    #[inline]
    fn prepare_to_send(packet: &Packet<H::Custom>) -> Packet {
        H::prepare_to_send(packet)
    }
}
