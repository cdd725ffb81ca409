//! The slot in which each packet entered the network, for those who report how long it was in it.

use crate::slot::Slot;

/// Slots by packet id. Memory: 8 bytes for each id up to the highest.
#[derive(Clone, Debug, Default)]
pub struct EntrySlots(Vec<Slot>);

impl EntrySlots {
    /// A packet enters the network.
    #[inline]
    pub fn enter(&mut self, id: u32, slot: Slot) {
        let id = id as usize;
        if id >= self.0.len() {
            self.0.resize(id + 1, Slot(0));
        }
        self.0[id] = slot;
    }

    /// The slots that a packet was in the network, if it left by the start of `now`; 0 for one that never entered.
    #[inline]
    pub fn since(&self, id: u32, now: Slot) -> u64 {
        self.0.get(id as usize).map_or(0, |entered| now.0.saturating_sub(entered.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_since_the_entry_are_counted_by_id() {
        let mut entries = EntrySlots::default();
        entries.enter(5, Slot(10));
        entries.enter(2, Slot(11));
        assert_eq!(
            (entries.since(5, Slot(13)), entries.since(2, Slot(13)), entries.since(9, Slot(13))),
            (3, 2, 0)
        );
        entries.enter(5, Slot(20));
        assert_eq!(entries.since(5, Slot(21)), 1);
    }
}
