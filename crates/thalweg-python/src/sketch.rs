//! Sketches over keys in numpy arrays.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use thalweg_sketch::any::{AnyError, AnySketch, Settings, Size};
use thalweg_sketch::state::{Kind, Meta};
use thalweg_sketch::{Bound, Estimate, Key as _, Mode, Probability, Target};

/// Value, lower and upper bound and confidence; the last three are NaN without a bound.
type Bounds = (f64, f64, f64, f64);

/// A sketch with Nitro sampling, behind `thalweg.sketches.Sketch`.
#[pyclass(module = "thalweg._native")]
pub(crate) struct NativeSketch {
    any: AnySketch,
}

fn value_error(error: AnyError) -> PyErr {
    match error {
        AnyError::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        error => PyValueError::new_err(error.to_string()),
    }
}

fn bounds(estimate: Estimate) -> Bounds {
    let (lower, upper, confidence) = match estimate.bound {
        Bound::Interval { lower, upper, confidence } => (lower, upper, confidence),
        _ => (f64::NAN, f64::NAN, f64::NAN),
    };
    (estimate.value, lower, upper, confidence)
}

fn kind_of(name: &str) -> PyResult<Kind> {
    let kinds = [Kind::CountMin, Kind::CountSketch, Kind::KAry, Kind::UnivMon];
    let names = ["count-min", "count-sketch", "k-ary", "univmon"];
    let found = names.iter().position(|&known| known == name).map(|position| kinds[position]);
    found.ok_or_else(|| PyValueError::new_err(format!("kind {name:?}: expected {}", names.join(", "))))
}

fn probability(value: f64) -> PyResult<Probability> {
    let found = (0..=Probability::MIN.log2_inverse()).filter_map(Probability::new).find(|p| p.get() == value);
    found.ok_or_else(|| PyValueError::new_err(format!("p = {value}: expected 1, 1/2, 1/4, ... or 1/1024")))
}

/// The values of a contiguous array.
///
/// Another thread that writes to the array meanwhile makes wrong counts, as with numpy's own functions: so the global lock
/// is kept while the values are read.
fn values<'a, T: pyo3::buffer::Element>(_: Python<'a>, buffer: &'a PyBuffer<T>) -> PyResult<&'a [T]> {
    if buffer.item_count() == 0 {
        return Ok(&[]);
    }
    let pointer =
        buffer.as_slice_ptr().ok_or_else(|| PyValueError::new_err("expected a contiguous array"))?;
    #[expect(unsafe_code, reason = "values of a Python buffer as a slice, without a copy")]
    // SAFETY: the buffer holds these values as long as it lives, and no other thread runs Python code before the slice
    // is dropped.
    Ok(unsafe { pointer.as_ref() })
}

