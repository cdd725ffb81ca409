//! A thread that keeps the capabilities that the process has when the EAL starts, as the threads of DPDK itself do.
//!
//! Closing a port takes back what opening it changed: promiscuous mode, an XDP program. That needs the same capabilities, which the
//! threads that read packets have dropped by then. The thread is in the network namespace in which the EAL started.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::{io, thread};

/// What the thread does, and whom it tells when that is done.
type Job = (Box<dyn FnOnce() + Send>, SyncSender<()>);

static JOBS: OnceLock<SyncSender<Job>> = OnceLock::new();

/// Starts the thread.
///
/// # Errors
/// If the system has no thread left.
pub(super) fn start() -> io::Result<()> {
    let (sender, jobs) = sync_channel(0);
    thread::Builder::new().name("dpdk-keeper".to_owned()).spawn(move || work(&jobs))?;
    JOBS.get_or_init(|| sender);
    Ok(())
}

fn work(jobs: &Receiver<Job>) {
    for (job, done) in jobs {
        job();
        // The other side waits for it.
        let _ = done.send(());
    }
}

/// Does something on the thread, and waits for its end; on the calling thread if it was not started.
pub(super) fn run(job: impl FnOnce() + Send + 'static) {
    let Some(jobs) = JOBS.get() else { return job() };
    let (done, is_done) = sync_channel(1);
    // The thread never ends, unless a job panicked.
    if jobs.send((Box::new(job), done)).is_ok() {
        let _ = is_done.recv();
    }
}
