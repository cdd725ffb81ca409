//! Queueing disciplines and classes of one interface: lists, first-in-first-out queues, raw copies, removal.

use thalweg_wire::Bytes;

use super::{FIRST_OF_ALL_PROTOCOLS, HEADER_LENGTH, QueueCounters, ROOT, queue_request};
use crate::netlink::message::{find, text, u32_at};
use crate::netlink::{Netlink, NetlinkError};

/// A handle of a queue or class: the major number in the upper 16 bits, the minor number in the lower.
pub const fn handle(major: u16, minor: u16) -> u32 {
    (major as u32) << 16 | minor as u32
}

/// A queueing discipline of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// The kind: `htb`, `fq_codel`.
    pub kind: String,
    /// The handle; 0 for a queue that the kernel chose.
    pub handle: u32,
    /// The handle of the class that it belongs to; `None` at the root.
    pub parent: Option<u32>,
    /// The options, as the kernel prints and accepts them.
    pub options: Vec<u8>,
    /// The counters.
    pub counters: QueueCounters,
}

/// A class of a queueing discipline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// The kind: `htb`.
    pub kind: String,
    /// The class.
    pub handle: u32,
    /// The options.
    pub options: Vec<u8>,
    /// The counters. Bytes and packets count when they leave the queue.
    pub counters: QueueCounters,
}

impl Netlink {
    /// Returns the queues of an interface, except `clsact` and `ingress`.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn queues(&self, interface: u32) -> Result<Vec<Queue>, NetlinkError> {
        let request = queue_request(libc::RTM_GETQDISC, 0, 0, 0, 0);
        let responses = self.list(request, || "list queues".to_owned())?;
        let queue = |payload: &[u8]| {
            let of = u32_at(payload, 4)?;
            let (kind, options, counters) = described(payload)?;
            let (handle, parent) = (u32_at(payload, 8)?, u32_at(payload, 12)?);
            let parent = (parent != ROOT).then_some(parent);
            let is_hook = matches!(kind.as_str(), "clsact" | "ingress");
            (of == interface && !is_hook).then_some(Queue { kind, handle, parent, options, counters })
        };
        let queues = responses.iter().filter(|response| response.kind == libc::RTM_NEWQDISC);
        Ok(queues.filter_map(|response| queue(&response.payload)).collect())
    }

    /// Returns the classes of the queues of an interface.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn classes(&self, interface: u32) -> Result<Vec<Class>, NetlinkError> {
        let request = queue_request(libc::RTM_GETTCLASS, interface, 0, 0, 0);
        let responses = self.list(request, || format!("list the classes of interface {interface}"))?;
        let class = |payload: &[u8]| {
            let (kind, options, counters) = described(payload)?;
            Some(Class { kind, handle: u32_at(payload, 8)?, options, counters })
        };
        let classes = responses.iter().filter(|response| response.kind == libc::RTM_NEWTCLASS);
        Ok(classes.filter_map(|response| class(&response.payload)).collect())
    }

    /// Sets a first-in-first-out queue that holds at most `limit` bytes, as the queue `own` of the class `parent`.
    ///
    /// # Errors
    /// If the class does not exist, or this process lacks the privilege.
    pub fn set_fifo(&self, interface: u32, parent: u32, own: u32, limit: Bytes) -> Result<(), NetlinkError> {
        let limit = u32::try_from(limit.0).unwrap_or(u32::MAX).to_ne_bytes();
        let mut request = queue_request(libc::RTM_NEWQDISC, interface, own, parent, 0);
        request.text(libc::TCA_KIND, "bfifo");
        request.attribute(libc::TCA_OPTIONS, &limit);
        self.set_queue(request, interface)
    }

    /// Sets the root queue of an interface to one that [`queues`](Self::queues) returned.
    ///
    /// # Errors
    /// If the kernel does not accept these options, or this process lacks the privilege.
    pub fn set_root_queue(&self, interface: u32, queue: &Queue) -> Result<(), NetlinkError> {
        let mut request = queue_request(libc::RTM_NEWQDISC, interface, queue.handle, ROOT, 0);
        request.text(libc::TCA_KIND, &queue.kind);
        if !queue.options.is_empty() {
            request.attribute(libc::TCA_OPTIONS, &queue.options);
        }
        self.set_queue(request, interface)
    }

    /// Deletes the root queue of an interface, with its classes. The kernel replaces it by its default.
    ///
    /// # Errors
    /// If the interface has only the default queue, or this process lacks the privilege.
    pub fn delete_root_queue(&self, interface: u32) -> Result<(), NetlinkError> {
        let request = queue_request(libc::RTM_DELQDISC, interface, 0, ROOT, 0);
        self.request(request, 0, || format!("delete the queue of interface {interface}")).map(drop)
    }
}

/// Returns kind, options and counters of a queue or class.
fn described(payload: &[u8]) -> Option<(String, Vec<u8>, QueueCounters)> {
    let attributes = payload.get(HEADER_LENGTH..)?;
    let kind = text(find(attributes, libc::TCA_KIND)?);
    let options = find(attributes, libc::TCA_OPTIONS).unwrap_or_default().to_vec();
    let mut counters = QueueCounters::default();
    if let Some(statistics) = find(attributes, libc::TCA_STATS2) {
        counters.read_statistics(statistics)?;
    }
    Some((kind, options, counters))
}

/// Returns `tcm_info` of a filter for all protocols with this priority.
pub(super) const fn filter_info(priority: u16) -> u32 {
    (priority as u32) << 16 | FIRST_OF_ALL_PROTOCOLS & 0xffff
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_handle_has_the_major_number_first() {
        assert_eq!(handle(0x7468, 0x20), 0x7468_0020);
        assert_eq!(filter_info(1), FIRST_OF_ALL_PROTOCOLS);
    }

    #[test]
    fn the_loopback_interface_has_no_classes() {
        let netlink = Netlink::open().unwrap();
        let lo = netlink.interface("lo").unwrap();
        assert_eq!(netlink.classes(lo).unwrap(), []);
        assert!(netlink.queues(lo).unwrap().iter().all(|queue| queue.parent.is_none()));
    }

    proptest! {
        #[test]
        fn any_bytes_parse_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            described(&bytes);
        }
    }
}
