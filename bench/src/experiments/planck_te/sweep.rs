//! Runs trials on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{available_parallelism, scope};

use super::trial::{Results, Trial};

/// Returns the results of trials, in order.
///
/// # Errors
/// The error of the first trial that fails.
pub(super) fn run(name: &str, trials: &[Trial]) -> anyhow::Result<Vec<Results>> {
    map(name, trials, Trial::run)
}

/// Returns the results of `run` for each item, in order.
///
/// # Errors
/// The error of the first item that fails.
pub(super) fn map<T: Sync, R: Send>(
    name: &str,
    all: &[T],
    run: impl Fn(&T) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    eprintln!("{name}: {} runs", all.len());
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(all.len()));
    let work = || {
        while let Some((place, one)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            all.get(place).map(|one| (place, one))
        } {
            let results = run(one);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((place, results));
        }
    };
    scope(|scope| (0..available_parallelism().map_or(1, Into::into)).for_each(|_| drop(scope.spawn(work))));
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, results)| results).collect()
}
