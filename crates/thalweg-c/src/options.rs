//! What a new sketch is.

use thalweg_sketch::any::{AnySketch, Settings, Size};
use thalweg_sketch::state::Kind;
use thalweg_sketch::{LineRate, Mode, Probability, Shape, Target};

use crate::sketch::Sketch;
use crate::status::{CallError, Status, guarded};

/// The kind of a sketch.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindOfSketch {
    /// Weights that are never too low; error at most eps L1.
    CountMin = 1,
    /// Unbiased weights; error at most eps L2.
    CountSketch = 2,
    /// Changes between windows.
    KAry = 3,
    /// Heavy keys, distinct keys, entropy and moments from one state.
    UnivMon = 4,
}

/// How the probability p of a row update is chosen.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeOfSampling {
    /// A constant p.
    Fixed = 0,
    /// p follows the arrival rate, so that updates fit into a share of the processor's time. Needs thalweg_sketch_advance().
    AlwaysLineRate = 1,
    /// p = 1 until sampling keeps the error below target_eps L2.
    AlwaysCorrect = 2,
}

/// What a new sketch is. Set all fields with thalweg_sketch_options_init(), then change some.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SketchOptions {
    /// The size of this structure, which tells the library which fields the program knows.
    pub size: usize,
    /// The kind, a thalweg_kind (THALWEG_KIND_COUNT_SKETCH).
    pub kind: u32,
    /// Bits of a counter, 32 or 64 (32). Counters saturate; they never wrap.
    pub counter_bits: u32,
    /// Rows, 1 to 8 (5).
    pub rows: u32,
    /// Counters in a row, a power of two from 4 to 8388608 (1024).
    pub width: u32,
    /// Levels of a UnivMon, 1 to 17 (16).
    pub levels: u32,
    /// The largest keys to track, at most 16777216, 0 for none (100); of a UnivMon for each level, at least 1.
    pub top_k: u32,
    /// If not 0: the widest shape for these bytes of memory, instead of width (0).
    pub memory_bytes: u64,
    /// If not 0: the smallest shape whose error is at most eps L1 (Count-Min) or eps L2 with probability 1 - delta, instead of
    /// rows and width (0).
    pub eps: f64,
    /// The probability of a larger error than eps (0.01).
    pub delta: f64,
    /// The seed of the hash: equal in sketches that are to be merged, secret and random where traffic may be hostile (0).
    pub hash_seed: u64,
    /// The seed of the draws (1).
    pub sampler_seed: u64,
    /// The mode, a thalweg_mode (THALWEG_MODE_FIXED).
    pub mode: u32,
    /// 1/p, a power of two from 1 to 1024 (1). In the other modes the largest that may be used; 1 there means 128.
    pub inverse_probability: u32,
    /// AlwaysLineRate: the time between choices of p, in nanoseconds (100000000).
    pub epoch_ns: u64,
    /// AlwaysLineRate: the share of a processor's time for updates, more than 0, at most 1 (0.1).
    pub share: f64,
    /// AlwaysLineRate: the cost of a row at p = 1, in nanoseconds (1.5).
    pub row_ns: f64,
    /// AlwaysLineRate: the cost of a sampled row, in nanoseconds (12).
    pub sampled_row_ns: f64,
    /// AlwaysCorrect: the error as a share of L2; 0 for 1.5 times that of the shape at p = 1 (0).
    pub target_eps: f64,
}

impl Default for SketchOptions {
    fn default() -> SketchOptions {
        let LineRate { epoch_ns, share, row_ns, sampled_row_ns, .. } = LineRate::default();
        SketchOptions {
            size: size_of::<SketchOptions>(),
            kind: KindOfSketch::CountSketch as u32,
            counter_bits: 32,
            rows: 5,
            width: 1024,
            levels: 16,
            top_k: 100,
            memory_bytes: 0,
            eps: 0.0,
            delta: 0.01,
            hash_seed: 0,
            sampler_seed: 1,
            mode: ModeOfSampling::Fixed as u32,
            inverse_probability: 1,
            epoch_ns,
            share,
            row_ns,
            sampled_row_ns,
            target_eps: 0.0,
        }
    }
}

impl SketchOptions {
    fn settings(&self) -> Result<Settings, CallError> {
        let kind = match self.kind {
            1 => Kind::CountMin,
            2 => Kind::CountSketch,
            3 => Kind::KAry,
            4 => Kind::UnivMon,
            value => return Err(out_of_range("kind", value.into(), "1 to 4, a thalweg_kind")),
        };
        if self.eps != 0.0 && self.memory_bytes != 0 {
            return Err(out_of_range("memory_bytes", self.memory_bytes, "0, because eps sets the size"));
        }
        let rows = self.rows as usize;
        let size = if self.eps != 0.0 {
            Size::Guarantee { eps: self.eps, delta: self.delta }
        } else if self.memory_bytes != 0 {
            Size::Memory { bytes: self.memory_bytes, rows }
        } else {
            Size::Shape { rows, width: self.width as usize }
        };
        Ok(Settings {
            kind,
            size,
            levels: self.levels as usize,
            top_k: self.top_k as usize,
            counter_bits: self.counter_bits,
            hash_seed: self.hash_seed,
            sampler_seed: self.sampler_seed,
            mode: self.mode()?,
        })
    }

