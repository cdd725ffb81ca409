//! Saved states: sketches that another machine can read, merge and compare.
//!
//! A versioned binary format, little-endian, the same on every machine; `docs/reference/sketch-state.md` describes it
//! byte for byte, so programs in other languages can read, query and merge it. A state contains everything that a
//! merge needs: kind, shape, hash with its version and seed, the kind of keys, how it was sampled.
//!
//! **Guarantee.** An encoded state decodes to an equal state, and decoded bytes encode to the same bytes: each state
//! has exactly one encoding. A checksum over everything, XXH3-64, detects damage and misses one change in 2^64. Bytes
//! are untrusted, whether the checksum matches or not: decoding never panics, and never allocates more memory than
//! the remaining bytes can fill.
//!
//! **Size.** Counters are always varints, because most counters of a sketch are small numbers. After ten million
//! packets of Zipf traffic a state is a quarter (UnivMon, packets) to two fifths (bytes) of its memory; it is at most
//! a quarter larger than its memory. Varints are the only form: a loop of a few lines in any language, one or two
//! milliseconds per MiB. A plain array would be read in one step but be three times as large; a choice between forms
//! would need a canonical rule too. Registers are single bytes already.
//!
//! ```
//! use thalweg_sketch::state::{AnyState, KeyBytes, Linear, Meta};
//! use thalweg_sketch::{CountSketch, Hasher, RowSketch, Shape};
//!
//! let mut sketch = CountSketch::<i32>::new(Shape::new(5, 1024)?, Hasher::new(7));
//! sketch.add(b"10.0.0.1", 1_000);
//! let meta = Meta { key_kind: "src".to_owned(), ..Meta::default() };
//! let bytes = AnyState::<KeyBytes>::from(Linear::CountSketch(sketch.into())).encode(&meta);
//!
//! let (meta, mut state) = AnyState::<KeyBytes>::decode(&bytes)?;
//! let (theirs, other) = AnyState::<KeyBytes>::decode(&bytes)?;
//! meta.check(&theirs)?;
//! state.merge(&other)?;
//! assert_eq!(state.statistics().unwrap().total(), 2_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bytes;
mod error;
mod header;
mod key_bytes;
mod kind;
mod linear;
mod meta;
mod tables;

use xxhash_rust::xxh3::xxh3_64;

use crate::digest::{Hasher, Key};
use crate::estimate::Estimate;
use crate::hyper_log_log::HyperLogLog;
use crate::hyper_log_log::size::{RegistersError, check_precision};
use crate::shape::Shape;
use crate::spread::Spread;
use crate::stream_statistics::StreamStatistics;
use bytes::{Reader, put_varint};
pub use error::{CombineError, StateError};
use header::{AT_COUNTER_BYTES, AT_PRECISION, Header};
pub use key_bytes::KeyBytes;
pub use kind::Kind;
pub use linear::{Linear, RowState};
pub use meta::Meta;
use tables::{put_top, read_top};

/// The first bytes of every state. As in PNG, the first byte is not text, and line ends of all kinds follow the name,
/// so a transfer that changes any of them is detected at once.
pub const MAGIC: [u8; 8] = *b"\x89TSK\r\n\x1a\n";

/// The format version that is written, and the only one that is read.
pub const VERSION: u16 = 1;

/// The version of the hash and of the rules that derive columns, signs, depths and ranks from it.
pub const HASH_VERSION: u16 = 1;

/// The bytes of the checksum at the end.
const CHECKSUM_BYTES: usize = 8;

/// The state of any sketch over keys `K`; [`KeyBytes`] if the keys are not known.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AnyState<K: Key> {
    /// A linear sketch with 32-bit counters.
    I32(Linear<K, i32>),
    /// A linear sketch with 64-bit counters.
    I64(Linear<K, i64>),
    /// Distinct keys.
    HyperLogLog(HyperLogLog),
    /// Distinct peers of each key.
    Spread(Spread<K>),
}

