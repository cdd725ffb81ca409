//! Reads windows from sketches in the kernel, with the candidates for their largest keys.
//!
//! The programs write the keys of sampled packets into logs. The reader offers each key to a top-k with its current
//! estimate, which it reads from the counters in the kernel, less those at the beginning of the window. So candidates are
//! found as by `Nitro` in user space, except for keys that the reader misses because it polls too seldom; they are
//! counted ([`ReadWindow::missed_keys`]).

use thalweg_sketch::{Columns, Digest, Key, LineRate, Probability, TopK};

use crate::kernel_sketches::{KernelSketches, SharedMemory};
use crate::key_log::KeyLog;
use crate::layout::{Config, Control, CpuState};
use crate::snapshot::Snapshot;
use crate::spec::{MAX_SKETCHES, SketchKind, Specification};
use crate::window::Window;

/// Options of a reader.
#[derive(Clone, Debug, Default)]
pub struct ReaderOptions {
    /// The number of keys to track beside each sketch; per level for UnivMon. 0 tracks none.
    pub keys: Vec<usize>,
    /// AlwaysLineRate: adapts the probability of all sampled sketches to the packet rate.
    pub line_rate: Option<LineRate>,
}

/// Reads sketches that the kernel counts.
#[derive(Debug)]
pub struct Reader<K: Key> {
    specification: Specification,
    config: Config,
    memory: SharedMemory,
    log: KeyLog,
    /// Keys missed before the current window.
    missed_before: u64,
    candidates: Vec<Candidates<K>>,
    before: Snapshot,
    bank: u32,
    rate: Option<RateControl>,
}

/// A window with the candidates of its sketches.
#[derive(Clone, Debug)]
pub struct ReadWindow<K: Key> {
    /// The sketches.
    pub window: Window,
    /// The candidates of each sketch.
    pub keys: Vec<Vec<(K, Digest)>>,
    /// The keys that were sampled but overwritten before they were read.
    pub missed_keys: u64,
}

/// The candidates of a sketch, by level.
#[derive(Debug)]
struct Candidates<K: Key> {
    levels: Vec<TopK<K>>,
    columns: Option<Columns>,
    base: usize,
    rows: usize,
    width: usize,
    is_signed: bool,
    is_wide: bool,
}

/// The probability that AlwaysLineRate has chosen.
#[derive(Clone, Copy, Debug)]
struct RateControl {
    line_rate: LineRate,
    epoch: Option<(u64, u64)>,
}

impl<K: Key> Reader<K> {
    /// Begins to read. The first window has everything that was counted since the sketches were created.
    pub fn new(kernel: KernelSketches, options: &ReaderOptions) -> Reader<K> {
        let (specification, config, memory) = kernel.into_memory();
        let before = Snapshot::empty(&specification);
        Reader::resume(specification, config, memory, options, before)
    }

    /// Continues to read from a window that began with `before`.
    pub(crate) fn resume(
        specification: Specification,
        config: Config,
        memory: SharedMemory,
        options: &ReaderOptions,
        before: Snapshot,
    ) -> Reader<K> {
        let bank = memory.controls.load_u32(0, std::mem::offset_of!(Control, bank));
        let keys = options.keys.iter().copied().chain(std::iter::repeat(0));
        let candidates = specification.sketches.iter().zip(config.bases()).zip(keys);
        let candidates = candidates.map(|((sketch, base), k)| Candidates {
            levels: (0..sketch.kind.levels()).filter(|_| k > 0).map(|_| TopK::new(k)).collect(),
            columns: sketch.kind.shape().map(Columns::of),
            base,
            rows: sketch.kind.rows(),
            width: sketch.kind.shape().map_or(1, |shape| shape.width()),
            is_signed: sketch.kind.is_signed(),
            is_wide: sketch.counts_bytes,
        });
        Reader {
            candidates: candidates.collect(),
            log: KeyLog::new(&memory, before.totals().packets > 0),
            missed_before: 0,
            rate: options.line_rate.map(|line_rate| RateControl { line_rate, epoch: None }),
            specification,
            config,
            memory,
            before,
            bank,
        }
    }

    /// Returns the specification of the sketches.
    pub fn specification(&self) -> &Specification {
        &self.specification
    }

    /// Returns the number of frames since the start.
    pub fn packets(&self) -> u64 {
        packets_of(&self.memory)
    }

    /// Returns the number of frames since the start, and their bytes.
    pub fn frames(&self) -> (u64, u64) {
        let bytes = std::mem::offset_of!(CpuState, bytes);
        let of_all = |offset| {
            let cpus = 0..self.memory.states.entries();
            cpus.fold(0, |sum: u64, cpu| sum.wrapping_add(self.memory.states.load(cpu, offset)))
        };
        (self.packets(), of_all(bytes))
    }

    /// Returns the bytes of the sketches in the kernel.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Reads new keys, and adapts the probability to the rate. Call it every few milliseconds; `now_ns` is the time of a
    /// monotonic clock.
    pub fn poll(&mut self, now_ns: u64) {
        let (memory, before) = (&self.memory, &self.before);
        let candidates = &mut self.candidates;
        let mut packets = None;
        self.log.drain(memory, self.specification.hasher, |sketch, key: K, digest| {
            let Some(candidates) = candidates.get_mut(sketch) else { return };
            let packets =
                *packets.get_or_insert_with(|| packets_of(memory).wrapping_sub(before.totals().packets));
            candidates.offer(memory, before, sketch, &key, digest, packets);
        });
        self.adapt(now_ns);
    }

