//! Active flows: both ends of each, by flow number.

use std::collections::VecDeque;

use thalweg_network::EndpointId;
use thalweg_wire::{Nanos, Timestamp};

use super::config::{HostConfig, Transport};
use super::p_fabric;
use super::segment::{Ack, Data};
use super::tcp::congestion::Window;
use super::tcp::receiver::Receiver;
use super::tcp::sender::{self as tcp, Events};
use crate::workloads::FlowStart;

/// A sender of either transport.
#[expect(clippy::large_enum_variant, reason = "all senders of a run are of one kind")]
#[derive(Clone, Debug)]
pub(super) enum Sender {
    Tcp(tcp::Sender),
    PFabric(p_fabric::Sender),
}

/// Makes the same call on either sender.
macro_rules! either {
    ($sender:expr, $inner:ident => $call:expr) => {
        match $sender {
            Sender::Tcp($inner) => $call,
            Sender::PFabric($inner) => $call,
        }
    };
}

impl Sender {
    fn new(config: &HostConfig, bytes: u64) -> Sender {
        let mss = u64::from(config.mss());
        match &config.transport {
            Transport::Tcp(tcp) => {
                Sender::Tcp(tcp::Sender::new(tcp, bytes, mss, u64::from(config.receive_window)))
            }
            Transport::PFabric(p_fabric) => Sender::PFabric(p_fabric::Sender::new(p_fabric, bytes, mss)),
        }
    }

    fn reset(&mut self, config: &HostConfig, bytes: u64) {
        match (self, &config.transport) {
            (Sender::Tcp(sender), Transport::Tcp(tcp)) => sender.reset(tcp, bytes),
            (Sender::PFabric(sender), Transport::PFabric(_)) => sender.reset(bytes),
            (sender, _) => *sender = Sender::new(config, bytes),
        }
    }

    #[inline]
    pub(super) fn on_ack(&mut self, ack: &Ack, now: Timestamp) {
        either!(self, sender => sender.on_ack(ack, now));
    }

    pub(super) fn on_timer(&mut self, now: Timestamp) {
        either!(self, sender => sender.on_timer(now));
    }

    #[inline]
    pub(super) fn transmit(&mut self, now: Timestamp) -> Option<Data> {
        either!(self, sender => sender.transmit(now))
    }

    #[inline]
    pub(super) fn deadline(&self) -> Timestamp {
        either!(self, sender => sender.deadline())
    }

    #[inline]
    pub(super) fn is_done(&self) -> bool {
        either!(self, sender => sender.is_done())
    }

    #[inline]
    pub(super) fn acknowledged(&self) -> u64 {
        either!(self, sender => sender.acknowledged())
    }

    pub(super) fn in_flight(&self) -> u64 {
        either!(self, sender => sender.in_flight())
    }

    pub(super) fn segments_sent(&self) -> u64 {
        either!(self, sender => sender.segments_sent())
    }

    pub(super) fn window(&self) -> Window {
        either!(self, sender => sender.window())
    }

    pub(super) fn events(&self) -> Events {
        either!(self, sender => sender.events)
    }

    pub(super) fn srtt(&self) -> Option<Nanos> {
        match self {
            Sender::Tcp(sender) => sender.srtt(),
            Sender::PFabric(_) => None,
        }
    }

    pub(super) fn is_recovering(&self) -> bool {
        match self {
            Sender::Tcp(sender) => sender.is_recovering(),
            Sender::PFabric(sender) => sender.is_probing(),
        }
    }

    pub(super) fn check_invariants(&self) {
        either!(self, sender => sender.check_invariants());
    }
}

/// An active flow.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) flow: u32,
    pub(super) source: EndpointId,
    pub(super) destination: EndpointId,
    pub(super) dscp: u8,
    /// Whether the flow is queued at its source's interface.
    pub(super) is_in_line: bool,
    pub(super) bytes: u64,
    pub(super) start: Timestamp,
    /// When its sender last had a reason to send.
    pub(super) ready: Timestamp,
    /// When the receiver had all bytes; zero before that.
    pub(super) end: Timestamp,
    /// Data segments that arrived marked.
    pub(super) marks: u64,
    /// The latest times at which the timers of sender and receiver fire.
    pub(super) armed: [Timestamp; 2],
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
}

/// No timer is set.
pub(super) const NEVER: Timestamp = Timestamp(u64::MAX);