impl<K: Key> From<Linear<K, i32>> for AnyState<K> {
    fn from(linear: Linear<K, i32>) -> Self {
        AnyState::I32(linear)
    }
}

impl<K: Key> From<Linear<K, i64>> for AnyState<K> {
    fn from(linear: Linear<K, i64>) -> Self {
        AnyState::I64(linear)
    }
}

impl<K: Key> From<HyperLogLog> for AnyState<K> {
    fn from(counter: HyperLogLog) -> Self {
        AnyState::HyperLogLog(counter)
    }
}

impl<K: Key> From<Spread<K>> for AnyState<K> {
    fn from(spread: Spread<K>) -> Self {
        AnyState::Spread(spread)
    }
}

/// Returns the checksum of a state: XXH3-64 without a seed, of everything before it.
pub fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

impl<K: Key> AnyState<K> {
    /// Returns the kind of sketch.
    pub fn kind(&self) -> Kind {
        match self {
            AnyState::I32(linear) => linear.kind(),
            AnyState::I64(linear) => linear.kind(),
            AnyState::HyperLogLog(_) => Kind::HyperLogLog,
            AnyState::Spread(_) => Kind::Spread,
        }
    }

    /// Returns the bits of a counter, if the sketch has counters.
    pub fn counter_bits(&self) -> Option<u32> {
        match self {
            AnyState::I32(_) => Some(i32::BITS),
            AnyState::I64(_) => Some(i64::BITS),
            AnyState::HyperLogLog(_) | AnyState::Spread(_) => None,
        }
    }

    /// Returns the hash.
    pub fn hasher(&self) -> Hasher {
        match self {
            AnyState::I32(linear) => linear.hasher(),
            AnyState::I64(linear) => linear.hasher(),
            AnyState::HyperLogLog(counter) => counter.hasher(),
            AnyState::Spread(spread) => spread.hasher(),
        }
    }

    /// Returns the number of rows and columns, if the sketch has rows; of a UnivMon those of each level.
    pub fn shape(&self) -> Option<Shape> {
        match self {
            AnyState::I32(linear) => Some(linear.shape()),
            AnyState::I64(linear) => Some(linear.shape()),
            AnyState::HyperLogLog(_) => None,
            AnyState::Spread(spread) => Some(spread.shape()),
        }
    }

    /// Returns the totals of the stream, if the sketch keeps them.
    pub fn statistics(&self) -> Option<&StreamStatistics> {
        match self {
            AnyState::I32(linear) => Some(linear.statistics()),
            AnyState::I64(linear) => Some(linear.statistics()),
            AnyState::HyperLogLog(_) | AnyState::Spread(_) => None,
        }
    }

    /// Returns the number of additions that exceeded a counter's range; zero for sketches of registers.
    pub fn saturations(&self) -> u64 {
        match self {
            AnyState::I32(linear) => linear.saturations(),
            AnyState::I64(linear) => linear.saturations(),
            AnyState::HyperLogLog(_) | AnyState::Spread(_) => 0,
        }
    }

    /// Returns the memory in bytes; [`AnyState::encode`] returns the bytes on disk.
    pub fn bytes(&self) -> u64 {
        match self {
            AnyState::I32(linear) => linear.bytes(),
            AnyState::I64(linear) => linear.bytes(),
            AnyState::HyperLogLog(counter) => counter.bytes(),
            AnyState::Spread(spread) => spread.bytes(),
        }
    }

    /// Returns the keys with the largest estimates, largest first: of weights, or of peers in a [`Spread`]. Empty if
    /// the sketch tracks none.
    pub fn largest(&self) -> Vec<(K, Estimate)> {
        match self {
            AnyState::I32(linear) => linear.largest(),
            AnyState::I64(linear) => linear.largest(),
            AnyState::HyperLogLog(_) => Vec::new(),
            AnyState::Spread(spread) => spread.above(0),
        }
    }

