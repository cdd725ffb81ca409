//! The matrix of small distinct counters: rows of cells, a cell of 2^c registers, all in one array.
//!
//! A cell of 64 registers is exactly one cache line.

use crate::digest::Digest;
use crate::hyper_log_log::estimator::{numerator, sigma};
use crate::hyper_log_log::{join, raise, register_and_rank};
use crate::memory::prefetch;
use crate::shape::{Shape, Slices};

/// Registers that are read together: the smallest cell has as many.
const LANES: usize = 16;

/// The exponent bits of 1.0: a float with an exponent n less is 2^-n.
const ONE_EXPONENT: u32 = 127;

/// A cache line of registers, for its alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Rows of cells.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cells {
    shape: Shape,
    slices: Slices,
    precision: u8,
    /// All registers, row by row.
    lines: Vec<Line>,
    /// The term of z registers of rank 0 in the denominator of the estimate, minus z, by z.
    zero_rank_terms: Vec<f64>,
}

impl Cells {
    pub(super) fn new(shape: Shape, precision: u8) -> Cells {
        let registers = shape.counters() << precision;
        let in_cell = 1u32 << precision;
        let counts_for = |zeros: u32| {
            let (zeros, all) = (f64::from(zeros), f64::from(in_cell));
            all * sigma(zeros / all) - zeros
        };
        Cells {
            shape,
            slices: shape.slices(),
            precision,
            lines: vec![Line([0; 64]); registers.div_ceil(size_of::<Line>())],
            zero_rank_terms: (0..=in_cell).map(counts_for).collect(),
        }
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn precision(&self) -> u8 {
        self.precision
    }

    pub(super) fn registers(&self) -> &[u8] {
        bytemuck::must_cast_slice(&self.lines)
    }

    pub(super) fn registers_mut(&mut self) -> &mut [u8] {
        bytemuck::must_cast_slice_mut(&mut self.lines)
    }

    pub(super) fn bytes(&self) -> u64 {
        size_of_val(self.lines.as_slice()) as u64
    }

    pub(super) fn clear(&mut self) {
        self.lines.fill(Line([0; 64]));
    }

    pub(super) fn join(&mut self, other: &Cells) {
        join(self.registers_mut(), other.registers());
    }

    /// Returns the index of the first register of a key's cell.
    #[inline(always)]
    fn cell(&self, row: usize, key: Digest) -> usize {
        (row * self.shape.width() + self.slices.of(key, row).index) << self.precision
    }

    /// Returns the index of the register that counts a key's peer in `row`, and its rank; prefetches the register.
    #[inline(always)]
    pub(super) fn locate(&self, row: usize, key: Digest, peer: Digest) -> (usize, u8) {
        let (register, rank) = register_and_rank(peer, self.precision);
        let number = self.cell(row, key) + register;
        prefetch(&self.registers()[number]);
        (number, rank)
    }

    /// Raises a register to `rank`; returns whether it changed.
    #[inline(always)]
    pub(super) fn raise(&mut self, number: usize, rank: u8) -> bool {
        raise(&mut self.registers_mut()[number], rank)
    }

    /// Estimates the number of peers in a key's cell of `row`.
    #[inline(always)]
    pub(super) fn peers(&self, row: usize, key: Digest) -> f64 {
        let cell = self.cell(row, key);
        self.read(&self.registers()[cell..][..1 << self.precision])
    }

    /// Estimates the number of peers in a key's minimum cell.
    pub(super) fn min_peers(&self, key: Digest) -> f64 {
        (0..self.shape.rows()).map(|row| self.peers(row, key)).fold(f64::INFINITY, f64::min)
    }

    /// Estimates the numbers of peers in all cells of a row.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = f64> {
        let in_row = self.shape.width() << self.precision;
        self.registers()[row * in_row..][..in_row]
            .chunks_exact(1 << self.precision)
            .map(|cell| self.read(cell))
    }

    /// Computes the estimate of [`crate::hyper_log_log`] for one cell, in a few vector operations.
    ///
    /// Registers of the last rank are taken at face value: the correction tau for them is smaller than rounding below
    /// 2^50 peers.
    #[inline(always)]
    fn read(&self, cell: &[u8]) -> f64 {
        let mut sums = [0f32; LANES];
        let mut zeros = [0u8; LANES];
        for ranks in cell.as_chunks::<LANES>().0 {
            for lane in 0..LANES {
                sums[lane] += f32::from_bits((ONE_EXPONENT - u32::from(ranks[lane])) << 23);
                zeros[lane] += u8::from(ranks[lane] == 0);
            }
        }
        let sum: f32 = sums.iter().sum();
        let zeros: usize = zeros.iter().map(|&zeros| usize::from(zeros)).sum();
        let value = numerator(cell.len() as f64) / (f64::from(sum) + self.zero_rank_terms[zeros]);
        value.max((cell.len() - zeros) as f64)
    }
}
