//! Wrong arguments are refused with a text, and nothing else happens.

#![expect(unsafe_code, reason = "calls of the C interface")]

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

use thalweg_c::options::*;
use thalweg_c::query::*;
use thalweg_c::save::*;
use thalweg_c::sketch::Sketch;
use thalweg_c::status::*;
use thalweg_c::update::*;

fn last_error() -> String {
    // SAFETY: the text ends with a zero byte and lives until the next failure.
    unsafe { CStr::from_ptr(thalweg_last_error()) }.to_str().unwrap().to_owned()
}

fn created(options: &SketchOptions) -> *mut Sketch {
    let mut sketch = null_mut();
    // SAFETY: both pointers are valid.
    let status = unsafe { thalweg_sketch_create(options, &raw mut sketch) };
    assert_eq!(status, Status::Ok, "{}", last_error());
    sketch
}

extern "C" fn too_long(_: *mut c_void, packet: usize, _: *mut u8) -> usize {
    if packet == 0 { usize::MAX } else { 0 }
}

#[test]
fn null_is_refused_wherever_a_value_is_needed() {
    let sketch = created(&SketchOptions::default());
    let mut estimate = SketchEstimate::from(thalweg_sketch::Estimate::exact(0.0));
    // SAFETY: each pointer is null or valid.
    unsafe {
        for status in [
            thalweg_sketch_options_init(null_mut(), 100),
            thalweg_sketch_create(null(), null_mut()),
            thalweg_sketch_create(&SketchOptions::default(), null_mut()),
            thalweg_sketch_update(null_mut(), null(), 4, null(), 0),
            thalweg_sketch_update(sketch, null(), 4, null(), 1),
            thalweg_sketch_update_with(sketch, 1, None, null_mut(), null()),
            thalweg_sketch_estimate(sketch, [1u8; 4].as_ptr(), 4, 1, null_mut()),
            thalweg_sketch_largest(sketch, 1, null_mut(), null_mut(), null_mut(), &mut 0),
            thalweg_sketch_ask(sketch, 0, null_mut()),
            thalweg_sketch_ask(sketch, 9, &raw mut estimate),
            thalweg_sketch_statistics(sketch, null_mut()),
            thalweg_sketch_save(sketch, null(), null(), 0, 0, null_mut(), null_mut()),
            thalweg_sketch_load(null(), 3, null_mut()),
            thalweg_sketch_merge(sketch, null()),
            thalweg_sketch_merge(sketch, sketch),
            thalweg_sketch_clear(null_mut()),
        ] {
            assert_eq!(status, Status::InvalidArgument);
        }
        assert_eq!(thalweg_sketch_update(sketch, null(), 4, null(), 0), Status::Ok);
        assert_eq!((thalweg_sketch_unsampled(null()), thalweg_sketch_skip(null_mut(), 5)), (0, 0));
        thalweg_sketch_free(null_mut());
        thalweg_bytes_free(null_mut(), 0);
        thalweg_sketch_free(sketch);
    }
}

#[test]
fn errors_have_a_status_and_a_text() {
    let sketch = created(&SketchOptions::default());
    let other = created(&SketchOptions { kind: 4, ..SketchOptions::default() });
    let mut loaded = null_mut();
    let mut estimate = SketchEstimate::from(thalweg_sketch::Estimate::exact(0.0));
    // SAFETY: all pointers are valid.
    unsafe {
        assert_eq!(thalweg_sketch_ask(sketch, 2, &raw mut estimate), Status::Unanswered);
        assert!(last_error().contains("does not estimate entropy"), "{}", last_error());
        assert_eq!(thalweg_sketch_merge(sketch, other), Status::Mismatch);
        assert!(last_error().contains("kinds differ"), "{}", last_error());
        assert_eq!(thalweg_sketch_load(b"text".as_ptr(), 4, &raw mut loaded), Status::InvalidState);
        assert!(loaded.is_null());
        assert_eq!(
            thalweg_sketch_update(sketch, [0u8; 4].as_ptr(), usize::MAX, null(), 2),
            Status::InvalidArgument
        );
        assert!(last_error().contains("more than the address space"), "{}", last_error());
        thalweg_sketch_free(sketch);
        thalweg_sketch_free(other);
    }
}

