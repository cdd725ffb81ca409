//! The number of rows and columns of a sketch, and the bits of a digest that each row uses.
//!
//! Widths are powers of two: a column is a slice of the digest's bits, without a modulo. Row r uses `log2(width)`
//! bits for the column and the bit below them for the sign. No two rows share a bit, so rows are as independent as
//! the digest's bits. Slices do not straddle words. The first word has as many as fit, the second as many as fit
//! below [`Digest::DEPTH_BITS`]. Shapes that need more use words three and four, which are derived from the first two
//! (see [`Slices`]).

use thiserror::Error;

use crate::digest::Digest;

/// The maximum number of levels of a UnivMon: the first, and one for each of the digest's depth bits.
pub(crate) const MAX_LEVELS: usize = Digest::DEPTH_BITS as usize + 1;

/// The number of rows and columns of a sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    rows: u32,
    width_log2: u32,
}

/// Why a sketch cannot have a shape or size.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ShapeError {
    /// The number of rows is out of range.
    #[error("{rows} rows: expected 1 to {}", Shape::MAX_ROWS)]
    Rows {
        /// The requested number of rows.
        rows: usize,
    },
    /// The width is out of range or not a power of two.
    #[error(
        "rows of {width} counters: expected a power of two from {} to {}",
        Shape::MIN_WIDTH,
        Shape::MAX_WIDTH
    )]
    Width {
        /// The requested width.
        width: usize,
    },
    /// The number of levels is out of range.
    #[error("{levels} levels: expected 1 to {} for a UnivMon", MAX_LEVELS)]
    Levels {
        /// The requested number of levels.
        levels: usize,
    },
    /// The memory is too small for the smallest sketch.
    #[error("{bytes} bytes of memory are too few: the smallest sketch of this kind needs {min}")]
    Memory {
        /// The available memory.
        bytes: u64,
        /// The required memory.
        min: u64,
    },
    /// A parameter of the guarantee is not between 0 and 1.
    #[error("{name} = {value}: expected a number above 0 and below 1")]
    Guarantee {
        /// `eps` or `delta`.
        name: &'static str,
        /// The invalid value.
        value: f64,
    },
    /// The guarantee needs more rows or columns than a sketch may have.
    #[error(
        "eps = {eps}, delta = {delta} needs {rows} rows of {width} counters: the limit is {} rows of {}",
        Shape::MAX_ROWS,
        Shape::MAX_WIDTH
    )]
    TooLarge {
        /// The requested error, as a share of the norm.
        eps: f64,
        /// The requested failure probability.
        delta: f64,
        /// The required rows.
        rows: f64,
        /// The required counters per row.
        width: f64,
    },
}

impl Shape {
    /// The maximum number of rows.
    pub const MAX_ROWS: usize = 8;
    /// The minimum number of counters per row.
    pub const MIN_WIDTH: usize = 4;
    /// The maximum number of counters per row: 8 Mi, so that eight slices fit into four words.
    pub const MAX_WIDTH: usize = 1 << 23;

    /// Creates a shape of `rows` rows of `width` counters.
    ///
    /// # Errors
    /// If `rows` is not in 1..=8, or `width` is not a power of two in 4..=8 Mi.
    pub fn new(rows: usize, width: usize) -> Result<Shape, ShapeError> {
        if !(1..=Self::MAX_ROWS).contains(&rows) {
            return Err(ShapeError::Rows { rows });
        }
        if !width.is_power_of_two() || !(Self::MIN_WIDTH..=Self::MAX_WIDTH).contains(&width) {
            return Err(ShapeError::Width { width });
        }
        Ok(Shape { rows: rows as u32, width_log2: width.trailing_zeros() })
    }

