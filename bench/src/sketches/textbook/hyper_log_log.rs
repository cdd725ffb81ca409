//! HyperLogLog (Flajolet, Fusy, Gandouet and Meunier 2007).

use xxhash_rust::xxh64::xxh64;

use crate::sketches::contender::Summary;
use crate::sketches::keys::Key;

/// Each key maps to one of m registers, which keeps the maximum rank: the leading zeros of the rest of the hash plus
/// one. The estimate is the harmonic mean of 2^rank over the registers, times m and a constant; small estimates are
/// computed from the number of empty registers.
#[derive(Clone, Debug)]
pub struct HyperLogLog {
    precision: u32,
    registers: Vec<u8>,
}

impl HyperLogLog {
    /// Creates an empty sketch of 2^`precision` registers.
    ///
    /// # Panics
    /// If `precision` is not in 7..=18; smaller values need another constant.
    pub fn new(precision: u32) -> HyperLogLog {
        assert!((7..=18).contains(&precision), "a precision of 7 to 18");
        HyperLogLog { precision, registers: vec![0; 1 << precision] }
    }

    /// Returns the estimated number of flows.
    pub fn estimate(&self) -> f64 {
        let m = self.registers.len() as f64;
        let raw = 0.7213 / (1.0 + 1.079 / m) * m * m
            / self.registers.iter().map(|&rank| (-f64::from(rank)).exp2()).sum::<f64>();
        match self.registers.iter().filter(|&&rank| rank == 0).count() {
            empty if raw <= 2.5 * m && empty > 0 => m * (m / empty as f64).ln(),
            _ => raw,
        }
    }
}

impl Summary for HyperLogLog {
    fn update_all(&mut self, keys: &[Key]) {
        for key in keys {
            let hash = xxh64(key, 0);
            let register = &mut self.registers[(hash >> (64 - self.precision)) as usize];
            let rank = ((hash << self.precision).leading_zeros().min(64 - self.precision) + 1) as u8;
            *register = rank.max(*register);
        }
    }

    fn distinct(&self) -> Option<f64> {
        Some(self.estimate())
    }
}
