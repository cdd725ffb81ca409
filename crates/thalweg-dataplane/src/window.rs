//! The sketches of a window, built from the difference of two snapshots.

use thalweg_sketch::{
    CountMin, CountSketch, Estimate, HyperLogLog, KAry, Key, Probability, RegistersError, StreamStatistics,
    Uncounted, UnivMon,
};

use crate::layout::PROBABILITIES;
use crate::snapshot::{Cells, Snapshot, Totals};
use crate::spec::{SketchKind, Specification};

/// The length of an Ethernet header.
const ETHERNET_BYTES: u64 = 14;

/// The sketches of a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    specification: Specification,
    difference: Snapshot,
}

/// A sketch of a window.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WindowSketch<K: Key> {
    /// Count-Min of packets.
    CountMin32(CountMin<i32>),
    /// Count-Min of bytes.
    CountMin64(CountMin<i64>),
    /// Count Sketch of packets.
    CountSketch32(CountSketch<i32>),
    /// Count Sketch of bytes.
    CountSketch64(CountSketch<i64>),
    /// K-ary of packets.
    KAry32(KAry<i32>),
    /// K-ary of bytes.
    KAry64(KAry<i64>),
    /// UnivMon of packets, without candidates.
    UnivMon32(UnivMon<K, i32>),
    /// UnivMon of bytes, without candidates.
    UnivMon64(UnivMon<K, i64>),
    /// Distinct keys.
    HyperLogLog(HyperLogLog),
}

impl Window {
    pub(crate) fn new(specification: &Specification, now: &Snapshot, before: &Snapshot) -> Window {
        Window { specification: specification.clone(), difference: now.since(before) }
    }

    /// Returns the specification of the sketches.
    pub fn specification(&self) -> &Specification {
        &self.specification
    }

    /// Returns the totals of all frames.
    pub fn totals(&self) -> &Totals {
        &self.difference.totals
    }

    /// Returns the packets whose counters and numbers may be in different windows, because they arrived while the counters
    /// were read.
    pub fn skew(&self) -> u64 {
        self.difference.skew
    }

    /// Returns the estimated number of packets without a key, with its bound; exact if the sketch saw every packet.
    ///
    /// # Panics
    /// If there is no such sketch.
    pub fn uncounted(&self, sketch: usize) -> Estimate {
        let sampling = &self.difference.sketches[sketch].sampling;
        let rows = self.specification.sketches[sketch].kind.rows();
        sampling.uncounted().estimate(rows, &sampling.probabilities())
    }

    /// Adds the sampled pairs of packets without a key to `sum`, and returns the probabilities that sampled them.
    ///
    /// # Panics
    /// If there is no such sketch.
    pub fn add_uncounted(&self, sketch: usize, sum: &mut Uncounted) -> Vec<Probability> {
        let sampling = &self.difference.sketches[sketch].sampling;
        sampling.add_uncounted(sum);
        sampling.probabilities()
    }

    /// Whether every packet of the window was parsed for a sketch.
    ///
    /// # Panics
    /// If there is no such sketch.
    pub fn is_exact(&self, sketch: usize) -> bool {
        self.difference.sketches[sketch].sampling.probabilities().iter().all(|p| *p == Probability::ONE)
    }

    /// Returns the number of IP packets: all frames less those without a key, which are estimated if the sketch was
    /// sampled.
    ///
    /// # Panics
    /// If there is no such sketch.
    pub fn ip_packets(&self, sketch: usize) -> u64 {
        let sampling = &self.difference.sketches[sketch].sampling;
        let rows = self.specification.sketches[sketch].kind.rows();
        self.difference.totals.packets.saturating_sub(sampling.uncounted().packets(rows))
    }

    /// Returns the bytes of IP packets. If the sketch was sampled, the bytes of frames less Ethernet headers and less the
    /// other bytes outside IP packets, which are estimated from the sampled frames.
    ///
    /// # Panics
    /// If there is no such sketch.
    pub fn ip_bytes(&self, sketch: usize) -> u64 {
        let Totals { packets, bytes, ip_bytes, .. } = self.difference.totals;
        if self.is_exact(sketch) {
            return ip_bytes;
        }
        let rows = self.specification.sketches[sketch].kind.rows() as i64;
        let excess = self.difference.sketches[sketch].sampling.excess as i64 / rows;
        let frames = bytes.saturating_sub(ETHERNET_BYTES.wrapping_mul(packets));
        frames.saturating_add_signed(excess.saturating_neg())
    }

