//! Events from collectors to the controller: congestion, changed addresses and arrivals of packets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_measure::collector::{AddressChange, ArrivalReport, Crossing, LinkEvent, Way};

use crate::event::EventKind;

/// Notices that may wait. A collector tells of each of its links once a millisecond at most, unless its rules say
/// otherwise.
const QUEUE_CAPACITY: usize = 4_096;

/// An event for the controller.
#[derive(Clone, Debug)]
pub(crate) enum ControlEvent {
    /// The utilisation of a link of this switch crossed a threshold.
    Link(Arc<str>, LinkEvent),
    /// The addresses of a flow changed, as seen at this switch.
    Address(Arc<str>, AddressChange),
    /// Packets of an observed pair departed or arrived.
    Arrival(ArrivalReport),
    /// Packet time is not the clock of a machine.
    PacketTime,
}

impl ControlEvent {
    /// What an event at a link of this switch is to the controller. Links that carry little are none of its business, and
    /// those into a switch are sent of where they come out of another.
    pub(crate) fn of_link(switch: Arc<str>, event: LinkEvent) -> Option<ControlEvent> {
        let is_relevant = event.crossing != Crossing::Downwards && event.link.side.way == Way::Output;
        is_relevant.then_some(ControlEvent::Link(switch, event))
    }
}

/// Where collectors send_event. Never waits.
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

    /// Tells, if this is something that the controller wants to know.
    pub(crate) fn send_event(&self, switch: &Arc<str>, kind: &EventKind) {
        let event = match kind {
            EventKind::Link(event) => ControlEvent::of_link(Arc::clone(switch), event.clone()),
            EventKind::AddressChange(change) => Some(ControlEvent::Address(Arc::clone(switch), *change)),
            _ => None,
        };
        if let Some(event) = event {
            self.send(event);
        }
    }

    /// Takes a event, if there is room.
    pub(crate) fn send(&self, event: ControlEvent) {
        let counter = if self.sender.try_send(event).is_ok() { &self.sent } else { &self.lost };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Something was sent that did not get here.
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
