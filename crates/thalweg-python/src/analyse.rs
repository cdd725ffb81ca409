//! `thalweg._native.analyse`.

use std::path::PathBuf;

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use thalweg_records::analyse::{self as records, AnalyseError, Options, Outputs, Rule, Statistics};

use crate::errors::{os_error, read_error};
use crate::progress::with_progress;

/// Reconstruct flows and parallel flowsets from Parquet files of flow records.
#[pyfunction]
#[pyo3(signature = (
    paths, *, flows, flowsets, gap_us, threshold_bytes, window_us, tau_us, rule, elephants_only, memory_bytes,
    threads, progress
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn analyse<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    flows: Option<PathBuf>,
    flowsets: Option<PathBuf>,
    gap_us: i64,
    threshold_bytes: i64,
    window_us: i64,
    tau_us: i64,
    rule: &str,
    elephants_only: bool,
    memory_bytes: u64,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let rule = Rule::named(rule).ok_or_else(|| {
        PyValueError::new_err(format!("rule: expected \"span\" or \"chain\", found {rule:?}"))
    })?;
    let outputs = Outputs { flows, flowsets };
    let options =
        Options { gap_us, threshold_bytes, window_us, tau_us, rule, elephants_only, memory_bytes, threads };

    let done = with_progress(py, progress.as_ref(), |progress| {
        records::analyse(&paths, &outputs, &options, progress).map_err(exception)
    })?;
    dictionary(py, &done)
}

fn dictionary<'py>(py: Python<'py>, statistics: &Statistics) -> PyResult<Bound<'py, PyDict>> {
    let items = PyDict::new(py);
    items.set_item("records", statistics.records)?;
    items.set_item("swapped_times", statistics.swapped_times)?;
    items.set_item("saturated", statistics.saturated)?;
    items.set_item("observation_points", statistics.observation_points)?;
    items.set_item("flows", statistics.flows)?;
    items.set_item("elephants", statistics.elephants)?;
    items.set_item("flowsets", statistics.flowsets)?;
    items.set_item("single_flows", statistics.single_flows)?;
    items.set_item("spilled_bytes", statistics.spilled_bytes)?;
    items.set_item("largest_key", statistics.largest_key)?;
    items.set_item("largest_pair", statistics.largest_pair)?;
    Ok(items)
}

fn exception(error: AnalyseError) -> PyErr {
    match &error {
        AnalyseError::Io { path, source } => os_error(path, source),
        AnalyseError::Read(error) => read_error(error),
        AnalyseError::Memory(_) => PyMemoryError::new_err(error.to_string()),
        AnalyseError::Interrupted => PyRuntimeError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}