    /// Merges `other` into this state. Call [`Meta::merge`] or [`Meta::check`] for their metadata.
    ///
    /// # Errors
    /// If they differ in anything but their counts; then nothing changes.
    pub fn merge(&mut self, other: &Self) -> Result<(), CombineError> {
        match (self, other) {
            (AnyState::I32(ours), AnyState::I32(theirs)) => ours.merge(theirs),
            (AnyState::I64(ours), AnyState::I64(theirs)) => ours.merge(theirs),
            (AnyState::HyperLogLog(ours), AnyState::HyperLogLog(theirs)) => Ok(ours.merge(theirs)?),
            (AnyState::Spread(ours), AnyState::Spread(theirs)) => Ok(ours.merge(theirs)?),
            (ours, theirs) => Err(ours.difference(theirs)),
        }
    }

    /// Subtracts `other` from this state. The candidates are those of both that grew. Call [`Meta::check`] for their
    /// metadata.
    ///
    /// # Errors
    /// If they differ in anything but their counts, or are not linear in their stream; then nothing changes.
    pub fn subtract(&mut self, other: &Self) -> Result<(), CombineError> {
        match (self, other) {
            (AnyState::I32(ours), AnyState::I32(theirs)) => ours.subtract(theirs),
            (AnyState::I64(ours), AnyState::I64(theirs)) => ours.subtract(theirs),
            (ours, theirs) => Err(ours.difference(theirs)),
        }
    }

    /// Returns the error for two states of different variants.
    fn difference(&self, other: &Self) -> CombineError {
        let (ours, theirs) = (self.kind(), other.kind());
        match (self.counter_bits(), other.counter_bits()) {
            _ if ours != theirs => CombineError::Kind { ours, theirs },
            (Some(ours), Some(theirs)) => CombineError::Counter { ours, theirs },
            _ => CombineError::NotLinear { kind: ours },
        }
    }

