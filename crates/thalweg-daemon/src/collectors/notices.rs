//! From collectors to the controller: of congestion, of flows that go another way, and of packets that arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_measure::collector::{AddressChange, ArrivalReport, Crossing, LinkEvent, PortDirection};

use crate::event::EventKind;

/// Notices that may wait. A collector tells of each of its links once a millisecond at most, unless its rules say
/// otherwise.
const WAITING: usize = 4_096;

/// Something that the controller wants to know.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    /// A link of this switch is congested, or is so no more.
    Link(Arc<str>, LinkEvent),
    /// A flow goes another way, as this switch sees it.
    Address(Arc<str>, AddressChange),
    /// Packets of a pair that is observed have set out, or arrive.
    Arrival(ArrivalReport),
    /// Packets do not go by the clock of any machine.
    PacketTime,
}

impl Notice {
    /// What an event at a link of this switch is to the controller. Links that carry little are none of its business, and
    /// those into a switch are told of where they come out of another.
    pub(crate) fn of_link(switch: Arc<str>, event: LinkEvent) -> Option<Notice> {
        let is_news =
            event.crossing != Crossing::Downwards && event.link.side.direction == PortDirection::Output;
        is_news.then_some(Notice::Link(switch, event))
    }
}

/// Where collectors tell. Never waits.
#[derive(Clone, Debug)]
pub(crate) struct NoticeSender {
    sender: Sender<Notice>,
    told: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
}

impl NoticeSender {
    pub(crate) fn new() -> (NoticeSender, Receiver<Notice>) {
        let (sender, receiver) = bounded(WAITING);
        (NoticeSender { sender, told: Arc::default(), lost: Arc::default() }, receiver)
    }

    /// Tells, if this is something that the controller wants to know.
    pub(crate) fn tell(&self, switch: &Arc<str>, kind: &EventKind) {
        let notice = match kind {
            EventKind::Link(event) => Notice::of_link(Arc::clone(switch), event.clone()),
            EventKind::AddressChange(change) => Some(Notice::Address(Arc::clone(switch), *change)),
            _ => None,
        };
        if let Some(notice) = notice {
            self.hear(notice);
        }
    }

    /// Takes a notice, if there is room.
    pub(crate) fn hear(&self, notice: Notice) {
        let counter = if self.sender.try_send(notice).is_ok() { &self.told } else { &self.lost };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Something was told that did not get here.
    pub(crate) fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn told(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.told)
    }

    pub(crate) fn lost(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lost)
    }
}
