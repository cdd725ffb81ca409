//! The header of every state: 96 bytes of numbers at fixed offsets, then three texts.
//!
//! Fields that a kind of sketch does not use are zero. A reader need not check that: decoding rebuilds the header
//! from the decoded state and compares the two ([`Header::check`]).

use super::bytes::{Reader, put_bytes};
use super::error::StateError;
use super::kind::Kind;
use super::meta::Meta;
use super::{HASH_VERSION, MAGIC, VERSION};
use crate::digest::{HASH_NAME, Hasher};
use crate::probability::Probability;
use crate::shape::Shape;
use crate::stream_statistics::StreamStatistics;
use crate::top_k::TopK;

/// The numbers at fixed offsets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// The bytes of a counter: 4, 8, or 0 for registers.
    pub(super) counter_bytes: u8,
    pub(super) rows: u8,
    pub(super) width_log2: u8,
    /// The binary logarithm of the registers of a distinct counter.
    pub(super) precision: u8,
    pub(super) levels: u8,
    /// The number of keys that a top-k tracks; 0 without one.
    pub(super) k: u32,
    pub(super) hasher: Hasher,
    pub(super) statistics: StreamStatistics,
}

/// Offsets for errors; the encoder writes the fields in this order.
pub(super) const AT_KIND: usize = 10;
pub(super) const AT_COUNTER_BYTES: usize = 11;
pub(super) const AT_SHAPE: usize = 12;
pub(super) const AT_PRECISION: usize = 14;
pub(super) const AT_LEVELS: usize = 15;
pub(super) const AT_K: usize = 16;
const AT_MIN_PROBABILITY: usize = 22;
const LENGTH: usize = 96;

/// The flag bit for negative weights.
const HAS_NEGATIVE: u8 = 1;

impl Header {
    /// Creates a header with all other fields zero.
    pub(super) fn new(kind: Kind, hasher: Hasher) -> Header {
        let statistics = StreamStatistics::default();
        Header {
            kind,
            counter_bytes: 0,
            rows: 0,
            width_log2: 0,
            precision: 0,
            levels: 0,
            k: 0,
            hasher,
            statistics,
        }
    }

    /// Returns the header with a shape.
    pub(super) fn with_shape(self, shape: Shape) -> Header {
        Header { rows: shape.rows() as u8, width_log2: shape.width().trailing_zeros() as u8, ..self }
    }

    /// Appends the header and its texts.
    pub(super) fn put(&self, meta: &Meta, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        let sizes = [self.counter_bytes, self.rows, self.width_log2, self.precision, self.levels];
        out.push(self.kind as u8);
        out.extend_from_slice(&sizes);
        out.extend_from_slice(&self.k.to_le_bytes());
        out.extend_from_slice(&HASH_VERSION.to_le_bytes());
        let flags = if self.statistics.has_negative { HAS_NEGATIVE } else { 0 };
        out.extend_from_slice(&[self.statistics.min_probability.log2_inverse(), flags]);
        out.extend_from_slice(&self.hasher.seed().to_le_bytes());
        out.extend_from_slice(&self.statistics.total.to_le_bytes());
        out.extend_from_slice(&self.statistics.magnitude.to_le_bytes());
        out.extend_from_slice(&self.statistics.max_weight.to_le_bytes());
        out.extend_from_slice(&self.statistics.sampling_f2.to_le_bytes());
        out.extend_from_slice(&self.statistics.sampling_variance.to_le_bytes());
        out.extend_from_slice(&self.statistics.rounding.to_le_bytes());
        out.extend_from_slice(&meta.start_ns.to_le_bytes());
        out.extend_from_slice(&meta.end_ns.to_le_bytes());
        for text in [HASH_NAME, &meta.key_kind, &meta.label] {
            put_bytes(text.as_bytes(), out);
        }
    }

