//! All row groups of some files, each taken by the thread that is free.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam_channel::bounded;

use super::Source;

/// Tells how many rows are done; whether to go on.
pub(crate) type Tick<'a, E> = dyn FnMut(u64) -> Result<(), E> + 'a;

/// The row groups that a worker gets, one after another.
pub(crate) type RowGroups<'a> = dyn Iterator<Item = (&'a Source, usize)> + 'a;

/// Gives row groups to workers, one a thread, and tells `advance` on this thread what they have done; it may stop all of
/// them. With one thread the worker is called on this one.
///
/// # Errors
/// That of the worker that failed, or of `advance`; `interrupted` is what workers are told to stop with.
pub(crate) fn sweep<W: Send, E: Send>(
    sources: &[Source],
    threads: usize,
    worker: impl Fn(&mut RowGroups<'_>, &mut Tick<'_, E>) -> Result<W, E> + Sync,
    advance: &mut Tick<'_, E>,
    interrupted: impl Fn() -> E + Sync,
) -> Result<Vec<W>, E> {
    let groups = |source: &Source| source.row_groups.len();
    let units: Vec<_> =
        sources.iter().flat_map(|source| (0..groups(source)).map(move |group| (source, group))).collect();
    let next = AtomicUsize::new(0);
    let take = || units.get(next.fetch_add(1, Ordering::Relaxed)).copied();
    if threads == 1 {
        return Ok(vec![worker(&mut std::iter::from_fn(take), advance)?]);
    }

    let stop = AtomicBool::new(false);
    let (sender, ticks) = bounded(4 * threads);
    let work = |sender: crossbeam_channel::Sender<u64>| {
        let (mut told_to_stop, mut groups) = (false, std::iter::from_fn(take));
        let result = worker(&mut groups, &mut |rows| match stop.load(Ordering::Relaxed)
            || sender.send(rows).is_err()
        {
            true => {
                told_to_stop = true;
                Err(interrupted())
            }
            false => Ok(()),
        });
        if result.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        (result, told_to_stop)
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
        let told = ticks.iter().try_for_each(&mut *advance);
        // Who still works finds nobody to tell, and stops.
        drop(ticks);
        let mut results: Vec<_> =
            workers.into_iter().map(|worker| worker.join().expect("workers do not panic")).collect();
        // First the one that made the others stop.
        results.sort_by_key(|(_, told_to_stop)| *told_to_stop);
        let results = results.into_iter().map(|(result, _)| result).collect();
        told.and(results)
    })
}
