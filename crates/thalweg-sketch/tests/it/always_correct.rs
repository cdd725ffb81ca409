//! AlwaysCorrect: every estimate is within eps L2 at every moment, sampled or not.
//!
//! For each stream 200 seeds of hash and draws. At many moments the test queries the heaviest keys, others and absent
//! ones. An estimate further than eps L2 from the truth has a probability of at most delta = 2 median_failure(5, 1/8)
//! = 0.032. So for each key and moment, fewer than 200 (delta + 5 sqrt(delta (1 - delta)/200)) = 19 of 200 seeds may
//! give one; by chance more do once in 10^5 times, if delta is as large as the guarantee allows. The inequality
//! behind the guarantee, c ((L2^2 + Q)/w + a L2) <= eps^2 L2^2, is checked with the true L2. It fails where a sketch
//! measures its L2 too high, which half of delta covers.

use thalweg_sketch::{
    CHEBYSHEV_FACTOR, CountSketch, Hasher, Mode, Nitro, Probability, RowSketch, Shape, Target, median_failure,
};

use crate::streams::{FlowKey, Stream};

const SEEDS: u64 = 200;

struct Run {
    /// p of each seed at each moment.
    probabilities: Vec<Vec<Probability>>,
}

impl Run {
    /// The median over the seeds, at each moment.
    fn medians(&self) -> Vec<Probability> {
        let moments = 0..self.probabilities[0].len();
        let median = |moment| {
            let mut all: Vec<_> = self.probabilities.iter().map(|of_seed: &Vec<_>| of_seed[moment]).collect();
            all.sort();
            all[all.len() / 2]
        };
        moments.map(median).collect()
    }
}

/// Queries the sketch `moments` times.
fn run(stream: &Stream, moments: usize, shape: Shape, target: Target) -> Run {
    let step = stream.packets.len() / moments;
    let moments: Vec<(Vec<(FlowKey, f64)>, f64)> = (1..=moments)
        .map(|moment| Stream::of(stream.packets[..moment * step].to_vec()))
        .map(|until| (until.queries(8), until.f2().sqrt()))
        .collect();
    let mut violations = vec![0u32; moments.len()];
    let mut outside: Vec<Vec<u32>> = moments.iter().map(|(queried, _)| vec![0; queried.len()]).collect();
    let probabilities = (0..SEEDS)
        .map(|seed| {
            let sketch = CountSketch::<i64>::new(shape, Hasher::new(seed));
            let mut nitro = Nitro::new(sketch, Mode::AlwaysCorrect(target), !seed);
            let mut probabilities = Vec::new();
            for (moment, (part, (queried, l2))) in stream.packets.chunks(step).zip(&moments).enumerate() {
                part.chunks(3_001).for_each(|batch| nitro.update(batch));
                probabilities.push(nitro.probability());
                let statistics = RowSketch::statistics(nitro.sketch());
                let collisions = (l2 * l2 + statistics.sampling_f2()) / shape.width() as f64;
                let variance = collisions + statistics.sampling_variance() * l2;
                violations[moment] += u32::from(CHEBYSHEV_FACTOR * variance > (target.eps * l2).powi(2));
                let noise = RowSketch::noise(nitro.sketch());
                for ((key, truth), outside) in queried.iter().zip(&mut outside[moment]) {
                    let value = nitro.sketch().estimate(Hasher::new(seed).digest(key), &noise).value;
                    *outside += u32::from((value - truth).abs() > target.eps * l2);
                }
            }
            probabilities
        })
        .collect();
    let limit = |delta: f64| SEEDS as f64 * delta + 5.0 * (SEEDS as f64 * delta * (1.0 - delta)).sqrt();
    let delta = median_failure(shape.rows(), 1.0 / CHEBYSHEV_FACTOR);
    for (moment, (violations, outside)) in violations.into_iter().zip(outside).enumerate() {
        assert!(
            f64::from(violations) <= limit(delta),
            "moment {moment}: inequality violated for {violations} seeds"
        );
        let max = *outside.iter().max().unwrap();
        assert!(f64::from(max) <= limit(2.0 * delta), "moment {moment}: {max} outside");
    }
    Run { probabilities }
}

fn shape() -> Shape {
    Shape::new(5, 256).unwrap()
}

#[test]
fn skewed_streams_are_sampled_early_and_stay_within_eps() {
    for (stream, min) in [(Stream::zipf(1.4, 20_000, 120_000), 4), (Stream::zipf(1.0, 20_000, 120_000), 2)] {
        let medians = run(&stream, 6, shape(), Target::for_width(256)).medians();
        assert_eq!(medians[0], Probability::ONE);
        assert!(medians[5] <= Probability::new(min).unwrap(), "{medians:?}");
    }
}

#[test]
fn single_keys_and_byte_weights_stay_within_eps() {
    let medians = run(&Stream::one_key(80_000), 4, shape(), Target::for_width(256)).medians();
    assert_eq!(*medians.last().unwrap(), Probability::PAPER_MIN, "{medians:?}");
    let medians =
        run(&Stream::zipf(1.4, 20_000, 80_000).in_bytes(), 4, shape(), Target::for_width(256)).medians();
    assert!(medians[3] < Probability::ONE, "{medians:?}");
}

/// L2 of 100,000 packets of 2,000 keys is 2,236: far below what sampling half of the updates would need.
#[test]
fn uniform_streams_stay_within_eps() {
    let medians = run(&Stream::uniform(2_000, 100_000), 5, shape(), Target::for_width(256)).medians();
    assert_eq!(medians[0], Probability::ONE);
}

/// After 70,000 packets of 1,600 keys, new keys with one packet each: L2^2 stays near 1,750^2, while the sampling
/// noise grows with every packet. About 100,000 of them use up a target that leaves half as much again for sampling.
#[test]
fn a_flood_of_new_keys_raises_p_and_stays_within_eps() {
    let mut packets = Stream::uniform(1_600, 70_000).packets;
    packets.extend((0..210_000u32).map(|number| ((1_000_000 + number).to_be_bytes(), 1)));
    let shape = Shape::new(5, 128).unwrap();
    let target =
        Target { eps: (1.5 * CHEBYSHEV_FACTOR / 128.0).sqrt(), min_probability: Probability::PAPER_MIN };
    let medians = run(&Stream::of(packets), 8, shape, target).medians();
    assert!(medians[1] < Probability::ONE, "sampling has not begun: {medians:?}");
    assert_eq!(*medians.last().unwrap(), Probability::ONE, "{medians:?}");
}

/// 66,000 packets of 64 bytes, which bring p to 1/128, then a new key with packets of 9,000 or 65,535 bytes. A few of
/// those, sampled with the p that was right for the others, would put up to every seed outside.
#[test]
fn a_new_maximum_weight_stays_within_eps() {
    for weight in [9_000, 65_535] {
        let mut packets: Vec<_> = (0..66_000u32).map(|number| ((number % 4).to_be_bytes(), 64)).collect();
        packets.extend([([9; 4], weight); 200]);
        let medians = run(&Stream::of(packets), 331, shape(), Target::for_width(256)).medians();
        assert!(medians[329] < Probability::ONE, "{medians:?}");
    }
}