    /// Reads the header after magic and version.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<(Header, Meta), StateError> {
        let [kind, counter_bytes, rows, width_log2, precision, levels] = reader.array("sizes")?;
        let kind = Kind::of(kind).ok_or(StateError::UnknownKind { offset: AT_KIND, found: kind })?;
        let k = u32::from_le_bytes(reader.array("k")?);
        let hash_version = u16::from_le_bytes(reader.array("hash version")?);
        let [min_probability, flags] = reader.array("sampling")?;
        let hasher = Hasher::new(u64::from_le_bytes(reader.array("seed")?));
        let max = Probability::MIN.log2_inverse();
        let statistics = StreamStatistics {
            total: i64::from_le_bytes(reader.array("total")?),
            magnitude: u64::from_le_bytes(reader.array("magnitude")?),
            max_weight: zero_or_more(reader, "heaviest weight")?,
            has_negative: flags & HAS_NEGATIVE != 0,
            min_probability: Probability::new(min_probability).ok_or_else(|| {
                StateError::range(
                    AT_MIN_PROBABILITY,
                    "binary logarithm of 1/p",
                    min_probability,
                    0,
                    max.into(),
                )
            })?,
            sampling_f2: zero_or_more(reader, "sampling F2")?,
            sampling_variance: zero_or_more(reader, "sampling variance")?,
            rounding: zero_or_more(reader, "rounding")?,
        };
        let start_ns = u64::from_le_bytes(reader.array("window start")?);
        let end_ns = u64::from_le_bytes(reader.array("window end")?);
        let offset = reader.offset();
        let name = reader.text("hash name")?;
        if (name, hash_version) != (HASH_NAME, HASH_VERSION) {
            return Err(StateError::UnknownHash { offset, name: name.to_owned(), version: hash_version });
        }
        let key_kind = reader.text("key kind")?.to_owned();
        let label = reader.text("label")?.to_owned();
        let header =
            Header { kind, counter_bytes, rows, width_log2, precision, levels, k, hasher, statistics };
        Ok((header, Meta { key_kind, label, start_ns, end_ns }))
    }

    /// Checks that `bytes` equal this header, so that unused fields are zero.
    pub(super) fn check(&self, meta: &Meta, bytes: &[u8]) -> Result<(), StateError> {
        let mut expected = Vec::with_capacity(LENGTH);
        self.put(meta, &mut expected);
        match expected.iter().zip(bytes).position(|(expected, found)| expected != found) {
            Some(offset) => {
                Err(StateError::Unused { offset, found: bytes[offset], expected: expected[offset] })
            }
            None => Ok(()),
        }
    }

    /// Returns the number of rows and columns.
    pub(super) fn shape(&self) -> Result<Shape, StateError> {
        let width = 1usize.checked_shl(self.width_log2.into()).unwrap_or(0);
        let shape = Shape::new(self.rows.into(), width);
        shape.map_err(|source| StateError::Shape { offset: AT_SHAPE, source })
    }

    /// Returns k of a mandatory top-k.
    pub(super) fn top_k(&self) -> Result<usize, StateError> {
        let max = TopK::<[u8; 0]>::MAX_K;
        match self.k as usize {
            k if (1..=max).contains(&k) => Ok(k),
            _ => Err(StateError::range(AT_K, "k", self.k, 1, max as i128)),
        }
    }
}

fn zero_or_more(reader: &mut Reader<'_>, field: &'static str) -> Result<f64, StateError> {
    let offset = reader.offset();
    let found = f64::from_le_bytes(reader.array(field)?);
    if found.is_nan() || found.is_sign_negative() {
        return Err(StateError::Negative { offset, field, found });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_offsets_match_the_header_layout() {
        let header = Header {
            counter_bytes: 0xC0,
            precision: 0xAA,
            levels: 0xBB,
            k: 0xDDDD_DDDD,
            statistics: StreamStatistics { min_probability: Probability::MIN, ..StreamStatistics::default() },
            ..Header::new(Kind::Spread, Hasher::new(0)).with_shape(Shape::new(3, 64).unwrap())
        };
        let mut out = Vec::new();
        header.put(&Meta::default(), &mut out);
        assert_eq!((out[AT_KIND], out[AT_COUNTER_BYTES]), (6, 0xC0));
        assert_eq!((&out[AT_SHAPE..AT_SHAPE + 2], out[AT_PRECISION]), (&[3, 6][..], 0xAA));
        assert_eq!(
            (out[AT_LEVELS], &out[AT_K..AT_K + 4], out[AT_MIN_PROBABILITY]),
            (0xBB, &[0xDD; 4][..], 10)
        );
        assert_eq!(out[LENGTH], HASH_NAME.len() as u8);
    }
}
