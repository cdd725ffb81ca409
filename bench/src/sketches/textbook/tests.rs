//! Comparison with exact counts. Streams, hashes and draws are seeded, so results are reproducible.

use super::*;
use crate::sketches::keys::{KeyStream, StreamOptions};
use crate::sketches::truth::{Truth, mean_relative_error};

fn stream() -> (Vec<Key>, Truth) {
    let stream = KeyStream::generate(StreamOptions::zipf(200_000, 20_000, 1.0)).unwrap();
    let truth = stream.truth();
    (stream.keys, truth)
}

fn fed<S: Sketch>(mut sketch: S, keys: &[Key]) -> S {
    for key in keys {
        sketch.update(key);
    }
    sketch
}

#[test]
fn single_flow_is_counted_exactly() {
    let keys = [[7; 13]; 1_000];
    assert_eq!(fed(CountMin::new(5, 64), &keys).estimate(&keys[0]), 1_000.0);
    assert_eq!(fed(CountSketch::new(5, 64), &keys).estimate(&keys[0]), 1_000.0);
    assert!((fed(KAry::new(5, 64), &keys).estimate(&keys[0]) - 1_000.0).abs() < 1e-9);
    assert_eq!(fed(NitroCountSketch::new(5, 64, 1, 1), &keys).estimate(&keys[0]), 1_000.0);
    assert_eq!(fed(UnivMon::new(4, 5, 64, 10), &keys).estimate(&keys[0]), 1_000.0);
}

/// No flow is underestimated, and the mean excess is that of the least loaded of five rows, below `n / width`.
#[test]
fn count_min_never_underestimates() {
    let (keys, truth) = stream();
    let sketch = fed(CountMin::new(5, 1_024), &keys);
    let excess: Vec<f64> = truth.counts().map(|(key, count)| sketch.estimate(key) - count as f64).collect();
    assert!(excess.iter().all(|excess| *excess >= 0.0));
    let mean = excess.iter().sum::<f64>() / excess.len() as f64;
    assert!(mean > 0.0 && mean < keys.len() as f64 / 1_024.0, "{mean}");
}

/// Each row's error has a standard deviation of at most `l2 / sqrt(width)`; the median of five exceeds three of
/// them with probability below 10 * (1/9)^3 < 0.014 (Chebyshev), and errors of flows cancel out.
#[test]
fn signed_and_corrected_sketches_are_unbiased() {
    let (keys, truth) = stream();
    let deviation = truth.l2() / 1_024f64.sqrt();
    let sketches: [(&str, Box<dyn Sketch>); 2] = [
        ("Count Sketch", Box::new(fed(CountSketch::new(5, 1_024), &keys))),
        ("K-ary", Box::new(fed(KAry::new(5, 1_024), &keys))),
    ];
    for (name, sketch) in sketches {
        let errors: Vec<f64> =
            truth.counts().map(|(key, count)| sketch.estimate(key) - count as f64).collect();
        let far = errors.iter().filter(|error| error.abs() > 3.0 * deviation).count();
        assert!((far as f64) < 0.014 * errors.len() as f64, "{name}: {far} of {}", errors.len());
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        // K-ary's errors are skewed: most counters are below the mean, and so are medians.
        assert!(mean.abs() < 0.5 * deviation, "{name}: {mean} of {deviation}");
    }
}

/// A flow of 5,000 packets alone, sampled at 1/16: each row has a standard deviation of
/// `sqrt(5000 * 15) = 274`, the mean over 200 seeds of a median of five one of about 10; 60 is six of them.
#[test]
fn sampling_is_unbiased_and_skips_most_packets() {
    let key = [3; 13];
    let mut sum = 0.0;
    let mut counted = 0;
    for seed in 0..200 {
        let mut sketch = NitroCountSketch::new(5, 64, 16, seed);
        counted += (0..5_000).filter(|_| sketch.update(&key)).count();
        sum += sketch.estimate(&key);
    }
    assert!((sum / 200.0 - 5_000.0).abs() < 60.0, "{}", sum / 200.0);
    // A packet is counted with probability 1 - (15/16)^5 = 0.276: 275,794 of a million, deviation 447.
    assert!((counted as f64 - 275_794.0).abs() < 6.0 * 447.0, "{counted}");
}

