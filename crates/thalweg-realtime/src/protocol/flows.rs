//! The flows of an endpoint, at either side.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

use thalweg_wire::emulation_protocol::Flow;

use super::chains::Chains;

/// A hasher without a random seed: time and chance are arguments.
pub(super) type Fixed = BuildHasherDefault<DefaultHasher>;

/// The chain of unused slots.
const FREE: u32 = 0;
/// The chain of flows without packets, the one that has been idle for longest first.
const IDLE: u32 = 1;
const CHAINS: u32 = 2;

/// A flow, and what a side knows of it.
#[derive(Clone, Copy, Default)]
pub(super) struct FlowSlot<S> {
    pub(super) flow: Flow,
    pub(super) state: S,
    /// The number of packets or requests of the flow. It is idle if there are none.
    pending: u32,
    /// The latest datagram that had the flow, see [`FlowTable::mark`].
    mark: u64,
    /// The position of the flow among those of that datagram.
    rank: u32,
}

/// A table of flows in fixed memory. The flow that has been idle for longest can be evicted.
pub(super) struct FlowTable<S> {
    by_flow: HashMap<Flow, u32, Fixed>,
    slots: Box<[FlowSlot<S>]>,
    chains: Chains,
}

impl<S: Copy + Default> FlowTable<S> {
    pub(super) fn new(capacity: u32) -> FlowTable<S> {
        FlowTable {
            // A map that is at most half full never grows when entries come and go.
            by_flow: HashMap::with_capacity_and_hasher(2 * capacity as usize, Fixed::default()),
            slots: vec![FlowSlot::default(); capacity as usize].into(),
            chains: Chains::full(capacity, CHAINS),
        }
    }

    pub(super) fn find(&self, flow: &Flow) -> Option<u32> {
        self.by_flow.get(flow).copied()
    }

    pub(super) fn get(&self, slot: u32) -> &FlowSlot<S> {
        &self.slots[slot as usize]
    }

    pub(super) fn state_mut(&mut self, slot: u32) -> &mut S {
        &mut self.slots[slot as usize].state
    }

    /// Whether a new flow needs an eviction.
    pub(super) fn is_full(&self) -> bool {
        self.chains.is_empty(FREE)
    }

    /// The number of new flows for which there is room, after evictions.
    pub(super) fn room(&self) -> u32 {
        self.chains.length(FREE) + self.chains.length(IDLE)
    }

    pub(super) fn is_idle(&self, slot: u32) -> bool {
        self.chains.chain_of(slot) == Some(IDLE)
    }

    /// Removes the flow that has been idle for longest. Returns its state, or none if no flow is idle.
    pub(super) fn evict(&mut self) -> Option<S> {
        let slot = self.chains.pop_front(IDLE)?;
        self.chains.push_back(FREE, slot);
        let evicted = &self.slots[slot as usize];
        self.by_flow.remove(&evicted.flow);
        Some(evicted.state)
    }

    /// Adds an idle flow that is not in the table, which is not full.
    pub(super) fn insert(&mut self, flow: Flow, state: S) -> u32 {
        let slot = self.chains.pop_front(FREE).expect("the caller has made room");
        self.chains.push_back(IDLE, slot);
        self.slots[slot as usize] = FlowSlot { flow, state, ..FlowSlot::default() };
        self.by_flow.insert(flow, slot);
        slot
    }

    /// Makes an idle flow the last to be evicted.
    pub(super) fn touch(&mut self, slot: u32) {
        if self.is_idle(slot) {
            self.chains.push_back(IDLE, slot);
        }
    }

    /// A packet of the flow begins.
    pub(super) fn hold(&mut self, slot: u32) {
        self.slots[slot as usize].pending += 1;
        self.chains.remove(slot);
    }

    /// A packet of the flow has ended.
    pub(super) fn release(&mut self, slot: u32) {
        let pending = &mut self.slots[slot as usize].pending;
        *pending -= 1;
        if *pending == 0 {
            self.chains.push_back(IDLE, slot);
        }
    }

    /// Removes all flows.
    pub(super) fn clear(&mut self) {
        self.by_flow.clear();
        (0..self.slots.len() as u32).for_each(|slot| self.chains.push_back(FREE, slot));
    }

    /// The position of a flow among those of a datagram: that of its first packet or request. `ranks` counts the
    /// flows so far. Returns also whether the flow is new in the datagram. Datagrams are numbered from 1.
    pub(super) fn mark(&mut self, slot: u32, datagram: u64, ranks: &mut u32) -> (u32, bool) {
        let marked = &mut self.slots[slot as usize];
        let is_new = marked.mark != datagram;
        if is_new {
            (marked.mark, marked.rank) = (datagram, *ranks);
            *ranks += 1;
        }
        (marked.rank, is_new)
    }
}
