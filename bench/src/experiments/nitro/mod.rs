//! Claims of NitroSketch (Liu et al. 2019) on synthetic key streams: one module per experiment.
//!
//! All draw 13-byte keys by Zipf's law from one tenth as many flows as packets. AlwaysLineRate runs in virtual time
//! with evenly spaced packets, so that everything but speeds is reproducible.

mod samples;

pub(super) mod convergence;
pub(super) mod memory;
pub(super) mod packet_sampling;
pub(super) mod skew;
pub(super) mod throughput;

use thalweg_sketch::nitro::RowWise;
use thalweg_sketch::{LineRate, Mode, Nitro, Probability, Target};
use xxhash_rust::xxh64::xxh64;

use crate::results::grouped;
use crate::sketches::keys::{Key, KeyStream, StreamOptions};
use crate::sketches::ours::BATCH;
use crate::sketches::truth::Truth;

/// Rows of every sketch.
const ROWS: usize = 5;
/// Counters per row, unless determined by memory.
const WIDTH: usize = 8_192;
/// Number of largest flows for errors.
const TOP: usize = 100;
/// A flow with more than this share of the packets is heavy.
const HEAVY: f64 = 0.0005;
/// Candidates of a sketch; with Zipf's law and exponent 1 about 140 flows are heavy.
const CANDIDATES: usize = 256;

/// AlwaysLineRate with the default of a tenth of a core, and a decision every millisecond.
const LINE_RATE: LineRate = LineRate {
    epoch_ns: 1_000_000,
    share: 0.1,
    row_ns: 1.5,
    sampled_row_ns: 12.0,
    min_probability: Probability::PAPER_MIN,
};

/// The sampling mode of a sketch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sampling {
    /// A constant p.
    Fixed(Probability),
    /// AlwaysLineRate, at this rate in million packets per second.
    LineRate(u32),
    /// AlwaysCorrect.
    Correct,
}

impl Sampling {
    /// No sampling.
    const VANILLA: Sampling = Sampling::Fixed(Probability::ONE);

    fn name(self) -> String {
        match self {
            Sampling::Fixed(Probability::ONE) => "vanilla".to_owned(),
            Sampling::Fixed(probability) => format!("p = {probability}"),
            Sampling::LineRate(rate) => format!("AlwaysLineRate, {rate} Mpps"),
            Sampling::Correct => "AlwaysCorrect".to_owned(),
        }
    }

    fn mode(self, width: usize) -> Mode {
        match self {
            Sampling::Fixed(probability) => Mode::Fixed(probability),
            Sampling::LineRate(_) => Mode::AlwaysLineRate(LINE_RATE),
            Sampling::Correct => Mode::AlwaysCorrect(Target::for_width(width)),
        }
    }
}

/// A sampled sketch in virtual time.
#[derive(Clone, Debug)]
struct Feed<S> {
    nitro: Nitro<S>,
    packets: u64,
    /// Packets per microsecond.
    rate: u64,
}

impl<S: RowWise<Key>> Feed<S> {
    /// Wraps an empty sketch whose rows have `width` counters; `seed` is that of the draws.
    fn new(sketch: S, sampling: Sampling, width: usize, seed: u64) -> Feed<S> {
        let rate = if let Sampling::LineRate(rate) = sampling { rate.max(1).into() } else { 1 };
        Feed { nitro: Nitro::new(sketch, sampling.mode(width), seed), packets: 0, rate }
    }

    /// Counts packets in slices, each at its virtual time.
    fn take(&mut self, keys: &[Key]) {
        for keys in keys.chunks(BATCH) {
            self.nitro.advance(self.packets * 1_000 / self.rate);
            self.nitro.update(keys);
            self.packets += keys.len() as u64;
        }
    }

    fn sketch(&self) -> &S {
        self.nitro.sketch()
    }
}

/// Generates a stream with Zipf's law and a share of flood packets.
fn zipf(packets: u64, exponent: f64, flood: f64) -> anyhow::Result<KeyStream> {
    let flows = (packets / 10).max(1_000);
    KeyStream::generate(StreamOptions { flood, ..StreamOptions::zipf(packets as usize, flows, exponent) })
}

