//! CFINF: cheetah-flow identification as published (the heavy-hitter dissertation, University of Virginia 2018,
//! section 3.2.3, Algorithms 1 to 4), with the names of its Table 3.1.
//!
//! A flow has an entry in the flow cache from the first packet of a flight. The first packet that comes `T` or more
//! after it closes the flight. If `r = b / d` is above `R`, the flow is a cheetah and its entry stays; if not, the
//! entry is deleted and the flow's next packet begins a new one. When the cache is full, the least recently used
//! entry is evicted; the eviction of a cheetah's entry is its reported end.
//!
//! **What it misses, by design.** A burst that straddles two flights is cut in two halves, and a flight that the
//! flow's next packet closes late is divided by a `d` much longer than `T`. Our own [`super::sliding_window`] has
//! neither gap.
//!
//! **Choices that the text leaves open.** The packet that closes a flight belongs to it (equation 3.1) and does not
//! begin the next one. Equation 3.1 closes a flight at `tau_n - tau_1 >= T` and divides its bytes by `T`; Algorithm 3
//! closes it at `d > T` and divides by `d`. We close at `d >= T` and divide by `d`.
//!
//! Memory: see [`Cfinf::bytes`]; about 100 bytes per entry. Cost: a hash lookup and two list writes per packet.

use thiserror::Error;

use super::{Cheetah, CheetahEnd, CheetahThreshold, Finding, ThresholdError};
use crate::memory::MemoryError;
use crate::slot_index::SlotIndex;
use thalweg_wire::{BitRate, Bytes, Direction, FlowKey, HashSeed, Packet, Protocol, Timestamp};

/// No entry; the end of the LRU list.
const NIL: u32 = u32::MAX;

/// The algorithm's parameters: `{L, S, T, R}`, the protocol filter, and the size of the flow cache.
#[derive(Clone, Debug, PartialEq)]
pub struct CfinfParameters {
    /// `T` and `R`.
    pub threshold: CheetahThreshold,
    /// `L`: a packet shorter than this, in bytes of the IP layer, begins no entry. 0 disables the test.
    pub packet_length_threshold: u32,
    /// `S`: the probability that a packet begins an entry, once it has passed the other tests. 1 disables sampling.
    pub sampling_probability: f64,
    /// Protocols that begin no entry. ICMP and ICMPv6 by default, as in the text.
    pub dropped_protocols: Vec<Protocol>,
    /// The number of entries in the flow cache. 50,000 was best in the dissertation's evaluation (section 3.4).
    pub flow_cache_entries: u32,
}

impl Default for CfinfParameters {
    fn default() -> Self {
        CfinfParameters {
            threshold: CheetahThreshold::default(),
            packet_length_threshold: 0,
            sampling_probability: 1.0,
            dropped_protocols: vec![Protocol::ICMP, Protocol::ICMPV6],
            flow_cache_entries: 50_000,
        }
    }
}

/// Why CFINF could not be set up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CfinfError {
    /// The threshold is invalid.
    #[error(transparent)]
    Threshold(#[from] ThresholdError),
    /// `S` is not a probability.
    #[error("sampling probability {0}: expected a number above 0 and at most 1")]
    SamplingProbability(f64),
    /// The size of the flow cache is out of range.
    #[error("flow cache of {0} entries: expected 1 to 2^31")]
    FlowCacheEntries(u32),
    /// The flow cache did not fit into memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// Counters of packets and entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CfinfCounters {
    /// Packets without an entry, dropped for their protocol.
    pub protocol_drops: u64,
    /// Packets without an entry, dropped for their length (`L`).
    pub length_drops: u64,
    /// Packets without an entry, dropped by sampling (`S`).
    pub sampling_drops: u64,
    /// Entries created.
    pub created: u64,
    /// Entries deleted because their flight stayed below `R`.
    pub deleted: u64,
    /// Entries evicted from a full cache.
    pub evictions: u64,
    /// Cheetahs reported.
    pub cheetahs: u64,
}

impl std::ops::AddAssign for CfinfCounters {
    fn add_assign(&mut self, other: CfinfCounters) {
        self.protocol_drops += other.protocol_drops;
        self.length_drops += other.length_drops;
        self.sampling_drops += other.sampling_drops;
        self.created += other.created;
        self.deleted += other.deleted;
        self.evictions += other.evictions;
        self.cheetahs += other.cheetahs;
    }
}

/// `FC[f]`: a flow cache entry.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// `f`.
    flow: FlowKey,
    hash: u64,
    /// `tau_1`.
    first: Timestamp,
    /// `tau_p`.
    last: Timestamp,
    /// `p`.
    packets: u64,
    /// `b`.
    bytes: u64,
    state: State,
    /// Neighbours in the LRU list.
    newer: u32,
    older: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Monitored,
    Cheetah,
}

/// The network function: packets in, findings out.
#[derive(Debug)]
pub struct Cfinf {
    parameters: CfinfParameters,
    seed: HashSeed,
    /// The state of the random number generator for `S`.
    random: u64,
    index: SlotIndex,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// The ends of the LRU list.
    front: u32,
    back: u32,
    counters: CfinfCounters,
}

