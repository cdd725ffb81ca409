//! The requests of the packets in the emulated network, by packet id.

use crate::protocol::RequestId;

/// The request of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) endpoint: u16,
    pub(super) id: RequestId,
    /// The traffic class that the endpoint sent.
    pub(super) traffic_class: u8,
}

/// A table that grows up to its limit. Ids of packets that left the network are used again.
pub(super) struct Ledger {
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    limit: u32,
}

impl Ledger {
    pub(super) fn new(limit: u32) -> Ledger {
        Ledger { entries: Vec::new(), free: Vec::new(), limit }
    }

    /// The packets in the network.
    pub(super) fn len(&self) -> u32 {
        (self.entries.len() - self.free.len()) as u32
    }

    /// The endpoint of each packet in the network, in any order.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = u16> + '_ {
        self.entries.iter().flatten().map(|entry| entry.endpoint)
    }

    /// The maximum number of packets.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id of a new packet; `None` at the limit.
    pub(super) fn insert(&mut self, entry: Entry) -> Option<u32> {
        if let Some(id) = self.free.pop() {
            self.entries[id as usize] = Some(entry);
            return Some(id);
        }
        let id = self.entries.len() as u32;
        if id == self.limit {
            return None;
        }
        self.entries.push(Some(entry));
        Some(id)
    }

    /// Removes a packet that left the network.
    ///
    /// # Panics
    /// If it is not in the network.
    pub(super) fn remove(&mut self, id: u32) -> Entry {
        let entry = self.entries[id as usize].take().expect("a packet leaves the network once");
        self.free.push(id);
        entry
    }
}