    /// Returns the widest shape of `rows` rows whose counters, `counter_bytes` each, fit into `memory_bytes`.
    ///
    /// # Errors
    /// If the narrowest shape does not fit, or `rows` is out of range.
    pub fn for_memory(memory_bytes: u64, rows: usize, counter_bytes: usize) -> Result<Shape, ShapeError> {
        let narrowest = Shape::new(rows, Self::MIN_WIDTH)?;
        let row_bytes = rows as u64 * counter_bytes as u64;
        let width = (memory_bytes / row_bytes).min(Self::MAX_WIDTH as u64);
        if width < Self::MIN_WIDTH as u64 {
            return Err(ShapeError::Memory { bytes: memory_bytes, min: narrowest.bytes(counter_bytes) });
        }
        Shape::new(rows, 1 << width.ilog2())
    }

    /// Returns the smallest shape with at least these many rows and columns; `eps` and `delta` are for the error
    /// only.
    pub(crate) fn at_least(eps: f64, delta: f64, rows: f64, width: f64) -> Result<Shape, ShapeError> {
        // A shape derived from the guarantee of another, rounded up in its last digits, must be that shape.
        let [rows, width] = [rows, width].map(|number| (number * (1.0 - 1e-9)).ceil());
        let too_large = ShapeError::TooLarge { eps, delta, rows, width };
        if rows > Self::MAX_ROWS as f64 || width > Self::MAX_WIDTH as f64 {
            return Err(too_large);
        }
        let width = (width as usize).max(Self::MIN_WIDTH).next_power_of_two();
        Shape::new((rows as usize).max(1), width).map_err(|_| too_large)
    }

    /// Returns the number of rows, d in most papers.
    #[inline(always)]
    pub const fn rows(self) -> usize {
        self.rows as usize
    }

    /// Returns the number of counters per row, w in most papers.
    #[inline(always)]
    pub const fn width(self) -> usize {
        1 << self.width_log2
    }

    /// Returns the number of all counters.
    #[inline(always)]
    pub const fn counters(self) -> usize {
        self.rows() << self.width_log2
    }

    /// Returns the memory of the counters in bytes.
    pub const fn bytes(self, counter_bytes: usize) -> u64 {
        self.counters() as u64 * counter_bytes as u64
    }

    pub(crate) const fn slices(self) -> Slices {
        Slices::new(self)
    }
}

/// Formats as `5 x 8192`.
impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{} x {}", self.rows(), self.width()))
    }
}

pub(crate) fn check_guarantee(name: &'static str, value: f64) -> Result<(), ShapeError> {
    if value > 0.0 && value < 1.0 { Ok(()) } else { Err(ShapeError::Guarantee { name, value }) }
}

/// The position of each row's slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slices {
    width_log2: u32,
    /// Word and lowest bit of each row's slice.
    word: [u8; Shape::MAX_ROWS],
    shift: [u8; Shape::MAX_ROWS],
    /// Whether the first two words suffice.
    pub(crate) is_short: bool,
}

/// A key's column in a row, and whether its sign is minus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignedColumn {
    pub(crate) index: usize,
    pub(crate) minus: bool,
}

impl SignedColumn {
    /// Returns the weight with the key's sign; the negation of `i64::MIN` saturates.
    #[inline(always)]
    pub(crate) const fn signed(self, weight: i64) -> i64 {
        let mask = -(self.minus as i64);
        (weight ^ mask).saturating_sub(mask)
    }
}

impl Slices {
    const fn new(shape: Shape) -> Slices {
        let bits = shape.width_log2 + 1;
        let mut slices = Slices {
            width_log2: shape.width_log2,
            word: [0; Shape::MAX_ROWS],
            shift: [0; Shape::MAX_ROWS],
            is_short: true,
        };
        let (mut word, mut shift, mut row) = (0u8, 0u32, 0);
        while row < shape.rows() {
            let room = if word == 1 { u64::BITS - Digest::DEPTH_BITS } else { u64::BITS };
            if shift + bits > room {
                word += 1;
                shift = 0;
                continue;
            }
            slices.word[row] = word;
            slices.shift[row] = shift as u8;
            shift += bits;
            row += 1;
        }
        slices.is_short = word < 2;
        slices
    }

