//! A sketch to compare, and the outcome of a run.

use serde::{Deserialize, Serialize};

use super::keys::Key;
use super::textbook::Sketch;
use super::truth::mean_relative_error;
use crate::clock::nanos_of;

/// Rows of every sketch, where configurable.
pub const ROWS: usize = 5;
/// Counters per row.
pub const WIDTH: usize = 8_192;
/// Number of flows in a heap, and of flows for the error.
pub const TOP: usize = 100;
/// Levels of UnivMon.
pub const LEVELS: usize = 16;
/// Number of flows in each UnivMon level's heap.
pub const LEVEL_TOP: usize = 1_000;
/// Binary logarithm of the registers of HyperLogLog.
pub const PRECISION: u8 = 14;

/// The kind of sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Family {
    /// Counters without signs, estimated by the minimum (sampled: the median).
    #[serde(rename = "Count-Min")]
    CountMin,
    /// Counters with signs.
    #[serde(rename = "Count Sketch")]
    CountSketch,
    /// Counters without signs, corrected by the mean.
    #[serde(rename = "K-ary")]
    KAry,
    /// Levels of Count Sketch with a heap each.
    UnivMon,
    /// Maximum hash rank per register: counts flows, not packets.
    HyperLogLog,
}

impl Family {
    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Family::CountMin => "Count-Min",
            Family::CountSketch => "Count Sketch",
            Family::KAry => "K-ary",
            Family::UnivMon => "UnivMon",
            Family::HyperLogLog => "HyperLogLog",
        }
    }
}

/// A contender and the shape of its sketch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The implementation, and the variant of its use.
    pub contender: String,
    /// Kind of sketch.
    pub sketch: Family,
    /// Rows (of each level).
    pub rows: usize,
    /// Counters per row.
    pub width: usize,
    /// Probability with which a row, or a packet, is updated.
    pub p: f64,
    /// Number of flows in its heap (per level); zero without a heap.
    pub top: usize,
    /// Bytes per key.
    pub key_bytes: usize,
    /// Memory of all counters.
    pub memory_bytes: usize,
    /// Remarks on the comparison.
    pub note: String,
}

impl Subject {
    /// Creates a single sketch of the common shape with 32-bit counters and full keys.
    pub fn new(contender: &str, sketch: Family, p: f64) -> Subject {
        Subject {
            contender: contender.to_owned(),
            sketch,
            rows: ROWS,
            width: WIDTH,
            p,
            top: 0,
            key_bytes: size_of::<Key>(),
            memory_bytes: ROWS * WIDTH * size_of::<u32>(),
            note: String::new(),
        }
    }

    /// Adds a heap of [`TOP`] flows.
    pub fn with_top(self) -> Subject {
        Subject { top: TOP, ..self }
    }

    /// Sets [`LEVELS`] levels, each with a heap.
    pub fn with_levels(self) -> Subject {
        Subject { memory_bytes: self.memory_bytes * LEVELS, top: LEVEL_TOP, ..self }
    }

    /// Sets registers of one byte each instead of rows of counters.
    pub fn of_registers(self) -> Subject {
        let width = 1 << PRECISION;
        Subject { rows: 1, width, memory_bytes: width, ..self }.noting("error of the number of flows")
    }

    /// Adds a remark.
    pub fn noting(self, note: &str) -> Subject {
        Subject { note: note.to_owned(), ..self }
    }

    /// Returns the group of comparable sketches: the same kind and the same work.
    pub fn task(&self) -> (Family, bool) {
        (self.sketch, self.top > 0)
    }
}

/// The outcome of one run. Peers print it as a line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The contender.
    #[serde(flatten)]
    pub subject: Subject,
    /// Number of keys.
    pub packets: u64,
    /// CPU time of the updates alone.
    pub seconds: f64,
    /// Mean of `|estimate - count| / count` over the [`TOP`] largest flows; for sketches that only count flows, the
    /// relative error of that number.
    pub error: f64,
    /// Number of these flows in its heap, if it has one.
    pub found: Option<usize>,
}

impl Outcome {
    /// Returns million updates per second.
    pub fn rate(&self) -> f64 {
        self.packets as f64 / self.seconds.max(1e-9) / 1e6
    }
}

/// A sketch under test.
pub trait Summary {
    /// Updates it with a whole stream, in the recommended way.
    fn update_all(&mut self, keys: &[Key]);

    /// Returns the estimated packets of a flow, from the heap if it contains the flow. NaN if it does not estimate
    /// single flows.
    fn estimate(&self, _key: &Key) -> f64 {
        f64::NAN
    }

    /// Returns the flows in its heap, if it has one.
    fn top(&self) -> Option<Vec<Key>> {
        None
    }

    /// Returns the number of flows, if it only counts flows.
    fn distinct(&self) -> Option<f64> {
        None
    }
}

impl<S: Sketch> Summary for S {
    fn update_all(&mut self, keys: &[Key]) {
        for key in keys {
            self.update(key);
        }
    }

    fn estimate(&self, key: &Key) -> f64 {
        Sketch::estimate(self, key)
    }

    fn top(&self) -> Option<Vec<Key>> {
        Some(Sketch::top(self)?.into_iter().map(|(key, _)| key).collect())
    }
}

/// A contender that runs in this process.
pub struct Contender {
    /// Its description.
    pub subject: Subject,
    build: Box<dyn Fn() -> Box<dyn Summary>>,
}

impl Contender {
    /// Creates a contender; `build` returns an empty sketch.
    pub fn new<S: Summary + 'static>(subject: Subject, build: impl Fn() -> S + 'static) -> Contender {
        Contender { subject, build: Box::new(move || Box::new(build())) }
    }

    /// Runs it once over a stream of `flows` flows, of which `largest` are the [`TOP`] largest.
    pub fn run(&self, keys: &[Key], largest: &[(Key, u64)], flows: usize) -> Outcome {
        let mut summary = (self.build)();
        let seconds = nanos_of(|| summary.update_all(keys)) / 1e9;
        let named = summary.top();
        let error = match summary.distinct() {
            Some(distinct) => (distinct / flows as f64 - 1.0).abs(),
            None => mean_relative_error(largest, |key| summary.estimate(key)),
        };
        Outcome {
            subject: self.subject.clone(),
            packets: keys.len() as u64,
            seconds,
            error,
            found: named.map(|named| largest.iter().filter(|(key, _)| named.contains(key)).count()),
        }
    }
}
