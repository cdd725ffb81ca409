use proptest::prelude::*;

use super::*;
use crate::nitro::Probability;
use crate::row_f2::row_f2_variance;

fn sampled(max_weight: f64, log2_inverse: u8) -> StreamStatistics {
    let min_probability = Probability::new(log2_inverse).unwrap();
    StreamStatistics {
        max_weight,
        min_probability,
        sampling_variance: max_weight * min_probability.excess(),
        ..StreamStatistics::default()
    }
}

fn interval(estimate: Estimate) -> (f64, f64) {
    (estimate.lower().unwrap(), estimate.upper().unwrap())
}

proptest! {
    /// The ends are where (F - f)^2 = c (E/w + a f), E raised for its own error.
    #[test]
    fn interval_ends_satisfy_the_inequality_of_chebyshev(row_f2 in 1e6..1e12f64, log2 in 0..=10u8, value in 0.0..1e6f64) {
        let statistics = sampled(1.0, log2);
        let noise = Noise::new(row_f2, 5, 1024, 1024.0, &statistics, 0);
        let a = statistics.sampling_variance();
        let r = 2.0 / 1024.0 + 4.0 * a / row_f2.sqrt() + a * a / row_f2;
        prop_assume!(8.0 * r < 0.25);
        let raised = row_f2 / (1.0 - (8.0 * r).sqrt());
        let (lower, upper) = interval(noise.interval(value));
        prop_assert!(lower < value && value < upper);
        for f in [lower, upper] {
            let (left, right) = ((value - f).powi(2), 8.0 * (raised / 1024.0 + a * f));
            let scale = raised / 128.0 + 8.0 * a * value;
            prop_assert!((left - right).abs() < 1e-6 * scale, "{} is not {}", left, right);
        }
    }

    /// Without sampling, c times the variance of collisions.
    #[test]
    fn interval_at_p_one_covers_only_collisions(row_f2 in 0.0..1e12f64, value in -1e6..1e6f64) {
        let noise = Noise::new(row_f2, 5, 1024, 1023.0, &StreamStatistics::default(), 0);
        let half = (8.0 * row_f2 / (1.0 - (16.0f64 / 1024.0).sqrt()) / 1023.0).sqrt();
        let (lower, upper) = interval(noise.interval(value));
        prop_assert!((lower - (value - half)).abs() <= 1e-9 * (half + value.abs()));
        prop_assert!((upper - (value + half)).abs() <= 1e-9 * (half + value.abs()));
        prop_assert!(noise.is_converged());
    }

    /// Compares r with the exact variance of a row's sum of squares, by the law of total variance and the cumulants
    /// of sampled weights.
    #[test]
    fn the_relative_variance_of_row_f2_is_at_most_the_documented_limit(
        flows in prop::collection::vec((1..20_000u32, 1..1500u32), 1..12), log2 in 0..=10u8, width_log2 in 2..=16u32,
    ) {
        let p = Probability::new(log2).unwrap().get();
        let width = f64::from(1u32 << width_log2);
        let (mut row_f2, mut of_squares, mut key_squares) = (0.0, 0.0, 0.0);
        let mut max_weight = 0.0f64;
        for &(packets, weight) in &flows {
            let (n, v) = (f64::from(packets), f64::from(weight));
            let (k1, k2) = (n * v, n * v * v * (1.0 - p) / p);
            let k3 = n * v.powi(3) * (1.0 - p) * (1.0 - 2.0 * p) / (p * p);
            let k4 = n * v.powi(4) * (1.0 - p) * (1.0 - 6.0 * p * (1.0 - p)) / p.powi(3);
            let square = k2 + k1 * k1;
            let fourth = k4 + 3.0 * k2 * k2 + 4.0 * k3 * k1 + 6.0 * k2 * k1 * k1 + k1.powi(4);
            row_f2 += square;
            of_squares += fourth - square * square;
            key_squares += square * square;
            max_weight = max_weight.max(v);
        }
        let exact = (2.0 / width * (row_f2 * row_f2 - key_squares) + of_squares) / (row_f2 * row_f2);
        let sampling_variance = max_weight * (1.0 / p - 1.0);
        let r = row_f2_variance(row_f2, 1 << width_log2, sampling_variance);
        prop_assert!(exact <= r * (1.0 + 1e-9), "{} above {}", exact, r);
    }
}

#[test]
fn unbounded_noise_gives_no_bound() {
    let short = Noise::new(1e4, 5, 1024, 1024.0, &sampled(1.0, 4), 0);
    assert!(!short.is_converged());
    assert_eq!(short.interval(7.0).bound, Bound::NotConverged);
    let exact = Noise::new(1e4, 5, 1024, 1024.0, &sampled(1.0, 0), 0);
    assert!(exact.interval(7.0).confidence().is_some());
    let narrow = Noise::new(1e9, 5, 32, 32.0, &StreamStatistics::default(), 0);
    assert_eq!(narrow.interval(7.0).bound, Bound::Unknown);
    let negative = StreamStatistics { has_negative: true, ..sampled(1.0, 4) };
    assert_eq!(Noise::new(1e12, 5, 1024, 1024.0, &negative, 0).interval(7.0).bound, Bound::Unknown);
    assert_eq!(exact.without_bound().interval(7.0).bound, Bound::Unknown);
    let empty = Noise::new(0.0, 5, 1024, 1024.0, &StreamStatistics::default(), 0);
    assert_eq!(interval(empty.interval(0.0)), (0.0, 0.0));
}

/// sqrt(c r) <= 1/2 in the number of packets of one key, p = 1/16: r = 1/512 + 60/n + 225/n^2 = 1/32 at n = 2,055.
#[test]
fn convergence_requires_row_f2_within_a_factor_of_two() {
    let is_converged = |l2: f64| Noise::new(l2 * l2, 5, 1024, 1024.0, &sampled(1.0, 4), 0).is_converged();
    assert!(!is_converged(2_050.0) && is_converged(2_060.0));
    let bytes = |l2: f64| Noise::new(l2 * l2, 5, 1024, 1024.0, &sampled(1500.0, 4), 0).is_converged();
    assert!(!bytes(1500.0 * 2_050.0) && bytes(1500.0 * 2_060.0));
}

/// Both medians hold with 1 - 2 median_failure; five rows: 0.968.
#[test]
fn the_confidence_of_five_rows_is_as_documented() {
    let noise = Noise::new(1e9, 5, 1024, 1024.0, &StreamStatistics::default(), 0);
    let confidence = noise.interval(1.0).confidence().unwrap();
    assert!((confidence - (1.0 - 2.0 * 526.0 / 32_768.0)).abs() < 1e-12);
    assert_eq!(format!("{confidence:.3}"), "0.968");
}

#[test]
fn collision_variance_divides_by_w_with_signs_and_w_minus_one_without() {
    use crate::{CountMin, CountSketch, Hasher, KAry, RowSketch};
    let (shape, hasher) = (Shape::new(3, 128).unwrap(), Hasher::new(1));
    assert_eq!(RowSketch::noise(&CountSketch::<i32>::new(shape, hasher)).effective_width(), 128.0);
    assert_eq!(RowSketch::noise(&KAry::<i32>::new(shape, hasher)).effective_width(), 127.0);
    assert_eq!(RowSketch::noise(&CountMin::<i32>::new(shape, hasher)).effective_width(), 127.0);
}