impl Connection {
    fn new(config: &HostConfig, flow: u32, start: &FlowStart) -> Connection {
        let transport = &config.transport;
        Connection {
            flow,
            source: start.source,
            destination: start.destination,
            dscp: start.dscp,
            is_in_line: false,
            bytes: start.bytes,
            start: start.at,
            ready: start.at,
            end: Timestamp(0),
            marks: 0,
            armed: [NEVER; 2],
            sender: Sender::new(config, start.bytes),
            receiver: Receiver::new(start.bytes, transport.ack_policy(), transport.echo()),
        }
    }

    /// Reuses the memory for another flow.
    fn reset(&mut self, config: &HostConfig, flow: u32, start: &FlowStart) {
        self.sender.reset(config, start.bytes);
        self.receiver.reset(start.bytes);
        (self.flow, self.source, self.destination) = (flow, start.source, start.destination);
        (self.dscp, self.bytes, self.start, self.ready) = (start.dscp, start.bytes, start.at, start.at);
        (self.is_in_line, self.end, self.marks) = (false, Timestamp(0), 0);
        self.armed = [NEVER; 2];
    }

    /// Bytes that are not acknowledged yet.
    #[inline]
    pub(super) fn remaining(&self) -> u64 {
        self.bytes - self.sender.acknowledged()
    }
}

/// No connection.
const NONE: u32 = u32::MAX;

/// The active flows. Finds a flow by its number in O(1). The table of numbers spans the oldest to the newest active
/// flow, at 4 bytes each.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections {
    connections: Vec<Connection>,
    free: Vec<u32>,
    /// Places of the flows from `oldest` on.
    places: VecDeque<u32>,
    oldest: u32,
}

impl Connections {
    /// The number of active flows.
    pub(super) fn len(&self) -> usize {
        self.connections.len() - self.free.len()
    }

    /// The number of the next flow.
    pub(super) fn next_flow(&self) -> u32 {
        self.oldest + self.places.len() as u32
    }

    /// Starts the next flow and returns its place.
    pub(super) fn begin(&mut self, config: &HostConfig, start: &FlowStart) -> u32 {
        let flow = self.next_flow();
        let place = match self.free.pop() {
            Some(place) => {
                self.connections[place as usize].reset(config, flow, start);
                place
            }
            None => {
                self.connections.push(Connection::new(config, flow, start));
                (self.connections.len() - 1) as u32
            }
        };
        self.places.push_back(place);
        place
    }

    /// Skips the next flow number.
    pub(super) fn skip(&mut self) {
        self.places.push_back(NONE);
        self.forget_ended();
    }

    /// Ends a flow.
    pub(super) fn end(&mut self, place: u32) {
        let flow = self.connections[place as usize].flow;
        self.places[(flow - self.oldest) as usize] = NONE;
        self.free.push(place);
        self.forget_ended();
    }

    fn forget_ended(&mut self) {
        while self.places.front() == Some(&NONE) {
            self.places.pop_front();
            self.oldest += 1;
        }
    }

    /// The place of a flow, if it is active.
    #[inline]
    pub(super) fn place(&self, flow: u32) -> Option<u32> {
        let number = flow.checked_sub(self.oldest)?;
        self.places.get(number as usize).copied().filter(|&place| place != NONE)
    }

    /// The flow at a place.
    #[inline]
    pub(super) fn at(&mut self, place: u32) -> &mut Connection {
        &mut self.connections[place as usize]
    }

    /// Read access to the flow at a place.
    #[inline]
    pub(super) fn look(&self, place: u32) -> &Connection {
        &self.connections[place as usize]
    }

    /// The active flows, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection> + '_ {
        self.places.iter().filter(|&&place| place != NONE).map(|&place| self.look(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(bytes: u64) -> FlowStart {
        let (source, destination) = (EndpointId(0), EndpointId(1));
        FlowStart { at: Timestamp(0), source, destination, bytes, dscp: 0 }
    }

    #[test]
    fn flows_are_found_by_number_while_active() {
        let config = HostConfig::default();
        let mut connections = Connections::default();
        let places: Vec<u32> = (1..=3).map(|bytes| connections.begin(&config, &start(bytes))).collect();
        connections.end(places[1]);
        connections.skip();
        let again = connections.begin(&config, &start(5));
        assert_eq!(again, places[1]);
        let bytes = |flow| connections.place(flow).map(|place| connections.look(place).bytes);
        assert_eq!([0, 1, 2, 3, 4, 5].map(bytes), [Some(1), None, Some(3), None, Some(5), None]);
        connections.end(places[0]);
        connections.end(places[2]);
        assert_eq!((connections.len(), connections.places.len()), (1, 1));
        assert_eq!(connections.iter().map(|connection| connection.flow).collect::<Vec<_>>(), [4]);
    }
}