    /// Word `number` of a digest: the two of the hash, then folded products of them, which are as random.
    #[inline(always)]
    const fn word(digest: Digest, number: u8) -> u64 {
        let [low, high] = digest.0;
        match number {
            0 => low,
            1 => high,
            // The odd constants are the first digits of the golden ratio and of the square root of three.
            2 => fold(low ^ 0x9E37_79B9_7F4A_7C15, high),
            _ => fold(low, high ^ 0xBB67_AE85_84CA_A73B),
        }
    }

    /// Returns the column and sign of the key of `digest` in `row`.
    #[inline(always)]
    pub(crate) const fn of(&self, digest: Digest, row: usize) -> SignedColumn {
        if self.is_short {
            let (word, shift) = self.at(row);
            return self.cut(digest.0[word] >> shift);
        }
        self.cut(Self::word(digest, self.word[row]) >> self.shift[row])
    }

    /// Returns word and shift of a row's slice.
    pub(crate) const fn position(&self, row: usize) -> (u8, u8) {
        (self.word[row], self.shift[row])
    }

    #[inline(always)]
    const fn cut(&self, bits: u64) -> SignedColumn {
        let mask = (1u64 << self.width_log2) - 1;
        SignedColumn { index: ((bits >> 1) & mask) as usize, minus: bits & 1 == 1 }
    }

    /// Returns word (0 or 1) and shift of a row's slice, for short shapes.
    #[inline(always)]
    pub(crate) const fn at(&self, row: usize) -> (usize, u32) {
        ((self.word[row] & 1) as usize, (self.shift[row] & 63) as u32)
    }
}

const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Hasher;

    #[test]
    fn rows_use_disjoint_bits_of_the_digest() {
        for rows in 1..=Shape::MAX_ROWS {
            for width_log2 in 2..=23 {
                let slices = Shape::new(rows, 1 << width_log2).unwrap().slices();
                let mut taken = [0u64, !0 << (u64::BITS - Digest::DEPTH_BITS), 0, 0];
                for row in 0..rows {
                    let bits = ((1u64 << (width_log2 + 1)) - 1) << slices.shift[row];
                    let word = usize::from(slices.word[row]);
                    assert_eq!(taken[word] & bits, 0, "{rows} x 2^{width_log2}");
                    assert_eq!((bits >> slices.shift[row]).count_ones(), width_log2 + 1);
                    taken[word] |= bits;
                }
            }
        }
    }

    #[test]
    fn columns_and_signs_are_uniform_in_every_digest_word() {
        let shape = Shape::new(8, 1 << 20).unwrap();
        let slices = shape.slices();
        assert!(!slices.is_short);
        for row in 0..8 {
            let (mut low, mut minus) = (0u32, 0u32);
            for key in 0u32..20_000 {
                let column = slices.of(Hasher::new(3).digest(&key.to_be_bytes()), row);
                low += u32::from(column.index < shape.width() / 2);
                minus += u32::from(column.minus);
            }
            // 20,000 coin tosses: five standard deviations are 354.
            assert!(low.abs_diff(10_000) < 354 && minus.abs_diff(10_000) < 354, "row {row}: {low} {minus}");
        }
    }

    #[test]
    fn memory_is_used_to_within_a_power_of_two() {
        let shape = Shape::for_memory(1 << 20, 5, 4).unwrap();
        assert_eq!((shape.rows(), shape.width(), shape.bytes(4)), (5, 32_768, 655_360));
        assert_eq!(Shape::for_memory(79, 5, 4), Err(ShapeError::Memory { bytes: 79, min: 80 }));
        assert_eq!(Shape::for_memory(80, 5, 4).unwrap().width(), 4);
        assert_eq!(Shape::for_memory(u64::MAX, 8, 1).unwrap().width(), Shape::MAX_WIDTH);
    }

    #[test]
    fn invalid_shapes_are_rejected() {
        assert_eq!(Shape::new(0, 8), Err(ShapeError::Rows { rows: 0 }));
        assert_eq!(Shape::new(9, 8), Err(ShapeError::Rows { rows: 9 }));
        for width in [0, 2, 3, 10_000, 1 << 25] {
            assert_eq!(Shape::new(5, width), Err(ShapeError::Width { width }));
        }
    }
}
