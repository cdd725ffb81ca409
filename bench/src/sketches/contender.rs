//! Who is compared, and what one run of one of them comes to.

use serde::{Deserialize, Serialize};

use super::keys::Key;
use super::textbook::Sketch;
use super::truth::mean_relative_error;
use crate::clock::nanos_of;

/// Rows of every sketch, where its maker lets us choose.
pub const ROWS: usize = 5;
/// Counters of a row.
pub const WIDTH: usize = 8_192;
/// Flows that a heap notes, and flows that the error is taken over.
pub const TOP: usize = 100;
/// Levels of UnivMon.
pub const LEVELS: usize = 16;
/// Flows that each level of UnivMon notes.
pub const LEVEL_TOP: usize = 1_000;
/// Binary logarithm of the registers of HyperLogLog.
pub const PRECISION: u8 = 14;

/// What kind of sketch it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Family {
    /// Counts without signs, estimated by the least (sampled: by the median).
    #[serde(rename = "Count-Min")]
    CountMin,
    /// Counts with signs.
    #[serde(rename = "Count Sketch")]
    CountSketch,
    /// Counts without signs, set right by the mean.
    #[serde(rename = "K-ary")]
    KAry,
    /// Levels of Count Sketch with a heap each.
    UnivMon,
    /// The highest rank of a hash in each register: flows alone, no packets.
    HyperLogLog,
}

impl Family {
    /// Name in tables.
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

/// A contender with the shape that its sketch has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// Whose code it is, and which way of calling it if there are several.
    pub contender: String,
    /// Kind of sketch.
    pub sketch: Family,
    /// Rows (of each level).
    pub rows: usize,
    /// Counters of a row.
    pub width: usize,
    /// Probability with which a row, or a packet, is counted.
    pub p: f64,
    /// Flows that its heap notes (at each level); zero without a heap.
    pub top: usize,
    /// Bytes of a key as it takes it.
    pub key_bytes: usize,
    /// Memory of all counters.
    pub memory_bytes: usize,
    /// What else has to be known to compare it.
    pub note: String,
}

impl Subject {
    /// A single sketch of the common shape with 32-bit counters that takes whole keys.
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

    /// With a heap of [`TOP`] flows.
    pub fn with_top(self) -> Subject {
        Subject { top: TOP, ..self }
    }

    /// With [`LEVELS`] levels, each with a heap.
    pub fn with_levels(self) -> Subject {
        Subject { memory_bytes: self.memory_bytes * LEVELS, top: LEVEL_TOP, ..self }
    }

    /// With registers of a byte each instead of rows of counters.
    pub fn of_registers(self) -> Subject {
        let width = 1 << PRECISION;
        Subject { rows: 1, width, memory_bytes: width, ..self }.noting("error of the number of flows")
    }

    /// With a remark.
    pub fn noting(self, note: &str) -> Subject {
        Subject { note: note.to_owned(), ..self }
    }

    /// What it can be compared with: sketches of the same kind that do the same work.
    pub fn task(&self) -> (Family, bool) {
        (self.sketch, self.top > 0)
    }
}

/// What one run came to. Programs of others print it as a line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Who ran.
    #[serde(flatten)]
    pub subject: Subject,
    /// Keys that it took.
    pub packets: u64,
    /// Processor time of the updates alone.
    pub seconds: f64,
    /// Mean of `|estimate - count| / count` over the [`TOP`] largest flows, in this run; of what only counts flows,
    /// the relative error of that.
    pub error: f64,
    /// How many of them its heap names, if it has one.
    pub found: Option<usize>,
}

impl Outcome {
    /// Million updates a second.
    pub fn rate(&self) -> f64 {
        self.packets as f64 / self.seconds.max(1e-9) / 1e6
    }
}

/// A summary under measurement.
pub trait Summary {
    /// Takes a whole stream, the way its users should.
    fn update_all(&mut self, keys: &[Key]);

    /// Packets of a flow; the heap's word, if there is a heap and it names the flow. NaN if it tells nothing of
    /// single flows.
    fn estimate(&self, _key: &Key) -> f64 {
        f64::NAN
    }

    /// The flows that its heap names, if it has one.
    fn top(&self) -> Option<Vec<Key>> {
        None
    }

    /// Flows, if it counts nothing else.
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
    /// What it is.
    pub subject: Subject,
    build: Box<dyn Fn() -> Box<dyn Summary>>,
}

impl Contender {
    /// `build` makes an empty summary.
    pub fn new<S: Summary + 'static>(subject: Subject, build: impl Fn() -> S + 'static) -> Contender {
        Contender { subject, build: Box::new(move || Box::new(build())) }
    }

    /// One run over a stream of so many `flows`, of which `largest` are the [`TOP`] largest.
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
