//! The processes of an emulated network: an arbiter, perhaps a secondary one, and an endpoint for each host.
//!
//! They run in the background, in the lab's namespace [`FABRIC`](crate::plan::FABRIC), and belong to no process that waits for them. The record
//! `/run/thalweg/PREFIXemulation.json` has their numbers with their start times, so that a later process with the same number is not
//! mistaken for one of them. It is written before anything is created, and again after each start. A process that was started
//! just before a crash, and is not in the record, is still in the namespace, and is killed with it.

pub(crate) mod log;
pub(crate) mod record;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_linux::Namespace;
use thalweg_linux::process::{ProcessIdentity, boot_id};

use crate::error::LabError;
use crate::plan::Prefix;
use crate::record::folder;
use record::{EmulationRecord, Role};

/// How long endpoints may take to end: they wait for the decisions on the packets that they hold, which may be in long queues.
const ENDPOINTS_END: Duration = Duration::from_secs(12);

/// How long they may take if no arbiter runs that could decide.
const ENDPOINTS_END_UNDECIDED: Duration = Duration::from_secs(1);

/// How long an arbiter may take to end: it writes its report.
const ARBITER_ENDS: Duration = Duration::from_secs(5);

/// How long the kernel may take to end processes that were killed. It removes the TAP interfaces of endpoints one after the other.
const KILLED: Duration = Duration::from_secs(30);

/// The pause between two looks whether a process has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// Counts of processes that were ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedProcesses {
    /// Arbiters and endpoints that ended when they were asked to.
    pub ended: usize,
    /// Processes that were killed: those that users started on the hosts, and arbiters and endpoints that did not end in time.
    pub killed: usize,
}

/// Whether an emulated lab of this prefix has a record.
pub(crate) fn has_record(prefix: &Prefix) -> bool {
    record::path(prefix).exists()
}

/// The folder of the logs, unless the user chose another.
pub(crate) fn default_folder(prefix: &Prefix) -> PathBuf {
    folder().join(format!("{prefix}emulation"))
}

/// Ends the processes of the emulated network of this prefix: first those of users on the hosts, then the endpoints, which decide on the
/// packets that they hold, then the secondary arbiter, which must not take over, then the arbiter. Does nothing without a record, or if it
/// cannot be read: then its processes end with their namespace.
///
/// # Errors
/// If a process cannot be ended.
pub(crate) fn stop_processes(prefix: &Prefix) -> Result<EndedProcesses, LabError> {
    let Ok(Some(record)) = EmulationRecord::read(prefix) else { return Ok(EndedProcesses::default()) };
    let mut ended = EndedProcesses::default();
    for name in record.host_namespaces() {
        let namespace = Namespace::named(name);
        if namespace.exists() {
            ended.killed += namespace.kill_processes()?;
        }
    }
    if boot_id().is_ok_and(|now| now != record.boot_id) {
        return Ok(ended);
    }
    let is_endpoint = |role: &Role| matches!(role, Role::Endpoint(_));
    let has_arbiter =
        record.identities(|role| !is_endpoint(role)).into_iter().any(ProcessIdentity::is_running);
    let time = if has_arbiter { ENDPOINTS_END } else { ENDPOINTS_END_UNDECIDED };
    ended.add(stop(&record.identities(is_endpoint), time)?);
    for role in [Role::Standby, Role::Arbiter] {
        ended.add(stop(&record.identities(|other| *other == role), ARBITER_ENDS)?);
    }
    Ok(ended)
}

impl EndedProcesses {
    fn add(&mut self, other: EndedProcesses) {
        self.ended += other.ended;
        self.killed += other.killed;
    }
}

/// Asks processes to end, and kills those that have not ended in time. Counts those that ran.
fn stop(processes: &[ProcessIdentity], time: Duration) -> Result<EndedProcesses, LabError> {
    let failed = |process: &ProcessIdentity| {
        let pid = process.pid;
        move |source| LabError::Signal { pid, source }
    };
    let running: Vec<_> = processes.iter().copied().filter(|process| process.is_running()).collect();
    for process in &running {
        process.terminate().map_err(failed(process))?;
    }
    let left = wait_for_end(&running, time);
    for process in &left {
        process.kill().map_err(failed(process))?;
    }
    match wait_for_end(&left, KILLED).first() {
        Some(process) => Err(failed(process)(io::ErrorKind::TimedOut.into())),
        None => Ok(EndedProcesses { ended: running.len() - left.len(), killed: left.len() }),
    }
}

/// Waits until processes have ended. Returns those that have not.
fn wait_for_end(processes: &[ProcessIdentity], time: Duration) -> Vec<ProcessIdentity> {
    let end = Instant::now() + time;
    let mut left = processes.to_vec();
    loop {
        left.retain(|process| process.is_running());
        if left.is_empty() || Instant::now() >= end {
            return left;
        }
        thread::sleep(PAUSE);
    }
}

/// Restores the machine parameters that were changed for the emulated lab of this prefix. If another lab needs them,
/// it restores them at its end. Does nothing without a record, or if it cannot be read.
///
/// # Errors
/// If a parameter cannot be written.
pub(crate) fn restore_parameters(prefix: &Prefix) -> Result<(), LabError> {
    let Ok(Some(record)) = EmulationRecord::read(prefix) else { return Ok(()) };
    let mut others = EmulationRecord::others(&record.prefix, &record.boot_id)?;
    for change in &record.changed {
        let takes = |other: &mut EmulationRecord| other.changed.iter_mut().any(|later| change.give_to(later));
        match others.iter_mut().position(takes) {
            Some(heir) => others[heir].write()?,
            None => change.restore()?,
        }
    }
    Ok(())
}

/// Removes the logs, unless they are in a folder of the user, and the record. Call it when no process is left.
///
/// # Errors
/// If a file cannot be removed.
pub(crate) fn remove_files(prefix: &Prefix) -> Result<(), LabError> {
    let logs = default_folder(prefix);
    remove_folder(&logs).map_err(|source| LabError::Record { path: logs, source })?;
    EmulationRecord::remove(prefix)
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_does_not_end_is_killed() {
        // The shell ignores the signal, and says so by its child.
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let script = format!("trap '' TERM; touch {}; while :; do sleep 0.01; done", ready.display());
        let mut stubborn = Command::new("sh").args(["-c", &script]).spawn().unwrap();
        let mut willing = Command::new("sleep").arg("1000").spawn().unwrap();
        while !ready.exists() {
            thread::sleep(PAUSE);
        }
        let both = [&stubborn, &willing].map(|child| ProcessIdentity::of(child.id()).unwrap());
        let ended = stop(&both, Duration::from_millis(100)).unwrap();
        assert_eq!(ended, EndedProcesses { ended: 1, killed: 1 });
        assert_eq!(stop(&both, Duration::ZERO).unwrap(), EndedProcesses::default(), "they have ended");
        stubborn.wait().unwrap();
        willing.wait().unwrap();
    }
}
