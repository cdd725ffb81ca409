//! The counters of all CPUs at one moment, and the difference of two snapshots: a window.
//!
//! Counters only grow, modulo their range, so a window is the difference of two snapshots and nothing is stopped or
//! cleared. Totals are read before counters: packets that arrive while a snapshot is read ([`Snapshot::skew`]) may have their
//! counters in one window and their number in the next.

use bytemuck::{Pod, Zeroable, cast_slice_mut, from_bytes};
use thalweg_sketch::{Probability, Uncounted};

use crate::kernel_sketches::SharedMemory;
use crate::layout::{Config, CpuState, PROBABILITIES, REASONS, STATE_BYTES, Sampling};
use crate::reason::Reason;
use crate::spec::{SketchKind, SketchSpec, Specification};

/// The sums of all CPUs at one moment, since the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    pub(crate) totals: Totals,
    pub(crate) sketches: Vec<SketchSnapshot>,
    /// The packets that arrived while the snapshot was read.
    pub skew: u64,
}

/// Totals of frames.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Totals {
    /// All frames.
    pub packets: u64,
    /// Their bytes on the wire, without check sequences.
    pub bytes: u64,
    /// The packets that were parsed because a sketch sampled them.
    pub parsed: u64,
    /// Of them later fragments, which count for ports zero.
    pub fragments: u64,
    /// Of them those that count for ports zero because their ports are beyond the first 512 bytes.
    pub portless: u64,
    /// Of them those whose stated IP length is longer than their frame.
    pub beyond: u64,
    pub(crate) ip_bytes: u64,
    reasons: [u64; REASONS],
    reason_bytes: [u64; REASONS],
    pub(crate) largest: u64,
    pub(crate) largest_ip: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SketchSnapshot {
    pub(crate) sampling: SamplingTotals,
    pub(crate) cells: Cells,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct SamplingTotals {
    pub(crate) pairs: [u64; PROBABILITIES],
    pub(crate) squares: [u64; PROBABILITIES],
    uncounted: [u64; PROBABILITIES],
    pub(crate) excess: u64,
    pub(crate) excess_squares: u64,
}

/// Counters of a sketch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cells {
    Packets(Vec<i32>),
    Bytes(Vec<i64>),
    Registers(Vec<u8>),
}

impl Snapshot {
    /// Reads totals and counters of all CPUs. Registers are those of `bank`.
    pub(crate) fn read(
        memory: &SharedMemory,
        specification: &Specification,
        config: &Config,
        bank: u32,
    ) -> Snapshot {
        let (mut totals, mut sampling) =
            (Totals::default(), vec![SamplingTotals::default(); specification.sketches.len()]);
        for cpu in 0..memory.states.entries() {
            let state = cpu_state(memory, cpu);
            totals.add(&state);
            for (number, sum) in sampling.iter_mut().enumerate() {
                let rows = specification.sketches[number].kind.rows() as u64;
                sum.add(&state.sampling[number], rows, &state);
            }
        }
        let cells = specification.sketches.iter().zip(config.bases());
        let cells: Vec<Cells> = cells.map(|(sketch, base)| Cells::read(memory, sketch, base, bank)).collect();
        let after: u64 = (0..memory.states.entries()).map(|cpu| memory.states.load(cpu, 0)).sum();
        let sketches =
            sampling.into_iter().zip(cells).map(|(sampling, cells)| SketchSnapshot { sampling, cells });
        Snapshot { sketches: sketches.collect(), skew: after.wrapping_sub(totals.packets), totals }
    }

    /// Returns the snapshot of sketches that have counted nothing.
    pub(crate) fn empty(specification: &Specification) -> Snapshot {
        let sketch = |sketch: &SketchSpec| SketchSnapshot {
            sampling: SamplingTotals::default(),
            cells: Cells::empty(sketch),
        };
        let sketches = specification.sketches.iter().map(sketch).collect();
        Snapshot { totals: Totals::default(), sketches, skew: 0 }
    }

    /// Returns the totals.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns what was counted since `before`.
    pub(crate) fn since(&self, before: &Snapshot) -> Snapshot {
        let sketches = self.sketches.iter().zip(&before.sketches);
        Snapshot {
            totals: self.totals.since(&before.totals),
            sketches: sketches.map(|(now, before)| now.since(before)).collect(),
            skew: self.skew.max(before.skew),
        }
    }

    /// Returns the snapshot as words, for a later process. Registers are not part of it: each bank has one window.
    pub(crate) fn to_words(&self) -> Vec<u64> {
        let mut words = vec![self.skew];
        words.extend_from_slice(bytemuck::cast_slice(&[self.totals]));
        for sketch in &self.sketches {
            words.extend_from_slice(bytemuck::cast_slice(&[sketch.sampling]));
            match &sketch.cells {
                Cells::Packets(cells) => words.extend(cells.chunks(2).map(|pair| {
                    let half = |cell: Option<&i32>| u64::from(cell.copied().unwrap_or(0) as u32);
                    half(pair.first()) | half(pair.get(1)) << 32
                })),
                Cells::Bytes(cells) => words.extend(cells.iter().map(|&cell| cell as u64)),
                Cells::Registers(_) => {}
            }
        }
        words
    }

