//! `thalweg._native.top`.

use std::path::PathBuf;

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use thalweg_records::top::{
    self as records, Group, Key, KeyColumn, Once, Options, Order, Top, TopError, Value,
};

use crate::errors::read_error;
use crate::progress::with_progress;

/// Return the largest groups of Parquet files of flow records.
#[pyfunction]
#[pyo3(signature = (paths, *, key, order, limit, once_gap_us, per_router, memory_bytes, threads, progress))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn top<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    key: Vec<(String, Option<String>)>,
    order: &str,
    limit: Option<usize>,
    once_gap_us: Option<i64>,
    per_router: bool,
    memory_bytes: u64,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let order = Order::named(order).ok_or_else(|| {
        PyValueError::new_err(format!("order: expected \"bytes\", \"packets\" or \"flows\", found {order:?}"))
    })?;
    let key = key
        .iter()
        .map(|(one, either)| {
            Ok(Key { column: column(one)?, either: either.as_deref().map(column).transpose()? })
        })
        .collect::<PyResult<Vec<_>>>()?;
    let once = once_gap_us.map(|gap_us| Once { gap_us, per_exporter: per_router });
    let options = Options { key, order, limit, once, memory_bytes, threads };
    let found = with_progress(py, progress.as_ref(), |progress| {
        records::top(&paths, &options, progress).map_err(exception)
    })?;
    columns(py, options.key.len(), &found)
}

fn column(name: &str) -> PyResult<KeyColumn> {
    let unknown = || PyValueError::new_err(format!("key: {name:?} is not a column to group by"));
    KeyColumn::named(name).ok_or_else(unknown)
}

/// Converts the groups to columns.
fn columns<'py>(py: Python<'py>, keys: usize, found: &Top) -> PyResult<Bound<'py, PyDict>> {
    let groups = &found.groups;
    let value = |value: &Value| match value {
        Value::Address(address) => Ok(address.to_string().into_pyobject(py)?.into_any()),
        Value::Number(number) => Ok(number.into_pyobject(py)?.into_any()),
        Value::Count(number) => Ok(number.into_pyobject(py)?.into_any()),
        Value::Mac(mac) => Ok(mac.to_string().into_pyobject(py)?.into_any()),
        Value::Name(name) => Ok(name.text().into_pyobject(py)?.into_any()),
        Value::Format(format) => Ok(format.name().into_pyobject(py)?.into_any()),
    };
    let keys = (0..keys).map(|at| groups.iter().map(|group| value(&group.key[at])).collect());
    let keys: Vec<Vec<Bound<'py, PyAny>>> = keys.collect::<PyResult<_>>()?;
    let numbers = |number: fn(&Group) -> i64| groups.iter().map(number).collect::<Vec<_>>();
    let items = PyDict::new(py);
    items.set_item("key", keys)?;
    items.set_item("bytes", numbers(|group| group.bytes))?;
    items.set_item("packets", numbers(|group| group.packets))?;
    items.set_item("flows", numbers(|group| group.flows))?;
    items.set_item("share", groups.iter().map(|group| group.share).collect::<Vec<_>>())?;
    items.set_item("flow_start_us", numbers(|group| group.flow_start_us))?;
    items.set_item("flow_end_us", numbers(|group| group.flow_end_us))?;
    items.set_item("observation_points", found.observation_points)?;
    items.set_item("records_left_out", found.records_left_out)?;
    Ok(items)
}

/// Callers handle `MemoryError` by an engine that uses the disk.
fn exception(error: TopError) -> PyErr {
    match &error {
        TopError::Read(error) => read_error(error),
        TopError::Memory { .. } => PyMemoryError::new_err(error.to_string()),
        TopError::Interrupted => PyRuntimeError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}