impl Cfinf {
    /// Creates the network function. `seed` seeds hash and sampling: the same seed and packets give the same
    /// findings.
    ///
    /// # Errors
    /// If a parameter is out of range, or the flow cache does not fit into memory.
    pub fn new(parameters: CfinfParameters, seed: u64) -> Result<Self, CfinfError> {
        parameters.threshold.validate()?;
        let s = parameters.sampling_probability;
        if !(s > 0.0 && s <= 1.0) {
            return Err(CfinfError::SamplingProbability(s));
        }
        let capacity = parameters.flow_cache_entries;
        if capacity == 0 || capacity > 1 << 31 {
            return Err(CfinfError::FlowCacheEntries(capacity));
        }
        Ok(Cfinf {
            index: SlotIndex::new(capacity as usize)?,
            entries: Vec::with_capacity(capacity as usize),
            free: Vec::new(),
            front: NIL,
            back: NIL,
            counters: CfinfCounters::default(),
            seed: HashSeed::new(seed),
            random: seed | 1,
            parameters,
        })
    }

    /// Returns the counters.
    pub fn counters(&self) -> CfinfCounters {
        self.counters
    }

    /// Returns the memory of a full cache.
    pub fn bytes(&self) -> Bytes {
        let entries = self.parameters.flow_cache_entries as usize * (size_of::<Entry>() + size_of::<u32>());
        self.index.bytes() + Bytes(entries as u64)
    }

    /// Algorithm 1: handles one packet and appends findings.
    pub fn handle(&mut self, packet: &Packet, findings: &mut Vec<Finding>) {
        let hash = self.hash(&packet.key);
        match self.index.find(hash, |slot| self.entries[slot as usize].flow == packet.key) {
            None => self.add(packet, hash, findings),
            Some(slot) => self.update(slot, packet, findings),
        }
    }

    /// Reports the end of every cheetah that is still in the cache, the least recently used first, and empties the
    /// cache.
    pub fn finish(&mut self, findings: &mut Vec<Finding>) {
        while self.back != NIL {
            self.evict(findings);
        }
    }

    /// The two directions of a flow count as two flows here.
    fn hash(&self, key: &FlowKey) -> u64 {
        let symmetric = key.symmetric_hash(&self.seed);
        if key.direction() == Direction::Forward { symmetric } else { !symmetric }
    }

    /// Algorithm 2: adds an entry for a packet without one, unless a test drops it.
    fn add(&mut self, packet: &Packet, hash: u64, findings: &mut Vec<Finding>) {
        if self.parameters.dropped_protocols.contains(&packet.key.protocol) {
            self.counters.protocol_drops += 1;
            return;
        }
        if packet.ip_length < self.parameters.packet_length_threshold {
            self.counters.length_drops += 1;
            return;
        }
        if self.parameters.sampling_probability < 1.0 && self.draw() > self.parameters.sampling_probability {
            self.counters.sampling_drops += 1;
            return;
        }
        if self.entries.len() - self.free.len() == self.parameters.flow_cache_entries as usize {
            self.counters.evictions += 1;
            self.evict(findings);
        }
        let entry = Entry {
            flow: packet.key,
            hash,
            first: packet.time,
            last: packet.time,
            packets: 1,
            bytes: u64::from(packet.ip_length),
            state: State::Monitored,
            newer: NIL,
            older: NIL,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.index.insert(hash, slot);
        self.push_front(slot);
        self.counters.created += 1;
    }

    /// Algorithm 3: counts a packet in its entry; closes the flight if it has lasted `T`.
    fn update(&mut self, slot: u32, packet: &Packet, findings: &mut Vec<Finding>) {
        self.unlink(slot);
        self.push_front(slot);
        let entry = &mut self.entries[slot as usize];
        entry.last = packet.time;
        entry.packets += 1;
        entry.bytes += u64::from(packet.ip_length);
        let d = entry.last - entry.first;
        if entry.state == State::Cheetah || d < self.parameters.threshold.flight_duration {
            return;
        }
        let r = BitRate::of(Bytes(entry.bytes), d);
        if r > self.parameters.threshold.rate_threshold {
            entry.state = State::Cheetah;
            self.counters.cheetahs += 1;
            findings.push(Finding::Began(Cheetah {
                key: entry.flow,
                first: entry.first,
                detected: packet.time,
                rate: r,
                bytes: Bytes(entry.bytes),
            }));
        } else {
            self.counters.deleted += 1;
            self.delete(slot);
        }
    }

    /// Algorithm 4: evicts the least recently used entry; if it was a cheetah, reports its end.
    fn evict(&mut self, findings: &mut Vec<Finding>) {
        let slot = self.back;
        let entry = self.entries[slot as usize];
        if entry.state == State::Cheetah {
            findings.push(Finding::Ended(CheetahEnd {
                key: entry.flow,
                first: entry.first,
                last: entry.last,
                packets: entry.packets,
                bytes: Bytes(entry.bytes),
            }));
        }
        self.delete(slot);
    }

    fn delete(&mut self, slot: u32) {
        self.unlink(slot);
        self.index.remove(self.entries[slot as usize].hash, slot);
        self.free.push(slot);
    }

    fn push_front(&mut self, slot: u32) {
        let next = std::mem::replace(&mut self.front, slot);
        let entry = &mut self.entries[slot as usize];
        (entry.newer, entry.older) = (NIL, next);
        match next {
            NIL => self.back = slot,
            next => self.entries[next as usize].newer = slot,
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Entry { newer, older, .. } = self.entries[slot as usize];
        match newer {
            NIL => self.front = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NIL => self.back = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }

    /// Returns a number from [0, 1): xorshift64* (Vigna 2016).
    fn draw(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let bits = self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11;
        bits as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests;
