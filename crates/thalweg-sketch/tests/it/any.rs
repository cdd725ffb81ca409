//! Sketches chosen at run time: the same as those of Rust types, with errors instead of panics, and updates without allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use thalweg_sketch::any::{AnyError, AnySketch, Settings, Size};
use thalweg_sketch::state::{AnyState, KeyBytes, Kind, Linear, Meta};
use thalweg_sketch::{
    CountSketch, Hasher, HyperLogLog, LineRate, Mode, Nitro, Probability, RowSketch, Shape, Target, WithTopK,
};

use crate::streams::Stream;

/// Counts the allocations of a thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "an allocator for the test that updates do not allocate")]
// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const KINDS: [Kind; 4] = [Kind::CountMin, Kind::CountSketch, Kind::KAry, Kind::UnivMon];

fn p(log2_inverse: u8) -> Probability {
    Probability::new(log2_inverse).unwrap()
}

fn keys_and_weights(stream: &Stream) -> (Vec<u8>, Vec<i64>) {
    (
        stream.packets.iter().flat_map(|packet| packet.0).collect(),
        stream.packets.iter().map(|p| p.1).collect(),
    )
}

fn all_settings() -> Vec<Settings> {
    let modes = [
        Mode::Fixed(p(0)),
        Mode::Fixed(p(6)),
        Mode::AlwaysLineRate(LineRate { epoch_ns: 1000, ..LineRate::default() }),
        Mode::AlwaysCorrect(Target::for_width(256)),
    ];
    let mut all = Vec::new();
    for kind in KINDS {
        for mode in modes {
            for (top_k, counter_bits) in [(0, 32), (20, 32), (0, 64), (20, 64)] {
                if kind != Kind::UnivMon || top_k > 0 {
                    let size = Size::Shape { rows: 5, width: 256 };
                    all.push(Settings { kind, size, top_k, counter_bits, mode, ..Settings::default() });
                }
            }
        }
    }
    all
}

#[test]
fn a_sketch_chosen_at_run_time_counts_as_its_type() {
    let stream = Stream::zipf(1.0, 1000, 50_000).in_bytes();
    let (keys, weights) = keys_and_weights(&stream);
    let mode = Mode::Fixed(p(4));
    let settings = Settings { mode, hash_seed: 7, sampler_seed: 9, top_k: 50, ..Settings::default() };
    let mut any = AnySketch::new(&settings).unwrap();
    let sketch = CountSketch::<i32>::new(Shape::new(5, 1024).unwrap(), Hasher::new(7));
    let mut typed = Nitro::new(WithTopK::<_, [u8; 4]>::new(sketch, 50), mode, 9);
    for (batch, (keys, weights)) in stream.packets.chunks(100).zip(keys.chunks(400).zip(weights.chunks(100)))
    {
        any.update(keys, 4, Some(weights)).unwrap();
        typed.update(batch);
    }
    let bytes = AnyState::from(Linear::CountSketch(typed.sketch().clone().into())).encode(&Meta::default());
    assert_eq!(any.encode(&Meta::default()), bytes);
    let key = stream.packets[0].0;
    assert_eq!(any.estimate(&key).unwrap(), typed.sketch().sketch.estimate_key(&key));
}

#[test]
fn every_kind_is_saved_restored_merged_and_emptied() {
    let stream = Stream::zipf(1.0, 1000, 20_000);
    let (keys, _) = keys_and_weights(&stream);
    for settings in all_settings() {
        let mut any = AnySketch::new(&settings).unwrap();
        let empty = any.encode(&Meta::default());
        keys.chunks(4000).for_each(|keys| any.update(keys, 4, None).unwrap());
        let meta = Meta { key_kind: "src".to_owned(), ..Meta::default() };
        let (read, restored) = AnySketch::decode(&any.encode(&meta)).unwrap();
        assert_eq!((read, restored.encode(&meta)), (meta.clone(), any.encode(&meta)));
        assert_eq!(restored.largest(), any.largest());
        assert_eq!((restored.kind(), restored.bytes()), (settings.kind, any.bytes()));
        let total = any.statistics().total();
        any.merge(&restored).unwrap();
        assert_eq!(any.statistics().total(), 2 * total);
        any.subtract(&restored).unwrap();
        assert_eq!(any.statistics().total(), total);
        any.clear();
        assert_eq!(any.encode(&Meta::default()), empty, "{settings:?}");
    }
}

