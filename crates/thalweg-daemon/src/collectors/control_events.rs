//! Events from collectors to the controller: congestion, changed addresses and arrivals of packets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_measure::collector::{
    AddressChange, ArrivalReport, CongestionChange, CongestionEvent, PortDirection,
};

use crate::event::EventKind;

/// Capacity of the queue. By default a collector sends at most one event per link and millisecond.
const QUEUE_CAPACITY: usize = 4_096;

/// An event for the controller.
#[derive(Clone, Debug)]
pub(crate) enum ControlEvent {
    /// A link of this switch is congested.
    Congestion(Arc<str>, CongestionEvent),
    /// The addresses of a flow changed, as seen at this switch.
    Address(Arc<str>, AddressChange),
    /// Packets of an observed pair departed or arrived.
    Arrival(ArrivalReport),
    /// Packet time is not the clock of a machine.
    PacketTime,
}

impl ControlEvent {
    /// Returns the controller's event for a link of this switch. The controller ignores links that are not congested, and reads
    /// links into a switch at the switch that sends.
    pub(crate) fn congestion(switch: Arc<str>, event: CongestionEvent) -> Option<ControlEvent> {
        let is_relevant =
            event.change != CongestionChange::Cleared && event.link.side.direction == PortDirection::Output;
        is_relevant.then_some(ControlEvent::Congestion(switch, event))
    }
}

/// The sender of events to the controller. Never blocks.
#[derive(Clone, Debug)]
pub(crate) struct ControlEventSender {
    sender: Sender<ControlEvent>,
    sent: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
}

impl ControlEventSender {
    pub(crate) fn new() -> (ControlEventSender, Receiver<ControlEvent>) {
        let (sender, receiver) = bounded(QUEUE_CAPACITY);
        (ControlEventSender { sender, sent: Arc::default(), lost: Arc::default() }, receiver)
    }

    /// Sends an event if it is relevant for the controller.
    pub(crate) fn send_event(&self, switch: &Arc<str>, kind: &EventKind) {
        let event = match kind {
            EventKind::Congestion(event) => ControlEvent::congestion(Arc::clone(switch), event.clone()),
            EventKind::AddressChange(change) => Some(ControlEvent::Address(Arc::clone(switch), *change)),
            _ => None,
        };
        if let Some(event) = event {
            self.send(event);
        }
    }

    /// Sends an event, if the queue has room.
    pub(crate) fn send(&self, event: ControlEvent) {
        let counter = if self.sender.try_send(event).is_ok() { &self.sent } else { &self.lost };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts events that were lost on the way.
    pub(crate) fn note_lost(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.sent)
    }

    pub(crate) fn lost(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lost)
    }
}