    /// Returns the snapshot of [`to_words`](Self::to_words); `None` if there are too few words.
    pub(crate) fn from_words(specification: &Specification, words: &[u64]) -> Option<Snapshot> {
        let mut snapshot = Snapshot::empty(specification);
        let (first, mut rest) = words.split_first()?;
        snapshot.skew = *first;
        let mut take = |count: usize| {
            let (taken, others) = rest.split_at_checked(count)?;
            rest = others;
            Some(taken)
        };
        snapshot.totals = *bytemuck::from_bytes(bytemuck::cast_slice(take(size_of::<Totals>() / 8)?));
        for sketch in &mut snapshot.sketches {
            let sampling = take(size_of::<SamplingTotals>() / 8)?;
            sketch.sampling = *bytemuck::from_bytes(bytemuck::cast_slice(sampling));
            match &mut sketch.cells {
                Cells::Packets(cells) => {
                    let words = take(cells.len().div_ceil(2))?;
                    let halves = words.iter().flat_map(|&word| [word as u32 as i32, (word >> 32) as i32]);
                    cells.iter_mut().zip(halves).for_each(|(cell, half)| *cell = half);
                }
                Cells::Bytes(cells) => {
                    let words = take(cells.len())?;
                    cells.iter_mut().zip(words).for_each(|(cell, &word)| *cell = word as i64);
                }
                Cells::Registers(_) => {}
            }
        }
        Some(snapshot)
    }

    /// Returns the counter of a sketch at a position.
    pub(crate) fn cell(&self, sketch: usize, position: usize) -> i64 {
        match &self.sketches[sketch].cells {
            Cells::Packets(cells) => cells[position].into(),
            Cells::Bytes(cells) => cells[position],
            Cells::Registers(registers) => registers[position].into(),
        }
    }
}

/// Reads the state of a CPU.
pub(crate) fn cpu_state(memory: &SharedMemory, cpu: usize) -> CpuState {
    let mut words = [0u64; STATE_BYTES / 8];
    let used = size_of::<CpuState>() / 8;
    memory.states.read(cpu, 0, &mut words[..used]);
    *from_bytes(&bytemuck::cast_slice(&words)[..size_of::<CpuState>()])
}

impl Totals {
    fn add(&mut self, state: &CpuState) {
        self.packets = self.packets.wrapping_add(state.packets);
        self.bytes = self.bytes.wrapping_add(state.bytes);
        self.parsed = self.parsed.wrapping_add(state.parsed);
        self.fragments = self.fragments.wrapping_add(state.fragments);
        self.portless = self.portless.wrapping_add(state.portless);
        self.ip_bytes = self.ip_bytes.wrapping_add(state.ip_bytes);
        self.beyond = self.beyond.wrapping_add(state.beyond);
        for (sum, reason) in self.reasons.iter_mut().zip(state.reasons) {
            *sum = sum.wrapping_add(reason);
        }
        for (sum, bytes) in self.reason_bytes.iter_mut().zip(state.reason_bytes) {
            *sum = sum.wrapping_add(bytes);
        }
        self.largest = self.largest.max(state.largest);
        self.largest_ip = self.largest_ip.max(state.largest_ip);
    }

    fn since(&self, before: &Totals) -> Totals {
        Totals {
            packets: self.packets.wrapping_sub(before.packets),
            bytes: self.bytes.wrapping_sub(before.bytes),
            parsed: self.parsed.wrapping_sub(before.parsed),
            fragments: self.fragments.wrapping_sub(before.fragments),
            portless: self.portless.wrapping_sub(before.portless),
            ip_bytes: self.ip_bytes.wrapping_sub(before.ip_bytes),
            beyond: self.beyond.wrapping_sub(before.beyond),
            reasons: std::array::from_fn(|n| self.reasons[n].wrapping_sub(before.reasons[n])),
            reason_bytes: std::array::from_fn(|n| self.reason_bytes[n].wrapping_sub(before.reason_bytes[n])),
            // The longest packet since the start: no shorter than that of the window.
            largest: self.largest,
            largest_ip: self.largest_ip,
        }
    }

    /// Returns the number of parsed packets that were not counted for a reason.
    pub fn uncounted(&self, reason: Reason) -> u64 {
        self.reasons[reason.index()]
    }

    /// Returns the bytes of these frames.
    pub fn uncounted_bytes(&self, reason: Reason) -> u64 {
        self.reason_bytes[reason.index()]
    }
}

