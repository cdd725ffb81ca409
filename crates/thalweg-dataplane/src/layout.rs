//! The structures that programs and reader share, as in `kernel/state.h`.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};
use thalweg_sketch::nitro::GapTables;
use thalweg_sketch::{Columns, Probability, Shape};

use crate::spec::{KernelKey, MAX_SKETCHES, SketchKind, SketchSpec, Specification};

/// The number of probabilities: 2^0 to 2^-10.
pub const PROBABILITIES: usize = Probability::MIN.log2_inverse() as usize + 1;

/// The number of reasons why a sampled packet is not counted, the first being that it is.
pub const REASONS: usize = 8;

/// The bytes of a frame that are copied to parse uncommon headers.
pub const CAPTURED: usize = 512;

/// The bytes of a log entry.
pub const LOG_ENTRY_BYTES: usize = size_of::<LogEntry>();

/// The bytes of a CPU's state.
pub const STATE_BYTES: usize = 4096;

/// Counters begin at multiples of this.
const PAGE: u64 = 4096;

/// Kinds of sketches, of `enum sketch_kind`.
const COUNTERS: u32 = 1;
const REGISTERS: u32 = 2;

/// Constants of the programs (`struct config`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Config {
    hash_seed: u64,
    sketches: u32,
    needs_squares: u32,
    cells_limit: u32,
    gaps_limit: u32,
    log_mask: u32,
    log_limit: u32,
    first: [u32; PROBABILITIES],
    below: [u32; PROBABILITIES],
    sketch: [SketchConfig; MAX_SKETCHES],
}

/// Constants of a sketch (`struct sketch`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct SketchConfig {
    kind: u32,
    rows: u32,
    width_log2: u32,
    deepest: u32,
    is_signed: u32,
    is_wide: u32,
    adds_bytes: u32,
    logs_keys: u32,
    key: u32,
    /// Its first byte in the counters of a CPU.
    pub base: u32,
    is_long: u32,
    precision: u32,
    mask_v4: u32,
    is_exact: u32,
    mask_v6: [u64; 2],
    word: [u8; Shape::MAX_ROWS],
    shift: [u8; Shape::MAX_ROWS],
}

/// What the reader changes meanwhile (`struct control`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Control {
    /// k of the probability of each sketch.
    pub log2: [u32; MAX_SKETCHES],
    /// The bank of registers that is written.
    pub bank: u32,
    padding: u32,
}

/// The sampling of a sketch on a CPU (`struct sampling`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Sampling {
    /// The number of the next packet to update.
    pub next_packet: u64,
    /// The row there.
    pub row: u32,
    /// k of the probability that drew it.
    pub log2: u32,
    /// The pairs from the previous updated one to it.
    pub gap: u64,
    /// The state of xoshiro256++.
    pub random: [u64; 4],
    /// Decided pairs by k.
    pub pairs: [u64; PROBABILITIES],
    /// The squares of the lengths of their packets.
    pub squares: [u64; PROBABILITIES],
    squares_mark: u64,
    /// Sampled pairs of packets without a key.
    pub uncounted: [u64; PROBABILITIES],
    /// Bytes of sampled frames that belong to no counted IP packet, beyond Ethernet headers, times 2^k.
    pub excess: u64,
    /// The sum of their squares, times 4^k.
    pub excess_squares: u64,
}

/// The state of a CPU (`struct state`), without the copy of a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct CpuState {
    /// All frames.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The squares of their lengths without the Ethernet header, if a sketch needs them.
    pub squares: u64,
    /// The longest, likewise.
    pub largest: u64,
    /// The number of the next packet that is parsed.
    pub wake: u64,
    /// The number of keys written to the log.
    pub log_head: u64,
    /// The parsed packets.
    pub parsed: u64,
    /// Of them by reason.
    pub reasons: [u64; REASONS],
    /// Of them later fragments, which count for ports zero.
    pub fragments: u64,
    /// Of them those that count for ports zero because the copy ends before the ports.
    pub portless: u64,
    /// Of them those whose stated IP length is longer than their frame.
    pub beyond: u64,
    /// IP bytes of those with a key.
    pub ip_bytes: u64,
    /// The longest such packet.
    pub largest_ip: u64,
    /// The bytes of parsed frames without a key, by reason.
    pub reason_bytes: [u64; REASONS],
    /// The sampling of each sketch.
    pub sampling: [Sampling; MAX_SKETCHES],
}

const _: () = assert!(size_of::<CpuState>() + CAPTURED <= STATE_BYTES);

impl CpuState {
    /// The offset of [`CpuState::log_head`].
    pub(crate) const LOG_HEAD: usize = offset_of!(CpuState, log_head);
}

/// A key in a log (`struct log_entry`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct LogEntry {
    /// Its number, from 1; written last.
    pub sequence: u64,
    /// The low bits of its hash.
    pub check: u32,
    /// The sketch that sampled it.
    pub sketch: u8,
    /// The length of the key.
    pub length: u8,
    padding: u16,
    /// The bytes of the key.
    pub key: [u64; 5],
    unused: u64,
}

/// The sizes of the maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of counters per CPU.
    pub cells: u64,
    /// Bytes of a log.
    pub log: u64,
    /// Bytes of the tables of gaps.
    pub gaps: u64,
}

