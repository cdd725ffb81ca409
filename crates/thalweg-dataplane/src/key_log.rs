//! The keys of sampled packets: each CPU writes them into a ring, and never waits for the reader.
//!
//! The number of keys written tells a slow reader how many it has missed. An entry that is overwritten while it is read
//! is recognised by its sequence number or by its hash, and counts as missed.

use bytemuck::Zeroable as _;
use thalweg_sketch::{Digest, Hasher, Key};

use crate::kernel_sketches::SharedMemory;
use crate::layout::{CpuState, LOG_ENTRY_BYTES, LogEntry};

/// The reader's position in the logs of all CPUs.
#[derive(Clone, Debug)]
pub struct KeyLog {
    /// The keys read or missed, by CPU.
    read: Vec<u64>,
    missed: u64,
}

impl KeyLog {
    /// Begins with the first key ever written, or with the oldest one that the logs still have.
    pub(crate) fn new(memory: &SharedMemory, is_resumed: bool) -> KeyLog {
        let room = room(memory);
        let oldest = |cpu| if is_resumed { head(memory, cpu).saturating_sub(room) } else { 0 };
        KeyLog { read: (0..memory.states.entries()).map(oldest).collect(), missed: 0 }
    }

    /// Returns the number of keys missed so far.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Passes new keys to `take`, each with its sketch and digest.
    pub(crate) fn drain<K: Key>(
        &mut self,
        memory: &SharedMemory,
        hasher: Hasher,
        mut take: impl FnMut(usize, K, Digest),
    ) {
        let room = room(memory);
        for cpu in 0..self.read.len() {
            let head = head(memory, cpu);
            let oldest = head.saturating_sub(room);
            self.missed += oldest.saturating_sub(self.read[cpu]);
            for number in self.read[cpu].max(oldest)..head {
                match read(memory, cpu, number, hasher) {
                    Some((sketch, key, digest)) => take(sketch, key, digest),
                    None => self.missed += 1,
                }
            }
            self.read[cpu] = head;
        }
    }
}

/// The number of entries of a log.
fn room(memory: &SharedMemory) -> u64 {
    (memory.logs.value_bytes() / LOG_ENTRY_BYTES) as u64
}

fn head(memory: &SharedMemory, cpu: usize) -> u64 {
    memory.states.load(cpu, CpuState::LOG_HEAD)
}

/// Reads key `number` of a log, from 0; `None` if it was overwritten.
fn read<K: Key>(
    memory: &SharedMemory,
    cpu: usize,
    number: u64,
    hasher: Hasher,
) -> Option<(usize, K, Digest)> {
    let at = (number % room(memory)) as usize * LOG_ENTRY_BYTES;
    let mut entry = LogEntry::zeroed();
    let words: &mut [u64] = bytemuck::cast_slice_mut(std::slice::from_mut(&mut entry));
    memory.logs.read(cpu, at, words);
    if entry.sequence != number + 1 {
        return None;
    }
    let key = bytemuck::cast_slice(&entry.key).get(..usize::from(entry.length))?;
    let digest = hasher.digest(key);
    (digest.0[0] as u32 == entry.check).then_some(())?;
    Some((usize::from(entry.sketch), K::from_bytes(key)?, digest))
}
