//! Which sketches the kernel counts: kinds, shapes, keys, sampling.

use std::fmt;

use thalweg_sketch::{Hasher, Probability, Shape, UnivMonShape};

/// The maximum number of sketches that one program counts.
pub const MAX_SKETCHES: usize = 4;

/// The sketches of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Specification {
    /// The sketches: 1 to [`MAX_SKETCHES`].
    pub sketches: Vec<SketchSpec>,
    /// The hash of all of them.
    pub hasher: Hasher,
    /// The keys that the log of a CPU holds; rounded up to a power of two. The default takes 1 MiB per CPU.
    pub log_entries: usize,
}

impl Specification {
    /// The default size of a log: 16 ms at a million sampled packets per second.
    pub const LOG_ENTRIES: usize = 1 << 14;

    /// Sketches with the default size of logs.
    pub fn new(sketches: Vec<SketchSpec>, hasher: Hasher) -> Specification {
        Specification { sketches, hasher, log_entries: Self::LOG_ENTRIES }
    }
}

/// One sketch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SketchSpec {
    /// Kind and shape.
    pub kind: SketchKind,
    /// The key.
    pub key: KernelKey,
    /// Whether weights are bytes of the IP packet, in counters of 64 bits, instead of packets in counters of 32 bits.
    pub counts_bytes: bool,
    /// Whether keys of sampled packets go to the log.
    pub logs_keys: bool,
    /// The probability of updating a row at the start. Registers are always updated.
    pub probability: Probability,
    /// The seed of the samplers; see [`SketchSpec::seed_of_cpu`].
    pub seed: u64,
}

/// The kind of a sketch and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SketchKind {
    /// Count-Min.
    CountMin(Shape),
    /// Count Sketch.
    CountSketch(Shape),
    /// K-ary.
    KAry(Shape),
    /// UnivMon.
    UnivMon(UnivMonShape),
    /// HyperLogLog, with this binary logarithm of the number of registers.
    HyperLogLog {
        /// 4 to 18.
        precision: u8,
    },
}

impl SketchKind {
    /// Whether rows have signs.
    pub fn is_signed(self) -> bool {
        matches!(self, SketchKind::CountSketch(_) | SketchKind::UnivMon(_))
    }

    /// Rows and columns; of registers one row of them.
    pub fn shape(self) -> Option<Shape> {
        match self {
            SketchKind::CountMin(shape) | SketchKind::CountSketch(shape) | SketchKind::KAry(shape) => {
                Some(shape)
            }
            SketchKind::UnivMon(shape) => Some(shape.shape()),
            SketchKind::HyperLogLog { .. } => None,
        }
    }

    /// Updates per packet without sampling.
    pub fn rows(self) -> usize {
        self.shape().map_or(1, Shape::rows)
    }

    /// The number of levels.
    pub fn levels(self) -> usize {
        match self {
            SketchKind::UnivMon(shape) => shape.levels(),
            _ => 1,
        }
    }
}

/// Formats as `Count Sketch 5 x 1024`.
impl fmt::Display for SketchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SketchKind::CountMin(shape) => write!(f, "Count-Min {shape}"),
            SketchKind::CountSketch(shape) => write!(f, "Count Sketch {shape}"),
            SketchKind::KAry(shape) => write!(f, "K-ary {shape}"),
            SketchKind::UnivMon(shape) => {
                write!(f, "UnivMon of {} levels of {}", shape.levels(), shape.shape())
            }
            SketchKind::HyperLogLog { precision } => write!(f, "HyperLogLog of 2^{precision} registers"),
        }
    }
}

impl SketchSpec {
    /// A sketch of packets that samples with probability 1 and logs keys.
    pub fn new(kind: SketchKind, key: KernelKey) -> SketchSpec {
        SketchSpec {
            kind,
            key,
            counts_bytes: false,
            logs_keys: !matches!(kind, SketchKind::HyperLogLog { .. }),
            probability: Probability::ONE,
            seed: 0,
        }
    }

    /// Returns the seed of a CPU's sampler: of CPU 0 the seed itself, so that it draws as `Nitro` with that seed.
    pub fn seed_of_cpu(&self, cpu: usize) -> u64 {
        self.seed ^ (cpu as u64).wrapping_mul(0xD134_2543_DE82_EF95)
    }

    /// The bytes of a counter.
    pub fn counter_bytes(&self) -> usize {
        if self.counts_bytes { size_of::<u64>() } else { size_of::<u32>() }
    }

    /// The bytes of its counters on one CPU; registers have two banks.
    pub fn bytes(&self) -> u64 {
        match self.kind {
            SketchKind::HyperLogLog { precision } => 2 << precision,
            kind => kind.shape().map_or(0, |shape| shape.bytes(self.counter_bytes())) * kind.levels() as u64,
        }
    }
}

/// The flow key of a sketch. Keys have the bytes of `thalweg_measure::tasks::FlowBytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelKey {
    /// Addresses, ports and protocol.
    FiveTuple,
    /// The source address, or its first bits.
    Source(PrefixBits),
    /// The destination address, or its first bits.
    Destination(PrefixBits),
    /// Destination address, destination port and protocol.
    Service,
}

/// How many bits of an address count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixBits {
    /// Of IPv4, at most 32.
    pub v4: u8,
    /// Of IPv6, at most 128.
    pub v6: u8,
}

impl PrefixBits {
    /// Whole addresses.
    pub const ALL: PrefixBits = PrefixBits { v4: 32, v6: 128 };
}

impl KernelKey {
    /// The source address.
    pub const SOURCE: KernelKey = KernelKey::Source(PrefixBits::ALL);
    /// The destination address.
    pub const DESTINATION: KernelKey = KernelKey::Destination(PrefixBits::ALL);

    /// The bits of addresses that count.
    pub(crate) fn bits(self) -> PrefixBits {
        match self {
            KernelKey::Source(bits) | KernelKey::Destination(bits) => bits,
            KernelKey::FiveTuple | KernelKey::Service => PrefixBits::ALL,
        }
    }
}
