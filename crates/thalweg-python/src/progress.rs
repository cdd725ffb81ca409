//! Python is told how far the work is, and may end it.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// How often Python is asked whether to go on: often enough for a person, seldom enough to cost nothing.
const PROGRESS: Duration = Duration::from_millis(50);

/// Told how much is done, and of how much; says whether to go on.
type Tick<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// Does `work` while other threads may have the interpreter. What `progress` raises, or a signal's handler (Ctrl-C), ends
/// it and is raised here.
pub(crate) fn while_asking<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut Tick<'_>) -> PyResult<T> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let done = py.detach(|| {
        let mut asked = Instant::now();
        work(&mut |done, of| {
            if asked.elapsed() < PROGRESS && done < of {
                return ControlFlow::Continue(());
            }
            asked = Instant::now();
            match Python::attach(|py| ask(py, progress, done, of)) {
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

/// Lets signal handlers run (Ctrl-C raises here), then the caller's function.
fn ask(py: Python<'_>, progress: Option<&Py<PyAny>>, done: u64, of: u64) -> PyResult<()> {
    py.check_signals()?;
    match progress {
        Some(progress) => progress.call1(py, (done, of)).map(drop),
        None => Ok(()),
    }
}
