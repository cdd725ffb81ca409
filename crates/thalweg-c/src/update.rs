//! Counting.

use std::ffi::c_void;

use crate::sketch::Sketch;
use crate::status::{CallError, Status, guarded};

/// The length of the longest key, in bytes.
pub const KEY_MAX: usize = 64;

/// Writes the key of packet `packet` of a batch to `key`, which has room for THALWEG_KEY_MAX bytes, and returns its length; 0
/// if the packet has no key, and so does a length above THALWEG_KEY_MAX. It must not throw, jump out, or use the sketch.
pub type KeyFunction =
    Option<unsafe extern "C" fn(context: *mut c_void, packet: usize, key: *mut u8) -> usize>;

/// Returns the caller's array; an empty one may be null.
///
/// # Safety
/// `data` points to `count` values that do not change during `'a`.
pub(crate) unsafe fn array<'a, T>(
    name: &'static str,
    data: *const T,
    count: usize,
) -> Result<&'a [T], CallError> {
    match (data.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(CallError::Null(name)),
        // SAFETY: as this function demands.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(data, count) }),
    }
}

/// Returns the bytes of `count` keys.
///
/// # Safety
/// `keys` points to `count` keys of `key_length` bytes that do not change during `'a`.
pub(crate) unsafe fn key_array<'a>(
    keys: *const u8,
    key_length: usize,
    count: usize,
) -> Result<&'a [u8], CallError> {
    let too_long = CallError::TooLong { count, key_bytes: key_length };
    let bytes = count.checked_mul(key_length).filter(|&bytes| isize::try_from(bytes).is_ok());
    // SAFETY: as this function demands.
    unsafe { array("keys", keys, bytes.ok_or(too_long)?) }
}

/// Returns the weights; null stands for weights of 1.
///
/// # Safety
/// `weights` is null or points to `count` numbers that do not change during `'a`.
unsafe fn optional_weights<'a>(weights: *const i64, count: usize) -> Option<&'a [i64]> {
    // SAFETY: as this function demands.
    if weights.is_null() { None } else { Some(unsafe { std::slice::from_raw_parts(weights, count) }) }
}

/// Counts `count` keys of `key_length` bytes each, which lie one behind another, with their weights, or with weights of 1 if
/// `weights` is null. Keys of different lengths are different. Only sampled keys are read. A burst of packets is the best batch.
///
/// # Safety
/// `sketch` is null or a sketch; `keys` points to `count` times `key_length` bytes; `weights` is null or points to `count`
/// numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_update(
    sketch: *mut Sketch,
    keys: *const u8,
    key_length: usize,
    weights: *const i64,
    count: usize,
) -> Status {
    guarded(|| {
        // SAFETY: as this function demands.
        let sketch = unsafe { sketch.as_mut() }.ok_or(CallError::Null("sketch"))?;
        // SAFETY: as this function demands.
        let (keys, weights) =
            unsafe { (key_array(keys, key_length, count)?, optional_weights(weights, count)) };
        Ok(sketch.any.update(keys, key_length, weights)?)
    })
}

/// Counts `count` packets and calls `key` for the sampled ones only, because parsing a packet costs more than sampling it. The
/// packets for which it returns 0 are counted as such: see THALWEG_QUESTION_UNCOUNTED. Weights must be known for all
/// packets; null stands for weights of 1.
///
/// # Safety
/// `sketch` is null or a sketch; `key` is null or a function as described, which is called with `context`; `weights` is null
/// or points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_update_with(
    sketch: *mut Sketch,
    count: usize,
    key: KeyFunction,
    context: *mut c_void,
    weights: *const i64,
) -> Status {
    guarded(|| {
        // SAFETY: as this function demands.
        let sketch = unsafe { sketch.as_mut() }.ok_or(CallError::Null("sketch"))?;
        let key = key.ok_or(CallError::Null("key"))?;
        // SAFETY: as this function demands.
        let weights = unsafe { optional_weights(weights, count) };
        // SAFETY: the function writes up to THALWEG_KEY_MAX bytes, which the array has.
        let read = |packet, bytes: &mut [u8; KEY_MAX]| unsafe { key(context, packet, bytes.as_mut_ptr()) };
        Ok(sketch.any.update_on_demand(count, weights, read)?)
    })
}

/// Returns how many packets may pass unparsed before the next sampled one: 0 if that is the next packet, as always at p = 1.
/// 0 for null.
///
/// # Safety
/// `sketch` is null or a sketch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_unsampled(sketch: *const Sketch) -> u64 {
    // SAFETY: as this function demands.
    unsafe { sketch.as_ref() }.map_or(0, |sketch| sketch.any.unsampled())
}

/// Counts up to `packets` packets of weight 1 that pass unparsed, and returns how many: at most thalweg_sketch_unsampled(). Then
/// give the next packet to thalweg_sketch_update(). 0 for null.
///
/// # Safety
/// `sketch` is null or a sketch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_skip(sketch: *mut Sketch, packets: u64) -> u64 {
    // SAFETY: as this function demands.
    unsafe { sketch.as_mut() }.map_or(0, |sketch| sketch.any.skip(packets))
}

/// Tells the current time in nanoseconds of any monotonic clock, about once a burst. Only AlwaysLineRate needs it.
///
/// # Safety
/// `sketch` is null or a sketch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_advance(sketch: *mut Sketch, now_ns: u64) {
    // SAFETY: as this function demands.
    if let Some(sketch) = unsafe { sketch.as_mut() } {
        sketch.any.advance(now_ns);
    }
}

/// Empties the sketch at the end of a window. p goes on, but for AlwaysCorrect, which starts at 1.
///
/// # Safety
/// `sketch` is null or a sketch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_clear(sketch: *mut Sketch) -> Status {
    guarded(|| {
        // SAFETY: as this function demands.
        unsafe { sketch.as_mut() }.ok_or(CallError::Null("sketch"))?.any.clear();
        Ok(())
    })
}