#[test]
fn options_that_contradict_each_other_or_are_out_of_range_are_refused() {
    let base = SketchOptions::default();
    let wrong = [
        (SketchOptions { eps: 0.1, memory_bytes: 10_000, ..base }, "expected 0, because eps sets the size"),
        (SketchOptions { top_k: u32::MAX, ..base }, "expected at most 16777216"),
        (SketchOptions { mode: 1, share: f64::NAN, ..base }, "share = NaN"),
        (SketchOptions { mode: 1, epoch_ns: 0, ..base }, "epoch_ns = 0"),
        (SketchOptions { mode: 2, target_eps: -1.0, ..base }, "expected a number above 0"),
    ];
    for (options, expected) in wrong {
        let mut sketch = null_mut();
        // SAFETY: all pointers are valid.
        let status = unsafe { thalweg_sketch_create(&raw const options, &raw mut sketch) };
        assert_eq!((status, sketch.is_null()), (Status::InvalidArgument, true));
        assert!(last_error().contains(expected), "{}", last_error());
    }
    let sketch = created(&base);
    let (mut bytes, mut length) = (null_mut(), 0);
    // SAFETY: all pointers are valid.
    unsafe {
        let status = thalweg_sketch_save(sketch, null(), null(), 2, 1, &raw mut bytes, &raw mut length);
        assert_eq!(status, Status::InvalidArgument);
        thalweg_sketch_free(sketch);
    }
    assert!(last_error().contains("end_ns = 1: expected at least start_ns"), "{}", last_error());
}

#[test]
fn a_key_that_is_too_long_is_a_packet_without_a_key() {
    let sketch = created(&SketchOptions::default());
    let mut uncounted = SketchEstimate::from(thalweg_sketch::Estimate::exact(0.0));
    // SAFETY: all pointers are valid.
    unsafe {
        assert_eq!(thalweg_sketch_update_with(sketch, 10, Some(too_long), null_mut(), null()), Status::Ok);
        assert_eq!(thalweg_sketch_ask(sketch, 3, &raw mut uncounted), Status::Ok);
        thalweg_sketch_free(sketch);
    }
    assert_eq!((uncounted.value, uncounted.lower, uncounted.upper), (10.0, 10.0, 10.0));
}

/// A program that was built with an earlier header, whose options end after `levels`.
#[test]
fn options_of_an_older_program_have_the_defaults_of_newer_fields() {
    let known = std::mem::offset_of!(SketchOptions, top_k);
    let mut options = SketchOptions { top_k: 77, ..SketchOptions::default() };
    let mut statistics = SketchStatistics {
        total: 0,
        inverse_probability: 0,
        max_inverse_probability: 0,
        saturations: 0,
        memory_bytes: 0,
    };
    // SAFETY: all pointers are valid, and the size is smaller than the structure.
    unsafe {
        assert_eq!(thalweg_sketch_options_init(&raw mut options, known), Status::Ok);
        assert_eq!((options.size, options.top_k), (known, 77));
        options.inverse_probability = 3; // beyond what the program knows
        let sketch = created(&options);
        assert_eq!(thalweg_sketch_statistics(sketch, &raw mut statistics), Status::Ok);
        thalweg_sketch_free(sketch);
        options.size = 3;
        assert_eq!(thalweg_sketch_create(&raw const options, &mut null_mut()), Status::InvalidArgument);
    }
    assert!(last_error().contains("size = 3: expected sizeof(thalweg_sketch_options)"), "{}", last_error());
    assert_eq!(statistics.inverse_probability, 1);
}
