//! Distributes the row groups of files over threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam_channel::bounded;

use super::Source;

/// Called with the number of rows done; an error stops the scan.
pub(crate) type Tick<'a, E> = dyn FnMut(u64) -> Result<(), E> + 'a;

/// The row groups that a worker processes.
pub(crate) type RowGroups<'a> = dyn Iterator<Item = (&'a Source, usize)> + 'a;

/// Runs a worker on each thread, and distributes the row groups among them. Calls `advance` on this thread with the rows
/// done; it can stop all workers. With one thread, the worker runs on this thread.
///
/// # Errors
/// The error of the worker that failed, or of `advance`. Other workers are stopped with the error of `interrupted`.
pub(crate) fn scan<W: Send, E: Send>(
    sources: &[Source],
    threads: usize,
    worker: impl Fn(&mut RowGroups<'_>, &mut Tick<'_, E>) -> Result<W, E> + Sync,
    advance: &mut Tick<'_, E>,
    interrupted: impl Fn() -> E + Sync,
) -> Result<Vec<W>, E> {
    let units: Vec<_> =
        sources.iter().flat_map(|source| source.groups().map(move |group| (source, group))).collect();
    let next = AtomicUsize::new(0);
    let take = || units.get(next.fetch_add(1, Ordering::Relaxed)).copied();
    if threads == 1 {
        return Ok(vec![worker(&mut std::iter::from_fn(take), advance)?]);
    }

    let stop = AtomicBool::new(false);
    let (sender, ticks) = bounded(4 * threads);
    let work = |sender: crossbeam_channel::Sender<u64>| {
        let (mut was_stopped, mut groups) = (false, std::iter::from_fn(take));
        let result = worker(&mut groups, &mut |rows| match stop.load(Ordering::Relaxed)
            || sender.send(rows).is_err()
        {
            true => {
                was_stopped = true;
                Err(interrupted())
            }
            false => Ok(()),
        });
        if result.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        (result, was_stopped)
    };
    std::thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let sender = sender.clone();
                scope.spawn(move || work(sender))
            })
            .collect();
        drop(sender);
        let advanced = ticks.iter().try_for_each(&mut *advance);
        // Remaining workers fail to send, and stop.
        drop(ticks);
        let mut results: Vec<_> =
            workers.into_iter().map(|worker| worker.join().expect("workers do not panic")).collect();
        // The worker that caused the stop comes first.
        results.sort_by_key(|(_, was_stopped)| *was_stopped);
        let results = results.into_iter().map(|(result, _)| result).collect();
        advanced.and(results)
    })
}
