//! Answers, with their bounds.

use thalweg_sketch::{Bound, Estimate, Key as _};

use crate::sketch::Sketch;
use crate::status::{CallError, Status, guarded};
use crate::update::{KEY_MAX, key_array};

/// What is known of the error of an estimate.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindOfBound {
    /// The truth is in lower..upper with the confidence.
    Interval = 0,
    /// Too few updates were sampled for a bound.
    NotConverged = 1,
    /// No bound is known for this kind of estimate.
    Unknown = 2,
}

/// A value with its error bounds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SketchEstimate {
    /// The value.
    pub value: f64,
    /// The lower bound; minus infinity without a bound.
    pub lower: f64,
    /// The upper bound; infinity without a bound.
    pub upper: f64,
    /// The probability that both bounds hold, 0 without a bound.
    pub confidence: f64,
    /// What is known of the error.
    pub bound: KindOfBound,
}

impl From<Estimate> for SketchEstimate {
    fn from(estimate: Estimate) -> SketchEstimate {
        let none = (f64::NEG_INFINITY, f64::INFINITY, 0.0);
        let (bound, (lower, upper, confidence)) = match estimate.bound {
            Bound::Interval { lower, upper, confidence } => {
                (KindOfBound::Interval, (lower, upper, confidence))
            }
            Bound::NotConverged => (KindOfBound::NotConverged, none),
            _ => (KindOfBound::Unknown, none),
        };
        SketchEstimate { value: estimate.value, lower, upper, confidence, bound }
    }
}

/// A question about the whole stream.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// F2, the sum of the squares of all keys' weights; not of a Count-Min.
    F2 = 0,
    /// The number of distinct keys; of a UnivMon.
    Distinct = 1,
    /// The entropy of the weights over the keys, in bits; of a UnivMon.
    Entropy = 2,
    /// The number of packets without a key, among those given to thalweg_sketch_update_with().
    Uncounted = 3,
}

/// Totals of the stream.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SketchStatistics {
    /// The sum of all weights, without the estimated weight of packets that had no key.
    pub total: i64,
    /// 1/p, now.
    pub inverse_probability: u32,
    /// The largest 1/p so far.
    pub max_inverse_probability: u32,
    /// Additions that exceeded a counter's range. Bounds hold while it is 0.
    pub saturations: u64,
    /// The memory of counters and candidates, in bytes.
    pub memory_bytes: u64,
}

/// Estimates the weights of `count` keys of `key_length` bytes each. Many keys at once are faster than one by one, because the
/// noise of the sketch is measured once.
///
/// # Safety
/// `sketch` is null or a sketch; `keys` points to `count` times `key_length` bytes, `estimates` to `count` estimates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_estimate(
    sketch: *const Sketch,
    keys: *const u8,
    key_length: usize,
    count: usize,
    estimates: *mut SketchEstimate,
) -> Status {
    guarded(|| {
        // SAFETY: as this function demands.
        let sketch = unsafe { sketch.as_ref() }.ok_or(CallError::Null("sketch"))?;
        // SAFETY: as this function demands.
        let keys = unsafe { key_array(keys, key_length, count) }?;
        if estimates.is_null() && count > 0 {
            return Err(CallError::Null("estimates"));
        }
        // SAFETY: the caller has room for `count` estimates, and each number is below that.
        let put = |number, estimate: Estimate| unsafe { estimates.add(number).write(estimate.into()) };
        Ok(sketch.any.estimates(keys, key_length, put)?)
    })
}

/// Writes up to `capacity` keys with the largest estimates, largest first: key i to `keys + i * THALWEG_KEY_MAX`, its length to
/// `key_lengths[i]`, its estimate to `estimates[i]`. `count` receives their number. A sketch that tracks no keys has none.
///
/// # Safety
/// `sketch` is null or a sketch; `keys` points to `capacity` times THALWEG_KEY_MAX bytes, `key_lengths` and `estimates` to
/// `capacity` values, `count` to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_largest(
    sketch: *const Sketch,
    capacity: usize,
    keys: *mut u8,
    key_lengths: *mut usize,
    estimates: *mut SketchEstimate,
    count: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: as this function demands.
        let sketch = unsafe { sketch.as_ref() }.ok_or(CallError::Null("sketch"))?;
        // SAFETY: as this function demands.
        let count = unsafe { count.as_mut() }.ok_or(CallError::Null("count"))?;
        if capacity > 0 && (keys.is_null() || key_lengths.is_null() || estimates.is_null()) {
            return Err(CallError::Null("keys, key_lengths or estimates"));
        }
        *count = 0;
        for (number, (key, estimate)) in sketch.any.largest().into_iter().take(capacity).enumerate() {
            let bytes = key.as_bytes();
            // SAFETY: `number` is below the capacity of all three, and a key has at most THALWEG_KEY_MAX bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), keys.add(number * KEY_MAX), bytes.len());
                key_lengths.add(number).write(bytes.len());
                estimates.add(number).write(estimate.into());
            }
            *count = number + 1;
        }
        Ok(())
    })
}

/// Answers a question, a thalweg_question, about the whole stream.
///
/// # Safety
/// `sketch` is null or a sketch; `answer` is null or points to an estimate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_ask(
    sketch: *const Sketch,
    question: u32,
    answer: *mut SketchEstimate,
) -> Status {
    guarded(|| {
        // SAFETY: as this function demands.
        let any = &unsafe { sketch.as_ref() }.ok_or(CallError::Null("sketch"))?.any;
        let estimate = match question {
            0 => any.f2()?,
            1 => any.distinct()?,
            2 => any.entropy()?,
            3 => any.uncounted(),
            value => {
                let expected = "0 to 3, a thalweg_question";
                return Err(CallError::Option { name: "question", value: value.into(), expected });
            }
        };
        // SAFETY: as this function demands.
        *unsafe { answer.as_mut() }.ok_or(CallError::Null("answer"))? = estimate.into();
        Ok(())
    })
}

/// Returns totals of the stream.
///
/// # Safety
/// `sketch` is null or a sketch; `statistics` is null or points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_statistics(
    sketch: *const Sketch,
    statistics: *mut SketchStatistics,
) -> Status {
    guarded(|| {
        // SAFETY: as this function demands.
        let any = &unsafe { sketch.as_ref() }.ok_or(CallError::Null("sketch"))?.any;
        let found = SketchStatistics {
            total: any.statistics().total(),
            inverse_probability: any.probability().inverse() as u32,
            max_inverse_probability: any.statistics().min_probability().inverse() as u32,
            saturations: any.saturations(),
            memory_bytes: any.bytes(),
        };
        // SAFETY: as this function demands.
        *unsafe { statistics.as_mut() }.ok_or(CallError::Null("statistics"))? = found;
        Ok(())
    })
}