    /// AlwaysLineRate: chooses the probability of the next epoch.
    fn adapt(&mut self, now_ns: u64) {
        let Some(control) = &mut self.rate else { return };
        // The busiest CPU decides: packets of a flow stay on one.
        let cpus = self.memory.states.entries();
        let packets = (0..cpus).map(|cpu| self.memory.states.load(cpu, 0)).max().unwrap_or(0);
        let (begin_ns, before) = *control.epoch.get_or_insert((now_ns, packets));
        let elapsed_ns = now_ns.saturating_sub(begin_ns);
        if elapsed_ns < control.line_rate.epoch_ns.max(1) {
            return;
        }
        control.epoch = Some((now_ns, packets));
        for (number, sketch) in self.specification.sketches.iter().enumerate() {
            if matches!(sketch.kind, SketchKind::HyperLogLog { .. }) {
                continue;
            }
            let arrived = packets.saturating_sub(before);
            let probability = control.line_rate.probability(arrived, elapsed_ns, sketch.kind.rows());
            self.memory.controls.store_u32(0, 4 * number, u32::from(probability.log2_inverse()));
        }
    }

    /// Replaces the time budget of AlwaysLineRate.
    pub fn set_line_rate(&mut self, line_rate: LineRate) {
        if let Some(rate) = &mut self.rate {
            rate.line_rate = line_rate;
        }
    }

    /// Returns the probability that the sketches use from their next updates on.
    ///
    /// # Panics
    /// If there is no such sketch.
    pub fn probability(&self, sketch: usize) -> Probability {
        assert!(sketch < MAX_SKETCHES);
        let log2 = self.memory.controls.load_u32(0, 4 * sketch);
        Probability::new(log2.min(10) as u8).unwrap_or(Probability::MIN)
    }

    /// Ends the window, and begins the next one.
    pub fn end_window(&mut self, now_ns: u64) -> ReadWindow<K> {
        self.poll(now_ns);
        let ended = self.bank;
        self.bank = 1 - ended;
        self.memory.controls.store_u32(0, std::mem::offset_of!(Control, bank), self.bank);
        let now = Snapshot::read(&self.memory, &self.specification, &self.config, ended);
        self.clear_registers(ended);
        let window = Window::new(&self.specification, &now, &self.before);
        self.before = now;
        let keys = self.candidates.iter_mut().map(Candidates::take).collect();
        let missed_keys = self.log.missed() - self.missed_before;
        self.missed_before = self.log.missed();
        ReadWindow { window, keys, missed_keys }
    }

    /// The snapshot at the beginning of the current window, and the bank of registers that it uses.
    pub(crate) fn beginning(&self) -> (&Snapshot, u32) {
        (&self.before, self.bank)
    }

    /// Clears the registers of a window that has been read. The programs write the other bank.
    fn clear_registers(&self, bank: u32) {
        for (sketch, base) in self.specification.sketches.iter().zip(self.config.bases()) {
            if let SketchKind::HyperLogLog { precision } = sketch.kind {
                let bytes = 1usize << precision;
                for cpu in 0..self.memory.cells.entries() {
                    for word in (0..bytes).step_by(8) {
                        self.memory.cells.store(cpu, base + bank as usize * bytes + word, 0);
                    }
                }
            }
        }
    }
}

/// Returns the packets of all CPUs.
fn packets_of(memory: &SharedMemory) -> u64 {
    (0..memory.states.entries()).fold(0, |sum: u64, cpu| sum.wrapping_add(memory.states.load(cpu, 0)))
}

impl<K: Key> Candidates<K> {
    fn offer(
        &mut self,
        memory: &SharedMemory,
        before: &Snapshot,
        sketch: usize,
        key: &K,
        digest: Digest,
        packets: u64,
    ) {
        let (Some(columns), Some(deepest)) = (self.columns, self.levels.len().checked_sub(1)) else { return };
        let level = digest.depth(deepest as u32) as usize;
        let mut values = [0i64; thalweg_sketch::Shape::MAX_ROWS];
        for (row, value) in values[..self.rows].iter_mut().enumerate() {
            let (column, minus) = columns.column(digest, row);
            let position = (level * self.rows + row) * self.width + column;
            let counted = self.counter(memory, position).wrapping_sub(before.cell(sketch, position));
            // Counters of 32 bits wrap at 32 bits.
            let counted = if self.is_wide { counted } else { i64::from(counted as i32) };
            *value = if self.is_signed && minus { counted.saturating_neg() } else { counted };
        }
        let values = &mut values[..self.rows];
        values.sort_unstable();
        let mean = if self.is_signed || self.is_wide { 0 } else { packets as i64 / self.width as i64 };
        self.levels[level].offer(key, digest, values[values.len() / 2].saturating_sub(mean));
    }

    /// Returns the sum of a counter over all CPUs.
    fn counter(&self, memory: &SharedMemory, position: usize) -> i64 {
        let cpus = 0..memory.cells.entries();
        if self.is_wide {
            let of_cpu = |cpu| memory.cells.load(cpu, self.base + 8 * position) as i64;
            return cpus.fold(0, |sum: i64, cpu| sum.wrapping_add(of_cpu(cpu)));
        }
        let of_cpu = |cpu| memory.cells.load_u32(cpu, self.base + 4 * position) as i32;
        i64::from(cpus.fold(0, |sum: i32, cpu| sum.wrapping_add(of_cpu(cpu))))
    }

    fn take(&mut self) -> Vec<(K, Digest)> {
        let keys = self.levels.iter().flat_map(|top| top.candidates());
        let keys = keys.map(|candidate| (candidate.key, candidate.digest)).collect();
        self.levels.iter_mut().for_each(TopK::clear);
        keys
    }
}