impl SamplingTotals {
    /// Adds the sampling of a CPU. The pairs since the last updated one belong to the gap that is running.
    fn add(&mut self, sampling: &Sampling, rows: u64, state: &CpuState) {
        let decided: u64 = sampling.pairs.iter().sum();
        let squares: u64 = sampling.squares.iter().fold(0, |sum, squares| sum.wrapping_add(*squares));
        for number in 0..PROBABILITIES {
            self.pairs[number] = self.pairs[number].wrapping_add(sampling.pairs[number]);
            self.squares[number] = self.squares[number].wrapping_add(sampling.squares[number]);
            self.uncounted[number] = self.uncounted[number].wrapping_add(sampling.uncounted[number]);
        }
        let running = (sampling.log2 as usize).min(PROBABILITIES - 1);
        let pairs = state.packets.wrapping_mul(rows).saturating_sub(decided);
        self.pairs[running] = self.pairs[running].wrapping_add(pairs);
        self.squares[running] = self.squares[running].wrapping_add(state.squares.wrapping_sub(squares));
        self.excess = self.excess.wrapping_add(sampling.excess);
        self.excess_squares = self.excess_squares.wrapping_add(sampling.excess_squares);
    }

    fn since(&self, before: &SamplingTotals) -> SamplingTotals {
        let difference = |now: &[u64; PROBABILITIES], before: &[u64; PROBABILITIES]| {
            std::array::from_fn(|number| now[number].wrapping_sub(before[number]))
        };
        SamplingTotals {
            pairs: difference(&self.pairs, &before.pairs),
            squares: difference(&self.squares, &before.squares),
            uncounted: difference(&self.uncounted, &before.uncounted),
            excess: self.excess.wrapping_sub(before.excess),
            excess_squares: self.excess_squares.wrapping_sub(before.excess_squares),
        }
    }

    /// Returns the probabilities in use.
    pub(crate) fn probabilities(&self) -> Vec<Probability> {
        let used = (0..PROBABILITIES).filter(|&number| self.pairs[number] > 0);
        used.filter_map(|number| Probability::new(number as u8)).collect()
    }

    pub(crate) fn uncounted(&self) -> Uncounted {
        let mut uncounted = Uncounted::default();
        self.add_uncounted(&mut uncounted);
        uncounted
    }

    pub(crate) fn add_uncounted(&self, sum: &mut Uncounted) {
        for (number, &pairs) in self.uncounted.iter().enumerate() {
            if let Some(probability) = Probability::new(number as u8) {
                sum.record(pairs, probability);
            }
        }
    }
}

impl SketchSnapshot {
    fn since(&self, before: &SketchSnapshot) -> SketchSnapshot {
        let cells = match (&self.cells, &before.cells) {
            (Cells::Packets(now), Cells::Packets(before)) => Cells::Packets(
                now.iter().zip(before).map(|(now, before)| now.wrapping_sub(*before)).collect(),
            ),
            (Cells::Bytes(now), Cells::Bytes(before)) => {
                Cells::Bytes(now.iter().zip(before).map(|(now, before)| now.wrapping_sub(*before)).collect())
            }
            // A bank of registers has one window only.
            (now, _) => now.clone(),
        };
        SketchSnapshot { sampling: self.sampling.since(&before.sampling), cells }
    }
}

impl Cells {
    fn empty(sketch: &SketchSpec) -> Cells {
        let counters = sketch.bytes() as usize / sketch.counter_bytes();
        match (sketch.kind, sketch.counts_bytes) {
            (SketchKind::HyperLogLog { precision }, _) => Cells::Registers(vec![0; 1 << precision]),
            (_, true) => Cells::Bytes(vec![0; counters]),
            (_, false) => Cells::Packets(vec![0; counters]),
        }
    }

    fn read(memory: &SharedMemory, sketch: &SketchSpec, base: usize, bank: u32) -> Cells {
        let cpus = memory.cells.entries();
        if let SketchKind::HyperLogLog { precision } = sketch.kind {
            let mut registers = vec![0u8; 1 << precision];
            let mut one = vec![0u64; registers.len().div_ceil(8)];
            for cpu in 0..cpus {
                memory.cells.read(cpu, base + (bank as usize & 1) * registers.len(), &mut one);
                let of_cpu: &[u8] = bytemuck::cast_slice(&one);
                registers
                    .iter_mut()
                    .zip(of_cpu)
                    .for_each(|(register, other)| *register = (*register).max(*other));
            }
            return Cells::Registers(registers);
        }
        let counters = sketch.bytes() as usize / sketch.counter_bytes();
        match sketch.counts_bytes {
            true => {
                let (mut sums, mut one) = (vec![0i64; counters], vec![0u64; counters]);
                for cpu in 0..cpus {
                    memory.cells.read(cpu, base, &mut one);
                    sums.iter_mut().zip(&one).for_each(|(sum, cell)| *sum = sum.wrapping_add(*cell as i64));
                }
                Cells::Bytes(sums)
            }
            false => {
                let (mut sums, mut one) = (vec![0i32; counters], vec![0u64; counters.div_ceil(2)]);
                for cpu in 0..cpus {
                    memory.cells.read(cpu, base, &mut one);
                    let of_cpu: &mut [i32] = cast_slice_mut(&mut one);
                    sums.iter_mut().zip(of_cpu).for_each(|(sum, cell)| *sum = sum.wrapping_add(*cell));
                }
                Cells::Packets(sums)
            }
        }
    }
}
