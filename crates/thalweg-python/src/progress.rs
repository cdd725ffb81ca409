//! Reports progress to Python, which may stop the work.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Interval of reports to Python: short for a person, long enough to cost nothing.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// Called with the steps done and the total; returns whether to continue.
type Tick<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// Runs `work` without holding the GIL. Exceptions of `progress` or of a signal handler (Ctrl-C) stop the work and are
/// raised here.
pub(crate) fn with_progress<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut Tick<'_>) -> PyResult<T> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let done = py.detach(|| {
        let mut last_report = Instant::now();
        work(&mut |done, of| {
            if last_report.elapsed() < REPORT_INTERVAL && done < of {
                return ControlFlow::Continue(());
            }
            last_report = Instant::now();
            match Python::attach(|py| report(py, progress, done, of)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
    });
    raised.map_or(done, Err)
}

/// Runs signal handlers (Ctrl-C raises here), then the caller's function.
fn report(py: Python<'_>, progress: Option<&Py<PyAny>>, done: u64, of: u64) -> PyResult<()> {
    py.check_signals()?;
    match progress {
        Some(progress) => progress.call1(py, (done, of)).map(drop),
        None => Ok(()),
    }
}