/// Returns the constants of the programs, the sizes of their maps, and the contents of the tables of gaps for
/// probabilities down to `min_probability`.
pub fn plan(specification: &Specification, probabilities: &[Probability]) -> (Config, Sizes, Vec<u8>) {
    let mut config = Config::zeroed();
    let mut bytes = 0;
    for (sketch, spec) in config.sketch.iter_mut().zip(&specification.sketches) {
        *sketch = sketch_config(spec, bytes);
        let is_register = matches!(spec.kind, SketchKind::HyperLogLog { .. });
        sketch.is_exact = (is_register || probabilities.iter().all(|p| *p == Probability::ONE)).into();
        bytes += spec.bytes().next_multiple_of(64);
    }
    let tables = gap_tables(&mut config, probabilities);
    let log_entries = specification.log_entries.max(2).next_power_of_two();
    let round = |bytes: u64| bytes.max(8).next_multiple_of(PAGE);
    let sizes = Sizes {
        cells: round(bytes),
        log: (log_entries * LOG_ENTRY_BYTES) as u64,
        gaps: round(tables.len() as u64),
    };
    config.hash_seed = specification.hasher.seed();
    config.sketches = specification.sketches.len() as u32;
    config.needs_squares = u32::from(specification.sketches.iter().any(|sketch| sketch.counts_bytes));
    config.cells_limit = (sizes.cells - 8) as u32;
    config.gaps_limit = (sizes.gaps - 8) as u32;
    config.log_mask = log_entries as u32 - 1;
    config.log_limit = (sizes.log - LOG_ENTRY_BYTES as u64) as u32;
    (config, sizes, tables)
}

fn sketch_config(spec: &SketchSpec, base: u64) -> SketchConfig {
    let bits = spec.key.bits();
    let mut config = SketchConfig {
        kind: COUNTERS,
        rows: spec.kind.rows() as u32,
        deepest: spec.kind.levels() as u32 - 1,
        is_signed: spec.kind.is_signed().into(),
        is_wide: spec.counts_bytes.into(),
        adds_bytes: spec.counts_bytes.into(),
        logs_keys: spec.logs_keys.into(),
        key: key_number(spec.key),
        base: base as u32,
        mask_v4: (u32::MAX.checked_shl(32 - u32::from(bits.v4.min(32))).unwrap_or(0)).to_be(),
        mask_v6: mask_v6(bits.v6.min(128)),
        ..SketchConfig::zeroed()
    };
    if let SketchKind::HyperLogLog { precision } = spec.kind {
        (config.kind, config.precision) = (REGISTERS, precision.into());
    }
    if let Some(shape) = spec.kind.shape() {
        config.width_log2 = shape.width().trailing_zeros();
        let columns = Columns::of(shape);
        for row in 0..shape.rows() {
            (config.word[row], config.shift[row]) = columns.slice(row);
        }
        config.is_long = config.word.iter().any(|&word| word > 1).into();
    }
    config
}

/// The numbers of `enum key_kind`.
fn key_number(key: KernelKey) -> u32 {
    match key {
        KernelKey::FiveTuple => 0,
        KernelKey::Source(_) => 1,
        KernelKey::Destination(_) => 2,
        KernelKey::Service => 3,
    }
}

/// A mask of the first bits of an IPv6 address, as two words in memory order.
fn mask_v6(bits: u8) -> [u64; 2] {
    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0).to_be_bytes();
    let (words, _) = mask.as_chunks::<8>();
    [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
}

/// Returns the tables of the probabilities one after another, and puts their positions into the constants.
fn gap_tables(config: &mut Config, probabilities: &[Probability]) -> Vec<u8> {
    let mut tables = Vec::new();
    for probability in probabilities.iter().filter(|&&probability| probability != Probability::ONE) {
        let number = usize::from(probability.log2_inverse());
        let GapTables { below, first } = GapTables::of(*probability);
        config.below[number] = tables.len() as u32;
        tables.extend(below.iter().flat_map(|value| value.to_ne_bytes()));
        config.first[number] = tables.len() as u32;
        tables.extend(first.iter().chain([&(below.len() as u16)]).flat_map(|gap| gap.to_ne_bytes()));
        tables.resize(tables.len().next_multiple_of(8), 0);
    }
    tables
}

impl SketchConfig {
    fn description(&self) -> String {
        let key = match self.key {
            0 => "5tuple",
            1 => "src",
            2 => "dst",
            _ => "dst+port",
        };
        let prefix = match (u32::from_be(self.mask_v4).leading_ones(), self.key) {
            (bits @ 0..32, 1 | 2) => format!("/{bits}"),
            _ => String::new(),
        };
        let weight = if self.adds_bytes == 1 { ", bytes" } else { "" };
        match self.kind {
            REGISTERS => format!("2^{} registers of {key}{prefix}", self.precision),
            _ => {
                let (levels, width) = (self.deepest + 1, 1u64 << self.width_log2);
                let sign = if self.is_signed == 1 { ", signed" } else { "" };
                format!("{levels} x {} x {width} counters of {key}{prefix}{weight}{sign}", self.rows)
            }
        }
    }
}

impl Config {
    /// Returns the seed of the hash.
    pub(crate) fn seed(&self) -> u64 {
        self.hash_seed
    }

    /// Returns shapes, keys and probabilities of the sketches, for messages.
    pub(crate) fn description(&self) -> String {
        let used = self.sketch.iter().take(self.sketches as usize);
        let sketches: Vec<String> = used.map(SketchConfig::description).collect();
        let sampled = (1..PROBABILITIES).filter(|&log2| self.first[log2] > 0);
        let sampled: Vec<String> = sampled.map(|log2| format!("1/{}", 1u64 << log2)).collect();
        let sampled = if sampled.is_empty() { "1".to_owned() } else { sampled.join(", ") };
        format!("({} with p = {sampled})", sketches.join(", "))
    }

    /// Returns the first byte of each sketch in the counters of a CPU.
    pub(crate) fn bases(&self) -> impl Iterator<Item = usize> {
        self.sketch.iter().map(|sketch| sketch.base as usize)
    }
}
