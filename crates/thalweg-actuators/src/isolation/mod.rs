//! Isolators: carry out the redirections that [`thalweg_control::isolate`] decides.
//!
//! | module | how a flow is redirected |
//! |---|---|
//! | [`tc`] | this host is the router: a program before the queue of the interface selects the class |
//! | [`openflow`] | an OpenFlow switch: a rule writes the DSCP and selects the queue |
//! | [`exec`] | a command that receives the 5-tuple |
//! | [`webhook`] | an HTTP request with the 5-tuple |
//! | [`flowspec`] | a router receives rules over BGP |
//! | [`log`] | not at all: records the redirections |
//!
//! In the emulated network of the daemon, `thalweg-daemon` redirects flows itself.
//!
//! `calls` has the threads of `exec` and `webhook`. An isolator may answer later. It never blocks for longer than a system call.

mod calls;
pub mod exec;
pub mod flowspec;
pub mod log;
pub mod openflow;
pub mod tc;
pub mod webhook;

use thalweg_control::isolate::{Command, Input, Reading};
use thalweg_wire::{FlowKey, Timestamp};

/// Carries out redirections.
pub trait Isolator: Send {
    /// Returns the name used in configuration files.
    fn name(&self) -> &'static str;

    /// Whether it reads counters of flows and queues.
    fn reads_counters(&self) -> bool {
        false
    }

    /// Starts: sets up queues, starts threads. Runs after privileges were dropped, when nothing else of the daemon can fail.
    ///
    /// # Errors
    /// A message, if it cannot start. What it had changed is restored.
    fn start(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Returns flows that an earlier run redirected and that still are, as far as known at the start. Others arrive as
    /// [answers](Self::answers).
    fn adopted(&mut self) -> Vec<FlowKey> {
        Vec::new()
    }

    /// Carries out a command, and returns its answer if it has one already. `now` is the clock of
    /// [`thalweg_linux::clock::monotonic`].
    fn execute(&mut self, command: Command, now: Timestamp) -> Option<Input>;

    /// Returns the answers that have arrived since the last call.
    fn answers(&mut self) -> Vec<Input> {
        Vec::new()
    }

    /// Reads the counters of the queues and of these flows at least, if it can. `None` if it has nothing new.
    ///
    /// # Errors
    /// A message.
    fn read(&mut self, flows: &[FlowKey], now: Timestamp) -> Result<Option<Reading>, String> {
        let _ = (flows, now);
        Ok(None)
    }

    /// Checks and repairs what it has set up. Returns what was repaired, as messages.
    ///
    /// # Errors
    /// A message, if something is wrong and cannot be repaired now.
    fn maintain(&mut self, now: Timestamp) -> Result<Vec<String>, String> {
        let _ = now;
        Ok(Vec::new())
    }

    /// The daemon is about to stop: requests to redirect a flow that have not started are answered as failed. Releases follow, then
    /// [`stop`](Self::stop).
    fn prepare_stop(&mut self) {}

    /// Removes what it has set up, unless it is to be kept for the next start.
    ///
    /// # Errors
    /// A message, if something remains, or may.
    fn stop(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Returns its counters.
    fn counters(&self) -> IsolatorCounters {
        IsolatorCounters::default()
    }
}

/// Counters of an isolator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IsolatorCounters {
    /// Packets that the program redirected.
    pub redirected_packets: u64,
    /// Packets of redirections that had expired, also while no daemon ran.
    pub expired_packets: u64,
    /// Packets of flows that were released when the program saw them.
    pub released_packets: u64,
    /// Queues, classes, programs and rules that others had changed or removed, and rules that a router had dropped, all of which were
    /// set again.
    pub repairs: u64,
    /// Checks that failed.
    pub failed_checks: u64,
    /// Runs of the command, requests, or changes of rules.
    pub calls: u64,
    /// Of those, failed.
    pub failed_calls: u64,
}
