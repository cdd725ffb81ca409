//! The requests of each flow that have arrived.

use thalweg_wire::emulation_protocol::FLOW_WINDOW;

const WORDS: usize = FLOW_WINDOW as usize / u64::BITS as usize;

/// A bit for each index in the window of each flow: 512 bytes per flow.
pub(super) struct Seen {
    bits: Box<[u64]>,
}

impl Seen {
    pub(super) fn new(flows: u32) -> Seen {
        Seen { bits: vec![0; flows as usize * WORDS].into() }
    }

    /// Forgets all requests of a flow.
    pub(super) fn reset(&mut self, flow: u32) {
        let start = flow as usize * WORDS;
        self.bits[start..start + WORDS].fill(0);
    }

    /// The word and bit of an index.
    fn place(flow: u32, index: u64) -> (usize, u64) {
        let bit = index % FLOW_WINDOW;
        (flow as usize * WORDS + (bit / 64) as usize, 1 << (bit % 64))
    }

    /// Whether an index in the window has arrived.
    pub(super) fn contains(&self, flow: u32, index: u64) -> bool {
        let (word, bit) = Seen::place(flow, index);
        self.bits[word] & bit != 0
    }

    pub(super) fn insert(&mut self, flow: u32, index: u64) {
        let (word, bit) = Seen::place(flow, index);
        self.bits[word] |= bit;
    }

    /// Moves the window: its lowest index was `from` and is `to`, which is not lower.
    pub(super) fn advance(&mut self, flow: u32, from: u64, to: u64) {
        if to - from >= FLOW_WINDOW {
            return self.reset(flow);
        }
        for index in from..to {
            let (word, bit) = Seen::place(flow, index);
            self.bits[word] &= !bit;
        }
    }
}
