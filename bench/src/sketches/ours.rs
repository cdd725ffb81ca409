//! Thalweg's sketches as contenders, updated in slices as by `thalweg watch`.

use thalweg_sketch::nitro::RowWise;
use thalweg_sketch::{
    CountMin, CountSketch, Digest, Hasher, HyperLogLog, KAry, Key as _, Mode, Nitro, Probability, RowSketch,
    Shape, UnivMon, UnivMonShape, WithTopK,
};

use super::contender::{Contender, Family, LEVEL_TOP, LEVELS, PRECISION, ROWS, Subject, Summary, TOP, WIDTH};
use super::keys::Key;

/// Name of our sketches.
pub const OURS: &str = "thalweg";

/// Keys per update.
pub const BATCH: usize = 2_048;

/// Seed of the hash, and of the draws.
const SEED: u64 = 1;

/// Returns each sketch with and without a heap, sampled with `probability`.
pub fn all(probability: Probability) -> Vec<Contender> {
    let families = [Family::CountMin, Family::CountSketch, Family::KAry, Family::UnivMon];
    let single = families.into_iter().map(|family| single(family, probability));
    single.chain([count_sketch_with_top(probability)]).collect()
}

/// Returns one sketch without a heap, except UnivMon, which needs heaps.
///
/// # Panics
/// For HyperLogLog, which cannot be sampled.
pub fn single(family: Family, probability: Probability) -> Contender {
    let subject = Subject::new(OURS, family, probability.get());
    match family {
        Family::CountMin => {
            Contender::new(subject, move || plain(CountMin::<i32>::new(shape(), hasher()), probability))
        }
        Family::CountSketch => {
            Contender::new(subject, move || plain(CountSketch::<i32>::new(shape(), hasher()), probability))
        }
        Family::KAry => {
            Contender::new(subject, move || plain(KAry::<i32>::new(shape(), hasher()), probability))
        }
        Family::UnivMon => Contender::new(subject.with_levels(), move || univmon(probability)),
        Family::HyperLogLog => panic!("HyperLogLog cannot be sampled: skipped packets are uncounted flows"),
    }
}

/// Returns Count Sketch with the [`TOP`] largest flows.
pub fn count_sketch_with_top(probability: Probability) -> Contender {
    let subject = Subject::new(OURS, Family::CountSketch, probability.get()).with_top();
    Contender::new(subject, move || {
        let sketch = WithTopK::<_, Key>::new(CountSketch::<i32>::new(shape(), hasher()), TOP);
        Ours {
            nitro: nitro(sketch, probability),
            estimate: |with_top, key| with_top.sketch.estimate_key(key).value,
            top: Some(|with_top| with_top.largest().into_iter().map(|(key, _)| key).collect()),
        }
    })
}

/// Returns HyperLogLog.
pub fn hyper_log_log() -> Contender {
    Contender::new(Subject::new(OURS, Family::HyperLogLog, 1.0).of_registers(), || {
        HyperLogLog::new(PRECISION, hasher()).expect("a precision in range")
    })
}

fn shape() -> Shape {
    Shape::new(ROWS, WIDTH).expect("a shape in range")
}

fn hasher() -> Hasher {
    Hasher::new(SEED)
}

fn nitro<S>(sketch: S, probability: Probability) -> Nitro<S> {
    Nitro::new(sketch, Mode::Fixed(probability), SEED)
}

fn plain<S: RowSketch>(sketch: S, probability: Probability) -> Ours<S> {
    Ours {
        nitro: nitro(sketch, probability),
        estimate: |sketch, key| sketch.estimate_key(key).value,
        top: None,
    }
}

fn univmon(probability: Probability) -> Ours<UnivMon<Key>> {
    let shape = UnivMonShape::new(LEVELS, shape(), LEVEL_TOP).expect("levels in range");
    Ours {
        nitro: nitro(UnivMon::new(shape, hasher()), probability),
        estimate: |univmon, key| univmon.estimate_key(key).value,
        top: Some(|univmon| univmon.largest().into_iter().map(|(key, _)| key).collect()),
    }
}

/// A sampled sketch and its queries.
struct Ours<S> {
    nitro: Nitro<S>,
    estimate: fn(&S, &Key) -> f64,
    top: Option<fn(&S) -> Vec<Key>>,
}

impl<S: RowWise<Key>> Summary for Ours<S> {
    fn update_all(&mut self, keys: &[Key]) {
        keys.chunks(BATCH).for_each(|keys| self.nitro.update(keys));
    }

    fn estimate(&self, key: &Key) -> f64 {
        (self.estimate)(self.nitro.sketch(), key)
    }

    fn top(&self) -> Option<Vec<Key>> {
        self.top.map(|top| top(self.nitro.sketch()))
    }
}

impl Summary for HyperLogLog {
    fn update_all(&mut self, keys: &[Key]) {
        let hasher = self.hasher();
        let mut digests = [Digest::default(); BATCH];
        for keys in keys.chunks(BATCH) {
            for (digest, key) in digests.iter_mut().zip(keys) {
                *digest = hasher.digest(key.as_bytes());
            }
            self.add_batch(&digests[..keys.len()]);
        }
    }

    fn distinct(&self) -> Option<f64> {
        Some(HyperLogLog::estimate(self).value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::{KeyStream, StreamOptions};
    use super::super::truth::mean_relative_error;
    use super::*;

    #[test]
    fn every_contender_estimates_its_stream() {
        let stream = KeyStream::generate(StreamOptions::zipf(200_000, 5_000, 1.0)).unwrap();
        let truth = stream.truth();
        let largest = truth.top(TOP);
        // An estimate of zero is an error of one.
        assert_eq!(mean_relative_error(&largest, |_| 0.0), 1.0);
        let all = all(Probability::ONE).into_iter().chain([hyper_log_log()]);
        for contender in all.chain([count_sketch_with_top(Probability::at_most(0.25))]) {
            let outcome = contender.run(&stream.keys, &largest, truth.distinct());
            assert!(outcome.error < 0.1, "{:?}: {}", contender.subject, outcome.error);
            assert!(outcome.found.is_none_or(|found| found > 80), "{outcome:?}");
        }
    }
}