#[test]
fn updates_do_not_allocate() {
    let stream = Stream::zipf(0.8, 5000, 100_000);
    let (keys, _) = keys_and_weights(&stream);
    for settings in all_settings() {
        let mut any = AnySketch::new(&settings).unwrap();
        let before = ALLOCATIONS.get();
        for (number, keys) in keys.chunks(128).enumerate() {
            any.advance(number as u64 * 500);
            any.update(keys, 4, None).unwrap();
            any.update_on_demand(32, None, |packet, key| {
                key[..4].copy_from_slice(&keys[4 * packet..][..4]);
                if packet == 5 { 0 } else { 4 }
            })
            .unwrap();
            any.skip(3);
        }
        assert_eq!(ALLOCATIONS.get(), before, "{settings:?}");
    }
}

#[test]
fn differences_are_named_when_sketches_are_combined() {
    let base = Settings { top_k: 5, ..Settings::default() };
    let mut ours = AnySketch::new(&base).unwrap();
    for (other, expected) in [
        (Settings { kind: Kind::KAry, ..base }, "kinds differ: Count Sketch and K-ary"),
        (Settings { counter_bits: 64, ..base }, "counter sizes differ: 32 and 64 bits"),
        (Settings { top_k: 0, ..base }, "only the first state tracks its largest keys"),
        (Settings { hash_seed: 1, ..base }, "hash seeds differ: 0x0 and 0x1"),
        (
            Settings { size: Size::Shape { rows: 4, width: 1024 }, ..base },
            "sizes differ: 5 x 1024 and 4 x 1024",
        ),
    ] {
        let theirs = AnySketch::new(&other).unwrap();
        for error in [ours.merge(&theirs).unwrap_err(), ours.subtract(&theirs).unwrap_err()] {
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
}

#[test]
fn wrong_requests_are_refused_with_the_expectation() {
    let refused = |settings: Settings, expected: &str| {
        let error = AnySketch::new(&settings).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let base = Settings::default();
    refused(Settings { kind: Kind::HyperLogLog, ..base }, "has no counters to sample");
    refused(Settings { counter_bits: 16, ..base }, "expected 32 or 64");
    refused(Settings { kind: Kind::UnivMon, top_k: 0, ..base }, "expected at least 1");
    refused(Settings { kind: Kind::UnivMon, levels: 18, ..base }, "expected 1 to 17");
    refused(Settings { size: Size::Shape { rows: 5, width: 1000 }, ..base }, "expected a power of two");
    refused(Settings { size: Size::Guarantee { eps: 2.0, delta: 0.1 }, ..base }, "eps = 2");
    refused(Settings { size: Size::Memory { bytes: 10, rows: 5 }, ..base }, "too few");
    refused(Settings { top_k: (1 << 24) + 1, ..base }, "expected at most 16777216");
    let line_rate = |change: fn(&mut LineRate)| {
        let mut line_rate = LineRate::default();
        change(&mut line_rate);
        Mode::AlwaysLineRate(line_rate)
    };
    let target = |eps| Mode::AlwaysCorrect(Target { eps, min_probability: p(7) });
    let wrong_modes = [
        (line_rate(|line_rate| line_rate.share = f64::NAN), "share = NaN: expected more than 0, at most 1"),
        (line_rate(|line_rate| line_rate.share = 2.0), "share = 2"),
        (line_rate(|line_rate| line_rate.epoch_ns = 0), "epoch_ns = 0: expected at least 1"),
        (line_rate(|line_rate| line_rate.row_ns = -1.0), "row_ns = -1"),
        (target(-1.0), "the error of AlwaysCorrect = -1: expected a number above 0"),
    ];
    for (mode, expected) in wrong_modes {
        refused(Settings { mode, ..base }, expected);
    }

    let mut any = AnySketch::new(&base).unwrap();
    assert!(any.set_mode(target(0.0), 1).is_err());
    assert_eq!(any.update(&[1; 7], 4, None), Err(AnyError::PartOfAKey { bytes: 7, key_bytes: 4 }));
    assert_eq!(any.update(&[1; 8], 4, Some(&[1])), Err(AnyError::Weights { weights: 1, keys: 2 }));
    for key_bytes in [0, KeyBytes::MAX_LENGTH + 1] {
        assert_eq!(any.update(&[1; 65], key_bytes, None), Err(AnyError::KeyBytes { key_bytes }));
    }
    let too_few = any.update_on_demand(2, Some(&[1]), |_, _| 4);
    assert_eq!(too_few, Err(AnyError::Weights { weights: 1, keys: 2 }));
    assert_eq!(any.statistics().total(), 0);
    assert!(any.entropy().unwrap_err().to_string().contains("a Count Sketch does not estimate entropy"));

    let distinct = AnyState::<KeyBytes>::from(HyperLogLog::new(10, Hasher::new(1)).unwrap());
    let error = AnySketch::decode(&distinct.encode(&Meta::default())).unwrap_err();
    assert_eq!(error, AnyError::NotLinear { kind: Kind::HyperLogLog });
    assert!(matches!(AnySketch::decode(b"text"), Err(AnyError::State(_))));
}