#[pymethods]
impl NativeSketch {
    #[new]
    #[pyo3(signature = (kind, *, rows, width, memory_bytes, guarantee, levels, top, counter_bits, seed, sampler_seed, p, correct))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        kind: &str,
        rows: usize,
        width: usize,
        memory_bytes: Option<u64>,
        guarantee: Option<(f64, f64)>,
        levels: usize,
        top: usize,
        counter_bits: u32,
        seed: u64,
        sampler_seed: u64,
        p: f64,
        correct: Option<f64>,
    ) -> PyResult<NativeSketch> {
        let size = match (guarantee, memory_bytes) {
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err("guarantee and memory_bytes: expected one of them"));
            }
            (Some((eps, delta)), None) => Size::Guarantee { eps, delta },
            (None, Some(bytes)) => Size::Memory { bytes, rows },
            (None, None) => Size::Shape { rows, width },
        };
        let mode = match correct {
            Some(_) if p != 1.0 => {
                return Err(PyValueError::new_err(
                    "correct and p: expected one of them, because correct chooses p",
                ));
            }
            Some(eps) => Mode::AlwaysCorrect(Target { eps, min_probability: Probability::PAPER_MIN }),
            None => Mode::Fixed(probability(p)?),
        };
        let settings = Settings {
            kind: kind_of(kind)?,
            size,
            levels,
            top_k: top,
            counter_bits,
            hash_seed: seed,
            sampler_seed,
            mode,
        };
        Ok(NativeSketch { any: AnySketch::new(&settings).map_err(value_error)? })
    }

    /// Counts keys of `key_bytes` bytes, one behind another.
    fn update(
        &mut self,
        py: Python<'_>,
        keys: PyBuffer<u8>,
        key_bytes: usize,
        weights: Option<PyBuffer<i64>>,
    ) -> PyResult<()> {
        let weights = weights.as_ref().map(|weights| values(py, weights)).transpose()?;
        self.any.update(values(py, &keys)?, key_bytes, weights).map_err(value_error)
    }

    /// Returns value, lower, upper and confidence of each key, as numbers in the machine's order.
    fn estimates<'py>(
        &self,
        py: Python<'py>,
        keys: PyBuffer<u8>,
        key_bytes: usize,
    ) -> PyResult<pyo3::Bound<'py, PyBytes>> {
        let mut rows = Vec::new();
        let keys = values(py, &keys)?;
        let put = |_, estimate| {
            let (value, lower, upper, confidence) = bounds(estimate);
            for number in [value, lower, upper, confidence] {
                rows.extend_from_slice(&number.to_ne_bytes());
            }
        };
        self.any.estimates(keys, key_bytes, put).map_err(value_error)?;
        Ok(PyBytes::new(py, &rows))
    }

    /// Returns the keys with the largest estimates, largest first.
    fn largest<'py>(&self, py: Python<'py>) -> Vec<(pyo3::Bound<'py, PyBytes>, Bounds)> {
        let largest = self.any.largest().into_iter();
        largest.map(|(key, estimate)| (PyBytes::new(py, key.as_bytes()), bounds(estimate))).collect()
    }

    fn f2(&self) -> PyResult<Bounds> {
        self.any.f2().map(bounds).map_err(value_error)
    }

    fn distinct(&self) -> PyResult<Bounds> {
        self.any.distinct().map(bounds).map_err(value_error)
    }

    fn entropy(&self) -> PyResult<Bounds> {
        self.any.entropy().map(bounds).map_err(value_error)
    }

    fn merge(&mut self, other: &NativeSketch) -> PyResult<()> {
        self.any.merge(&other.any).map_err(value_error)
    }

    fn subtract(&mut self, other: &NativeSketch) -> PyResult<()> {
        self.any.subtract(&other.any).map_err(value_error)
    }

    fn clear(&mut self) {
        self.any.clear();
    }

    fn copy(&self) -> PyResult<NativeSketch> {
        let (_, any) = AnySketch::decode(&self.any.encode(&Meta::default())).map_err(value_error)?;
        Ok(NativeSketch { any })
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        key_kind: String,
        label: String,
        window_ns: (u64, u64),
    ) -> PyResult<pyo3::Bound<'py, PyBytes>> {
        let (start_ns, end_ns) = window_ns;
        if start_ns > end_ns {
            let message =
                format!("window_ns: expected an end of at least the begin {start_ns}, not {end_ns}");
            return Err(PyValueError::new_err(message));
        }
        Ok(PyBytes::new(py, &self.any.encode(&Meta { key_kind, label, start_ns, end_ns })))
    }

    /// Returns the sketch of a state, with the kind of its keys, its label and its window.
    #[staticmethod]
    fn decode(state: &[u8]) -> PyResult<(NativeSketch, String, String, (u64, u64))> {
        let (meta, any) = AnySketch::decode(state).map_err(value_error)?;
        Ok((NativeSketch { any }, meta.key_kind, meta.label, (meta.start_ns, meta.end_ns)))
    }

    #[getter]
    fn kind(&self) -> String {
        self.any.kind().to_string()
    }

    #[getter]
    fn p(&self) -> f64 {
        self.any.probability().get()
    }

    #[getter]
    fn total(&self) -> i64 {
        self.any.statistics().total()
    }

    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.any.bytes()
    }

    #[getter]
    fn saturations(&self) -> u64 {
        self.any.saturations()
    }
}