#[test]
fn heap_keeps_the_largest_flows() {
    let mut top = Top::new(3);
    for (number, estimate) in [(1, 5.0), (2, 1.0), (3, 3.0), (4, 2.0), (2, 4.0), (5, 0.5), (1, 6.0)] {
        top.offer(&[number; 13], estimate);
    }
    let mut flows: Vec<(u8, f64)> = top.flows().map(|(key, estimate)| (key[0], estimate)).collect();
    flows.sort_by_key(|(number, _)| *number);
    // Flow 4 replaced flow 2, and flow 2 replaced it again.
    assert_eq!(flows, [(1, 6.0), (2, 4.0), (3, 3.0)]);
    assert_eq!((top.get(&[2; 13]), top.get(&[4; 13])), (Some(4.0), None));
}

/// A heap with many random offers agrees with a sorted list and keeps its invariants.
#[test]
fn heap_agrees_with_a_sorted_list() {
    let (keys, truth) = stream();
    let mut top = Top::new(50);
    let mut exact = Truth::default();
    for (number, key) in keys.iter().enumerate() {
        exact.extend(std::slice::from_ref(key));
        top.offer(key, exact.count(key) as f64);
        if number % 100 == 0 {
            top.check_invariants();
        }
    }
    let mut sizes: Vec<f64> = top.flows().map(|(_, size)| size).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let expected: Vec<f64> = truth.top(50).iter().map(|(_, count)| *count as f64).collect();
    assert_eq!(sizes, expected);
    assert!(top.flows().all(|(key, size)| top.get(&key) == Some(size)));
}

#[test]
fn heaps_of_sketches_contain_the_largest_flows() {
    let (keys, truth) = stream();
    let largest = truth.top(20);
    let sketches: [(&str, Box<dyn Sketch>); 3] = [
        ("Count-Min", Box::new(fed(WithTop::new(CountMin::new(5, 4_096), 100), &keys))),
        ("Count Sketch", Box::new(fed(WithTop::new(CountSketch::new(5, 4_096), 100), &keys))),
        ("UnivMon", Box::new(fed(UnivMon::new(8, 5, 4_096, 100), &keys))),
    ];
    for (name, sketch) in sketches {
        let top = sketch.top().unwrap();
        let named = largest.iter().filter(|(key, _)| top.iter().any(|(other, _)| other == key)).count();
        assert_eq!((top.len(), named), (100, 20), "{name}");
        let error = mean_relative_error(&largest, |key| sketch.estimate(key));
        assert!(error < 0.05, "{name}: {error}");
    }
}

/// With twelve levels about five of 20,000 flows reach the last, and its heap has them all. Sums have errors of a few
/// percent, because few flows represent many.
#[test]
fn univmon_estimates_sums_over_flows() {
    let (keys, truth) = stream();
    let univmon = fed(UnivMon::new(12, 5, 8_192, 300), &keys);
    let within = |what, estimate: f64, exact: f64, tolerance| {
        assert!((estimate / exact - 1.0).abs() < tolerance, "{what}: {estimate}, not {exact}");
    };
    within("distinct flows", univmon.sum_over_flows(|_| 1.0), truth.distinct() as f64, 0.2);
    within("packets", univmon.sum_over_flows(|size| size), truth.l1() as f64, 0.1);
    within("second norm", univmon.sum_over_flows(|size| size * size).sqrt(), truth.l2(), 0.05);
    let packets = truth.l1() as f64;
    let surprise = |size: f64| size / packets * (packets / size).log2();
    within("entropy", univmon.sum_over_flows(surprise), truth.entropy(), 0.1);
}