/// Describes a stream for result pages.
fn describe(stream: &KeyStream, truth: &Truth) -> String {
    let StreamOptions { flows, exponent, .. } = stream.options;
    format!(
        "{} packets of {} flows, drawn from {} by Zipf's law with exponent {exponent}",
        grouped(truth.l1()),
        grouped(truth.distinct() as u64),
        grouped(flows),
    )
}

/// Returns `count` flows chosen uniformly.
fn any_flows(truth: &Truth, count: usize) -> Vec<(Key, u64)> {
    let mut flows: Vec<(u64, Key, u64)> =
        truth.counts().map(|(key, packets)| (xxh64(key, 1), *key, packets)).collect();
    if count < flows.len() {
        flows.select_nth_unstable(count);
        flows.truncate(count);
    }
    flows.sort_unstable();
    flows.into_iter().map(|(_, key, packets)| (key, packets)).collect()
}

/// Precision and recall of reported flows.
struct Found {
    recall: f64,
    precision: f64,
}

impl Found {
    /// Compares reported with heavy flows; both values are 1 if there is nothing to compare.
    fn of(reported: &[Key], heavy: &[Key]) -> Found {
        let both = reported.iter().filter(|key| heavy.contains(key)).count() as f64;
        let share = |of: usize| if of == 0 { 1.0 } else { both / of as f64 };
        Found { recall: share(heavy.len()), precision: share(reported.len()) }
    }
}

/// Returns the keys of flows.
fn keys_of(flows: &[(Key, u64)]) -> Vec<Key> {
    flows.iter().map(|(key, _)| *key).collect()
}

/// Formats a share in percent with significant digits.
fn percent(share: f64) -> String {
    match 100.0 * share {
        number if number.is_nan() => "-".to_owned(),
        0.0 => "0 %".to_owned(),
        number if number.abs() < 0.001 => "< 0.001 %".to_owned(),
        number if number.abs() < 0.1 => format!("{number:.3} %"),
        number if number.abs() < 10.0 => format!("{number:.2} %"),
        number => format!("{number:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_flows_are_reproducible_and_not_the_largest() {
        let truth = zipf(20_000, 1.0, 0.0).unwrap().truth();
        let flows = any_flows(&truth, 50);
        assert_eq!(flows, any_flows(&truth, 50));
        assert_eq!(flows.len(), 50);
        assert!(flows.iter().all(|(key, count)| truth.count(key) == *count));
        assert_eq!(any_flows(&truth, 1 << 20).len(), truth.distinct());
    }

    #[test]
    fn recall_and_precision_are_correct() {
        let keys = |numbers: &[u8]| numbers.iter().map(|number| [*number; 13]).collect::<Vec<Key>>();
        let found = Found::of(&keys(&[1, 2, 3, 9]), &keys(&[1, 2]));
        assert_eq!((found.recall, found.precision), (1.0, 0.5));
        let found = Found::of(&[], &keys(&[1]));
        assert_eq!((found.recall, found.precision), (0.0, 1.0));
    }

    #[test]
    fn line_rate_lowers_p_with_the_packet_rate() {
        use thalweg_sketch::{CountSketch, Hasher, Shape};
        // A tenth of a core at 40 million packets per second: 2.5 ns per packet, five sampled rows of 12 ns; 1/32 fits.
        // At 10
        // million it is 10 ns, and five rows at p = 1 take 7.5.
        for (rate, inverse) in [(1, 1), (10, 1), (40, 32)] {
            let sketch = CountSketch::<i32>::new(Shape::new(5, 64).unwrap(), Hasher::new(1));
            let mut feed = Feed::new(sketch, Sampling::LineRate(rate), 64, 1);
            feed.take(&vec![[0; 13]; 200_000]);
            assert_eq!(feed.nitro.probability().inverse(), inverse, "{rate}");
        }
    }
}
