//! `thalweg._native`: the analysis of flow records in `thalweg_records::analyse` for Python. Conversions only.
//!
//! The types that Python sees are in `python/thalweg/_native.pyi`.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use thalweg_records::analyse::{self as records, AnalyseError, Options, Outputs, Rule, Statistics};

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::analyse;
}

/// How often Python is asked whether to go on: often enough for a person, seldom enough to cost nothing.
const PROGRESS: Duration = Duration::from_millis(50);

/// Reconstruct flows and parallel flowsets from Parquet files of flow records.
#[pyfunction]
#[pyo3(signature = (
    paths, *, flows, flowsets, gap_us, threshold_octets, window_us, tau_us, rule, cheetahs_only, memory_bytes,
    threads, progress
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
fn analyse<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    flows: Option<PathBuf>,
    flowsets: Option<PathBuf>,
    gap_us: i64,
    threshold_octets: i64,
    window_us: i64,
    tau_us: i64,
    rule: &str,
    cheetahs_only: bool,
    memory_bytes: u64,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let rule = Rule::named(rule).ok_or_else(|| {
        PyValueError::new_err(format!("rule: expected \"span\" or \"chain\", found {rule:?}"))
    })?;
    let outputs = Outputs { flows, flowsets };
    let options =
        Options { gap_us, threshold_octets, window_us, tau_us, rule, cheetahs_only, memory_bytes, threads };

    let mut raised = None;
    let done = py.detach(|| {
        let mut asked = Instant::now();
        records::analyse(&paths, &outputs, &options, &mut |done, of| {
            if asked.elapsed() < PROGRESS && done < of {
                return ControlFlow::Continue(());
            }
            asked = Instant::now();
            match Python::attach(|py| ask(py, progress.as_ref(), done, of)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
    });
    match (done, raised) {
        (_, Some(error)) => Err(error),
        (Ok(statistics), None) => dictionary(py, &statistics),
        (Err(error), None) => Err(exception(error)),
    }
}

/// Lets signal handlers run (Ctrl-C raises here), then the caller's function.
fn ask(py: Python<'_>, progress: Option<&Py<PyAny>>, done: u64, of: u64) -> PyResult<()> {
    py.check_signals()?;
    match progress {
        Some(progress) => progress.call1(py, (done, of)).map(drop),
        None => Ok(()),
    }
}

fn dictionary<'py>(py: Python<'py>, statistics: &Statistics) -> PyResult<Bound<'py, PyDict>> {
    let items = PyDict::new(py);
    items.set_item("records", statistics.records)?;
    items.set_item("swapped_times", statistics.swapped_times)?;
    items.set_item("saturated", statistics.saturated)?;
    items.set_item("observation_points", statistics.observation_points)?;
    items.set_item("flows", statistics.flows)?;
    items.set_item("cheetahs", statistics.cheetahs)?;
    items.set_item("flowsets", statistics.flowsets)?;
    items.set_item("single_flows", statistics.single_flows)?;
    items.set_item("spilled_bytes", statistics.spilled_bytes)?;
    items.set_item("largest_key", statistics.largest_key)?;
    Ok(items)
}

/// `OSError` (or the kind of it that the number says) for what the system refused, else `ValueError`.
fn exception(error: AnalyseError) -> PyErr {
    match &error {
        AnalyseError::Io { path, source } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, source.to_string(), path.clone())),
            None => PyOSError::new_err(error.to_string()),
        },
        AnalyseError::Interrupted => PyRuntimeError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}