    /// Encodes the state with its metadata.
    pub fn encode(&self, meta: &Meta) -> Vec<u8> {
        let mut out = Vec::new();
        self.header().put(meta, &mut out);
        match self {
            AnyState::I32(linear) => linear.put(&mut out),
            AnyState::I64(linear) => linear.put(&mut out),
            AnyState::HyperLogLog(counter) => out.extend_from_slice(counter.registers()),
            AnyState::Spread(spread) => put_spread(spread, &mut out),
        }
        let checksum = checksum(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    fn header(&self) -> Header {
        let header = Header::new(self.kind(), self.hasher());
        match self {
            AnyState::I32(linear) => linear.header(),
            AnyState::I64(linear) => linear.header(),
            AnyState::HyperLogLog(counter) => Header { precision: counter.precision(), ..header },
            AnyState::Spread(spread) => {
                let (precision, k) = (spread.cell_precision(), spread.candidates().k() as u32);
                Header { precision, k, ..header }.with_shape(spread.shape())
            }
        }
    }

    /// Decodes a state and its metadata.
    ///
    /// # Errors
    /// If the bytes are not a state of this version with keys of this type; the error names the problem and its
    /// offset.
    pub fn decode(bytes: &[u8]) -> Result<(Meta, Self), StateError> {
        let mut reader = Reader::new(check_frame(bytes)?);
        reader.take((MAGIC.len() + size_of_val(&VERSION)) as u64, "magic and version")?;
        let (header, meta) = Header::read(&mut reader)?;
        let state = Self::read(&header, &mut reader)?;
        state.header().check(&meta, bytes)?;
        match reader.remaining() {
            0 => Ok((meta, state)),
            left => Err(StateError::Trailing { offset: reader.offset(), left }),
        }
    }

    fn read(header: &Header, reader: &mut Reader<'_>) -> Result<Self, StateError> {
        match (header.kind, header.counter_bytes) {
            (Kind::HyperLogLog, _) => Ok(AnyState::HyperLogLog(read_distinct(header, reader)?)),
            (Kind::Spread, _) => Ok(AnyState::Spread(read_spread(header, reader)?)),
            (_, 4) => Ok(AnyState::I32(Linear::read(header, reader)?)),
            (_, 8) => Ok(AnyState::I64(Linear::read(header, reader)?)),
            (_, found) => Err(StateError::Counter { offset: AT_COUNTER_BYTES, found }),
        }
    }
}

/// Checks magic, version and checksum; returns the bytes before the checksum.
fn check_frame(bytes: &[u8]) -> Result<&[u8], StateError> {
    let Some(rest) = bytes.strip_prefix(&MAGIC) else {
        let found = bytes[..bytes.len().min(MAGIC.len())].to_vec();
        let is_almost = found.get(1..4) == Some(&MAGIC[1..4]);
        return Err(match is_almost {
            true => StateError::TextMode { found },
            false if found.is_empty() => StateError::Empty,
            false => StateError::NotAState { found },
        });
    };
    let offset = MAGIC.len();
    let Some((version, rest)) = rest.split_first_chunk() else {
        return Err(StateError::Truncated { offset, field: "version", needed: 2, left: rest.len() });
    };
    match u16::from_le_bytes(*version) {
        VERSION => {}
        found => return Err(StateError::UnknownVersion { found }),
    }
    let Some((_, sum)) = rest.split_last_chunk::<CHECKSUM_BYTES>() else {
        let (offset, needed) = (offset + size_of_val(version), CHECKSUM_BYTES as u64);
        return Err(StateError::Truncated { offset, field: "checksum", needed, left: rest.len() });
    };
    let (found, offset) = (u64::from_le_bytes(*sum), bytes.len() - CHECKSUM_BYTES);
    let body = &bytes[..offset];
    match checksum(body) {
        expected if expected == found => Ok(body),
        expected => Err(StateError::Checksum { offset, found, expected }),
    }
}

fn read_distinct(header: &Header, reader: &mut Reader<'_>) -> Result<HyperLogLog, StateError> {
    check_registers(header, HyperLogLog::MIN_PRECISION, HyperLogLog::MAX_PRECISION)?;
    let offset = reader.offset();
    let registers = reader.take(1 << header.precision, "registers")?;
    let counter = HyperLogLog::from_registers(header.precision, header.hasher, registers.to_vec());
    counter.map_err(|source| StateError::Registers { offset, source })
}

/// Appends registers, the estimates missed in parts, and candidates.
fn put_spread<K: Key>(spread: &Spread<K>, out: &mut Vec<u8>) {
    out.extend_from_slice(spread.registers());
    put_varint(spread.missed_in_parts(), out);
    put_top(spread.candidates(), out);
}

fn read_spread<K: Key>(header: &Header, reader: &mut Reader<'_>) -> Result<Spread<K>, StateError> {
    check_registers(header, Spread::<K>::MIN_CELL_PRECISION, Spread::<K>::MAX_CELL_PRECISION)?;
    let (shape, k, hasher) = (header.shape()?, header.top_k()?, header.hasher);
    let offset = reader.offset();
    let registers = reader.take((shape.counters() as u64) << header.precision, "registers")?;
    let missed = reader.varint("estimates missed in parts")?;
    let top = read_top(k, hasher, reader)?;
    let spread = Spread::from_registers(shape, header.precision, hasher, registers, top, missed);
    spread.map_err(|source| StateError::Registers { offset, source })
}

/// Checks that the kind supports the precision.
fn check_registers(header: &Header, min: u8, max: u8) -> Result<(), StateError> {
    let precision = check_precision(header.precision, min, max);
    let in_header =
        |source| StateError::Registers { offset: AT_PRECISION, source: RegistersError::Size(source) };
    precision.map(|_| ()).map_err(in_header)
}
