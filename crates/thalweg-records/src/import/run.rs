//! Several files, on several threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crossbeam_channel::bounded;

use super::ImportError;
use super::file::{Imported, STORE, import_file};
use super::ledger::{Identity, Ledger};
use crate::geo::GeoDatabases;
use crate::store::StoreOptions;

/// Options of an import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The directory of the store.
    pub directory: PathBuf,
    /// The number of files that are read at a time.
    pub threads: usize,
    /// Whether files that were imported before are imported again. They replace what they became then.
    pub again: bool,
    /// Databases that fill countries, and AS numbers that are missing.
    pub geo: Option<Arc<GeoDatabases>>,
}

impl ImportOptions {
    pub(super) fn store(&self) -> StoreOptions {
        StoreOptions { name: STORE.to_owned(), ..StoreOptions::new(&self.directory) }
    }
}

/// What happened to a file.
#[derive(Debug)]
pub enum Progress {
    /// It was imported.
    Imported {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// What it had.
        imported: Imported,
    },
    /// It was imported before.
    Known(PathBuf),
    /// It was not imported.
    Failed(ImportError),
}

/// Imports files until all are done or `stop` is set, and calls `report` for each. Files that fail do not stop the others.
///
/// # Errors
/// If the ledger cannot be read or written. What was imported stays.
pub fn import(
    files: &[PathBuf],
    options: &ImportOptions,
    stop: &AtomicBool,
    mut report: impl FnMut(Progress),
) -> Result<(), ImportError> {
    let mut ledger = Ledger::open(&options.directory)?;
    let mut todo = Vec::new();
    for path in files {
        match Identity::of(path) {
            Ok(identity) if !options.again && ledger.has(&identity) => report(Progress::Known(path.clone())),
            Ok(identity) => todo.push((path, identity)),
            Err(error) => report(Progress::Failed(error)),
        }
    }
    let (next, (sender, receiver)) = (AtomicUsize::new(0), bounded(options.threads.max(1)));
    thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, todo.len().max(1)) {
            let (todo, next, sender) = (&todo, &next, sender.clone());
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((path, _)) = todo.get(number) else { return };
                    if sender.send((number, import_file(path, options))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (number, result) in receiver {
            let (path, identity): &(&PathBuf, Identity) = &todo[number];
            let progress = match result {
                Ok(imported) => {
                    ledger.add(identity.clone(), &imported)?;
                    Progress::Imported { path: Path::to_owned(path), bytes: identity.bytes(), imported }
                }
                Err(error) => Progress::Failed(error),
            };
            report(progress);
        }
        Ok(())
    })
}
