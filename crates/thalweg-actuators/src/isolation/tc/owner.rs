//! The ownership of an interface: one living daemon isolates flows there.
//!
//! A second one would take over the queues, the program and the redirections of the first, as if that had been killed. So each
//! holds two locks in the network namespace of the interface: of its name, since it may be created later, and of its index,
//! since it may be renamed. The kernel frees them when the process ends.

use std::time::Duration;

use thalweg_linux::Namespace;
use thalweg_linux::name_lock::{LockError, NameLock};

/// Number and length of the waits for a process that is ending: half a second in total.
const WAITS: (u32, Duration) = (25, Duration::from_millis(20));

/// Held while the interface is owned.
#[derive(Debug)]
pub(super) struct Owner {
    _locks: Vec<NameLock>,
}

impl Owner {
    /// Becomes the owner of an interface, whose index is `None` if it does not exist yet.
    ///
    /// # Errors
    /// A message, if another daemon owns it.
    pub(super) fn claim(
        interface: &str,
        index: Option<u32>,
        namespace: Option<&Namespace>,
    ) -> Result<Owner, String> {
        let mut names = vec![format!("thalweg-isolation/name/{interface}")];
        names.extend(index.map(|index| format!("thalweg-isolation/index/{index}")));
        let acquire = || names.iter().map(|name| acquire(name)).collect::<Result<Vec<_>, _>>();
        let locks = match namespace {
            Some(namespace) => namespace.within(acquire).map_err(|error| error.to_string())?,
            None => acquire(),
        };
        match locks {
            Ok(locks) => Ok(Owner { _locks: locks }),
            Err(LockError::Held { pid }) => Err(format!(
                "another daemon already isolates flows at interface {interface}{}: stop it, or choose another interface",
                pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
            )),
            Err(error) => Err(format!("cannot lock interface {interface}: {error}")),
        }
    }
}

/// Acquires a lock. Waits for its holder for a moment: a process that was killed may not have ended yet.
fn acquire(name: &str) -> Result<NameLock, LockError> {
    let (waits, pause) = WAITS;
    for _ in 0..waits {
        match NameLock::acquire(name) {
            Err(LockError::Held { .. }) => std::thread::sleep(pause),
            acquired => return acquired,
        }
    }
    NameLock::acquire(name)
}