    /// Returns an upper bound of the variance of [`ip_bytes`](Self::ip_bytes): zero without sampling, else the sum of the squares of
    /// what each sampled pair stands for.
    ///
    /// # Panics
    /// If there is no such sketch.
    pub fn ip_bytes_variance(&self, sketch: usize) -> f64 {
        if self.is_exact(sketch) {
            return 0.0;
        }
        let rows = self.specification.sketches[sketch].kind.rows() as f64;
        self.difference.sketches[sketch].sampling.excess_squares as f64 / (rows * rows)
    }

    fn statistics(&self, number: usize) -> StreamStatistics {
        let spec = &self.specification.sketches[number];
        let (sampling, totals) = (&self.difference.sketches[number].sampling, &self.difference.totals);
        let by_probability = (0..PROBABILITIES).filter_map(|k| Some((k, Probability::new(k as u8)?)));
        if spec.counts_bytes {
            let squares = by_probability.map(|(k, probability)| (probability, sampling.squares[k] as f64));
            let largest = if self.is_exact(number) { totals.largest_ip } else { totals.largest };
            return StreamStatistics::of_counted_stream(self.ip_bytes(number), largest as f64, squares);
        }
        let packets = self.ip_packets(number);
        let all_pairs = sampling.pairs.iter().sum::<u64>().max(1) as f64;
        // Of the packets without a key as many are subtracted at each probability as of all packets.
        let squares = by_probability
            .map(|(k, probability)| (probability, sampling.pairs[k] as f64 / all_pairs * packets as f64));
        let largest = if packets > 0 { 1.0 } else { 0.0 };
        StreamStatistics::of_counted_stream(packets, largest, squares)
    }

    /// Returns a sketch of the window. Its counters may have left their range if more than 2^31 packets were counted:
    /// then it says so, by a saturation.
    ///
    /// # Errors
    /// If registers have impossible ranks.
    ///
    /// # Panics
    /// If there is no such sketch.
    pub fn sketch<K: Key>(&self, number: usize) -> Result<WindowSketch<K>, RegistersError> {
        let (spec, hasher) = (&self.specification.sketches[number], self.specification.hasher);
        let statistics = self.statistics(number);
        let saturations =
            u64::from(!spec.counts_bytes && self.difference.totals.packets > i32::MAX as u64 / 2);
        Ok(match (&self.difference.sketches[number].cells, spec.kind) {
            (Cells::Packets(cells), SketchKind::CountMin(shape)) => WindowSketch::CountMin32(
                CountMin::of_counted(shape, hasher, cells.clone(), statistics, saturations),
            ),
            (Cells::Bytes(cells), SketchKind::CountMin(shape)) => WindowSketch::CountMin64(
                CountMin::of_counted(shape, hasher, cells.clone(), statistics, saturations),
            ),
            (Cells::Packets(cells), SketchKind::CountSketch(shape)) => WindowSketch::CountSketch32(
                CountSketch::of_counted(shape, hasher, cells.clone(), statistics, saturations),
            ),
            (Cells::Bytes(cells), SketchKind::CountSketch(shape)) => WindowSketch::CountSketch64(
                CountSketch::of_counted(shape, hasher, cells.clone(), statistics, saturations),
            ),
            (Cells::Packets(cells), SketchKind::KAry(shape)) => {
                WindowSketch::KAry32(KAry::of_counted(shape, hasher, cells.clone(), statistics, saturations))
            }
            (Cells::Bytes(cells), SketchKind::KAry(shape)) => {
                WindowSketch::KAry64(KAry::of_counted(shape, hasher, cells.clone(), statistics, saturations))
            }
            (Cells::Packets(cells), SketchKind::UnivMon(shape)) => {
                WindowSketch::UnivMon32(UnivMon::of_counted(shape, hasher, cells, statistics, saturations))
            }
            (Cells::Bytes(cells), SketchKind::UnivMon(shape)) => {
                WindowSketch::UnivMon64(UnivMon::of_counted(shape, hasher, cells, statistics, saturations))
            }
            (Cells::Registers(registers), SketchKind::HyperLogLog { precision }) => {
                WindowSketch::HyperLogLog(HyperLogLog::from_registers(precision, hasher, registers.clone())?)
            }
            (cells, kind) => unreachable!("{kind} has {cells:?}"),
        })
    }
}