    pub(crate) fn mode(&self) -> Result<Mode, CallError> {
        let power = (self.inverse_probability.is_power_of_two())
            .then(|| Probability::new(self.inverse_probability.trailing_zeros() as u8))
            .flatten();
        let expected = "a power of two from 1 to 1024";
        let probability =
            power.ok_or(out_of_range("inverse_probability", self.inverse_probability.into(), expected))?;
        let min_probability =
            if probability == Probability::ONE { Probability::PAPER_MIN } else { probability };
        Ok(match self.mode {
            0 => Mode::Fixed(probability),
            1 => Mode::AlwaysLineRate(LineRate {
                epoch_ns: self.epoch_ns,
                share: self.share,
                row_ns: self.row_ns,
                sampled_row_ns: self.sampled_row_ns,
                min_probability,
            }),
            2 => Mode::AlwaysCorrect(Target { eps: self.target(), min_probability }),
            value => return Err(out_of_range("mode", value.into(), "0 to 2, a thalweg_mode")),
        })
    }

    /// The error that AlwaysCorrect keeps. A shape that is not known yet has the guarantee that was asked for.
    fn target(&self) -> f64 {
        if self.target_eps != 0.0 {
            return self.target_eps;
        }
        if self.eps > 0.0 {
            return 1.5 * self.eps;
        }
        let of_memory = || {
            let counters = match self.kind {
                4 => self.memory_bytes * 3 / 4 / u64::from(self.levels.max(1)),
                _ => self.memory_bytes,
            };
            Shape::for_memory(counters, self.rows as usize, self.counter_bits as usize / 8).ok()
        };
        let width = if self.memory_bytes == 0 { None } else { of_memory().map(Shape::width) };
        Target::for_width(width.unwrap_or(self.width as usize)).eps
    }
}

fn out_of_range(name: &'static str, value: u64, expected: &'static str) -> CallError {
    CallError::Option { name, value, expected }
}

/// Sets all fields to their defaults, which stand in parentheses. `size` is sizeof(thalweg_sketch_options).
///
/// # Safety
/// `options` is null or points to `size` bytes that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_options_init(options: *mut SketchOptions, size: usize) -> Status {
    guarded(|| {
        if options.is_null() {
            return Err(CallError::Null("options"));
        }
        let expected = "sizeof(thalweg_sketch_options)";
        if size < size_of::<usize>() {
            return Err(out_of_range("size", size as u64, expected));
        }
        let defaults = SketchOptions { size, ..SketchOptions::default() };
        let known = size.min(size_of::<SketchOptions>());
        // SAFETY: the caller has `size` bytes there, of which at most the size of the structure are written.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const defaults).cast::<u8>(), options.cast::<u8>(), known)
        };
        Ok(())
    })
}

/// Reads the fields that the program knows; the others have their defaults.
///
/// # Safety
/// `options` points to a structure of the size in its first field.
pub(crate) unsafe fn read_options(options: *const SketchOptions) -> Result<SketchOptions, CallError> {
    if options.is_null() {
        return Err(CallError::Null("options"));
    }
    // SAFETY: every version of the structure begins with its size.
    let size = unsafe { options.cast::<usize>().read_unaligned() };
    if size < size_of::<usize>() {
        let expected = "sizeof(thalweg_sketch_options), as thalweg_sketch_options_init() sets it";
        return Err(out_of_range("size", size as u64, expected));
    }
    let mut read = SketchOptions::default();
    let known = size.min(size_of::<SketchOptions>());
    // SAFETY: the structure has `size` bytes, and all bytes are valid values of its fields.
    unsafe { std::ptr::copy_nonoverlapping(options.cast::<u8>(), (&raw mut read).cast::<u8>(), known) };
    Ok(read)
}

/// Creates an empty sketch, or returns THALWEG_STATUS_OUT_OF_MEMORY. Free it with thalweg_sketch_free().
///
/// # Safety
/// `options` is null or as thalweg_sketch_options_init() sets it; `sketch` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_create(
    options: *const SketchOptions,
    sketch: *mut *mut Sketch,
) -> Status {
    guarded(|| {
        // SAFETY: as this function demands.
        let settings = unsafe { read_options(options) }?.settings()?;
        let created = Box::new(Sketch { any: AnySketch::new(&settings)? });
        // SAFETY: as this function demands.
        *unsafe { sketch.as_mut() }.ok_or(CallError::Null("sketch"))? = Box::into_raw(created);
        Ok(())
    })
}

/// Samples further updates in the mode of `options`, of which only the fields of the mode are read. A loaded sketch has p = 1
/// before.
///
/// # Safety
/// `sketch` is null or a sketch; `options` is null or as thalweg_sketch_options_init() sets it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_set_mode(
    sketch: *mut Sketch,
    options: *const SketchOptions,
) -> Status {
    guarded(|| {
        // SAFETY: as this function demands.
        let options = unsafe { read_options(options) }?;
        // SAFETY: as this function demands.
        let sketch = unsafe { sketch.as_mut() }.ok_or(CallError::Null("sketch"))?;
        Ok(sketch.any.set_mode(options.mode()?, options.sampler_seed)?)
    })
}

/// Frees a sketch; null is allowed.
///
/// # Safety
/// `sketch` is null or a sketch that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_sketch_free(sketch: *mut Sketch) {
    if !sketch.is_null() {
        // SAFETY: it comes from `Box::into_raw`, and the caller does not use it again.
        drop(unsafe { Box::from_raw(sketch) });
    }
}
