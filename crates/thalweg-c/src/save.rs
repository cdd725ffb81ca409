//! Saved states, and the combination of sketches.

use std::ffi::{CStr, c_char};

use thalweg_sketch::any::AnySketch;
use thalweg_sketch::state::Meta;

use crate::sketch::Sketch;
use crate::status::{CallError, Status, guarded};
use crate::update::array;

/// Encodes the sketch as a state, which other programs of Thalweg read (`thalweg sketch show`). `key_kind` names the keys, for
/// example "5tuple" for keys as `thalweg watch` makes them; sketches of different names cannot be merged by these programs.
/// `label` is any text. Both are UTF-8, and may be null for none. The window is start_ns to end_ns since 1970, both 0 for none.
/// Free `bytes` with thalweg_bytes_free().
///
/// # Safety
/// `sketch` is null or a sketch; the texts are null or end with a zero byte; `bytes` and `length` are null or point to values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_save(
    sketch: *const Sketch,
    key_kind: *const c_char,
    label: *const c_char,
    start_ns: u64,
    end_ns: u64,
    bytes: *mut *mut u8,
    length: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: as this function demands.
        let sketch = unsafe { sketch.as_ref() }.ok_or(CallError::Null("sketch"))?;
        // SAFETY: as this function demands.
        let (key_kind, label) = unsafe { (text("key_kind", key_kind)?, text("label", label)?) };
        if start_ns > end_ns {
            let expected = "at least start_ns";
            return Err(CallError::Option { name: "end_ns", value: end_ns, expected });
        }
        // SAFETY: as this function demands.
        let (bytes, length) = unsafe { (bytes.as_mut(), length.as_mut()) };
        let (bytes, length) = bytes.zip(length).ok_or(CallError::Null("bytes or length"))?;
        let encoded = sketch.any.encode(&Meta { key_kind, label, start_ns, end_ns }).into_boxed_slice();
        *length = encoded.len();
        *bytes = Box::into_raw(encoded).cast::<u8>();
        Ok(())
    })
}

/// Returns the text; none for null.
///
/// # Safety
/// `text` is null or ends with a zero byte.
unsafe fn text(name: &'static str, text: *const c_char) -> Result<String, CallError> {
    if text.is_null() {
        return Ok(String::new());
    }
    // SAFETY: as this function demands.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(str::to_owned).map_err(|_| CallError::NotText(name))
}

/// Frees the bytes of thalweg_sketch_save(); null is allowed.
///
/// # Safety
/// `bytes` is null or comes from thalweg_sketch_save(), with its length, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_bytes_free(bytes: *mut u8, length: usize) {
    if !bytes.is_null() {
        // SAFETY: it was a boxed slice of this length, and the caller does not use it again.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(bytes, length)) });
    }
}

/// Creates a sketch from a state, of this library or of another program of Thalweg. It goes on with p = 1 until
/// thalweg_sketch_set_mode(). Bytes may be damaged or hostile: they are checked. Free it with thalweg_sketch_free().
///
/// # Safety
/// `bytes` points to `length` bytes; `sketch` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_load(
    bytes: *const u8,
    length: usize,
    sketch: *mut *mut Sketch,
) -> Status {
    guarded(|| {
        // SAFETY: as this function demands.
        let (_, any) = AnySketch::decode(unsafe { array("bytes", bytes, length) }?)?;
        // SAFETY: as this function demands.
        *unsafe { sketch.as_mut() }.ok_or(CallError::Null("sketch"))? =
            Box::into_raw(Box::new(Sketch { any }));
        Ok(())
    })
}

/// Adds `other` to `sketch`: then it is that of both streams. Kind, shape, counters and hash seed must be equal, not the modes.
///
/// # Safety
/// Both are null or sketches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_merge(sketch: *mut Sketch, other: *const Sketch) -> Status {
    // SAFETY: as this function demands.
    guarded(|| unsafe { combine(sketch, other, AnySketch::merge, "merged with") })
}

/// Subtracts `other` from `sketch`: then it is that of the change since the earlier window `other`.
///
/// # Safety
/// Both are null or sketches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_subtract(sketch: *mut Sketch, other: *const Sketch) -> Status {
    // SAFETY: as this function demands.
    guarded(|| unsafe { combine(sketch, other, AnySketch::subtract, "subtracted from") })
}

/// # Safety
/// Both are null or sketches.
unsafe fn combine(
    sketch: *mut Sketch,
    other: *const Sketch,
    combine: fn(&mut AnySketch, &AnySketch) -> Result<(), thalweg_sketch::any::AnyError>,
    action: &'static str,
) -> Result<(), CallError> {
    if std::ptr::eq(sketch, other) && !sketch.is_null() {
        return Err(CallError::Same { action });
    }
    // SAFETY: as this function demands; they are not the same.
    let sketch = unsafe { sketch.as_mut() }.ok_or(CallError::Null("sketch"))?;
    // SAFETY: as this function demands.
    let other = unsafe { other.as_ref() }.ok_or(CallError::Null("other"))?;
    Ok(combine(&mut sketch.any, &other.any)?)
}
