//! Isolation by a router that receives rules over BGP (FlowSpec: RFC 8955, RFC 8956 for IPv6).
//!
//! This host is a BGP speaker with one session to the router, or to a route reflector. Each redirected flow is one rule: its
//! 5-tuple, and what the router does with the packets: mark them for a scavenger queue, limit their rate, or redirect them to another
//! routing instance or next hop.
//!
//! **Guarantee.** A rule is in force only while the session is: the speaker is a part of this process and announces no graceful
//! restart, so the router drops all rules when the process ends, however it ends, and at the latest after the hold time. A new session
//! starts with the rules in force.
//!
//! | module | contents |
//! |---|---|
//! | `rule` | rules, actions and their UPDATE messages |
//! | `session` | one session over one connection |
//! | `speaker` | the thread: rules in force, new sessions, answers |
//!
//! **Bounded**: commands by a queue of 4,096, rules by the redirections that the loop commands. **Cost**: about 30 bytes per rule
//! and change, two threads.

mod rule;
mod session;
mod speaker;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, unbounded};
use thalweg_control::isolate::{Command, Input};
use thalweg_wire::{Secret, Timestamp};

use super::{Isolator, IsolatorCounters};
pub use rule::{Action, ParseTargetError, RedirectTarget};
pub use session::MIN_HOLD_TIME;
use speaker::{Request, Speaker, Status, locked};

/// Port of BGP (RFC 4271).
pub const PORT: u16 = 179;

/// Capacity of the queue of commands.
const QUEUE_CAPACITY: usize = 4_096;

/// Options of isolation by FlowSpec.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowspecOptions {
    /// Address and port of the router.
    pub peer: SocketAddr,
    /// Source address of the session; `None` to let the kernel choose it. Of the same IP version as the peer.
    pub local_address: Option<IpAddr>,
    /// Number of the autonomous system of this speaker.
    pub local_as: u32,
    /// That of the router.
    pub peer_as: u32,
    /// Identifier of this speaker; `None` for the source address, which must then be an IPv4 address.
    pub router_id: Option<Ipv4Addr>,
    /// Hold time to propose, in seconds; at least [`MIN_HOLD_TIME`].
    pub hold_time: u16,
    /// Password of the session (RFC 2385), at most [`thalweg_linux::tcp::MAX_PASSWORD`] bytes.
    pub password: Option<Secret>,
    /// What the router does with the packets of redirected flows.
    pub action: Action,
}

/// Isolation by FlowSpec.
pub struct Flowspec {
    options: FlowspecOptions,
    /// `None` before the start and after the stop.
    requests: Option<Sender<Request>>,
    /// The thread runs while this exists.
    running: Option<Sender<()>>,
    answers: Receiver<Input>,
    answer_sender: Sender<Input>,
    status: Arc<Mutex<Status>>,
    failed_checks: u64,
    thread: Option<JoinHandle<()>>,
}

impl Flowspec {
    /// Creates the isolator. It connects to nobody before [`Isolator::start`].
    pub fn new(options: FlowspecOptions) -> Flowspec {
        // At most one answer for each command of the loop, which is bounded.
        let (answer_sender, answers) = unbounded();
        let (status, failed_checks) = Default::default();
        Flowspec {
            options,
            requests: None,
            running: None,
            answers,
            answer_sender,
            status,
            failed_checks,
            thread: None,
        }
    }
}

impl Isolator for Flowspec {
    fn name(&self) -> &'static str {
        "flowspec"
    }

    /// Starts the thread. It is no error if the router cannot be reached: [`maintain`](Isolator::maintain) reports that.
    fn start(&mut self) -> Result<(), String> {
        let (sender, requests) = bounded(QUEUE_CAPACITY);
        let (keeps_running, running) = bounded(0);
        let (answers, status) = (self.answer_sender.clone(), Arc::clone(&self.status));
        let speaker = Speaker::new(self.options.clone(), requests, running, answers, status, Instant::now());
        let thread = std::thread::Builder::new().name("bgp".to_owned()).spawn(move || speaker.run());
        self.thread = Some(thread.map_err(|error| format!("cannot start a thread: {error}"))?);
        (self.requests, self.running) = (Some(sender), Some(keeps_running));
        Ok(())
    }

    fn execute(&mut self, command: Command, _now: Timestamp) -> Option<Input> {
        let request = match command {
            Command::Redirect(id, key) => Request::Redirect(id, key),
            Command::Release { id, key, .. } => Request::Release(id, key),
            // A rule lasts as long as the session.
            Command::Refresh(_) | Command::Restore(..) => return None,
        };
        let error = match self.requests.as_ref().map(|requests| requests.try_send(request)) {
            Some(Ok(())) => return None,
            Some(Err(TrySendError::Full(_))) => "too many changes are waiting",
            Some(Err(TrySendError::Disconnected(_))) => "the thread has ended",
            None => "not started",
        };
        let mut status = locked(&self.status);
        (status.calls, status.failed_calls) = (status.calls + 1, status.failed_calls + 1);
        Some(match request {
            Request::Redirect(id, _) => Input::Failed(id, error.to_owned()),
            Request::Release(id, _) => Input::ReleaseFailed(id, error.to_owned()),
        })
    }

    fn answers(&mut self) -> Vec<Input> {
        self.answers.try_iter().collect()
    }

    fn maintain(&mut self, _now: Timestamp) -> Result<Vec<String>, String> {
        let mut status = locked(&self.status);
        let ended = self.thread.as_ref().is_some_and(JoinHandle::is_finished);
        let error = if ended { Some("the thread has ended".to_owned()) } else { status.error.clone() };
        match error {
            None => Ok(std::mem::take(&mut status.repaired)),
            Some(error) => {
                self.failed_checks += 1;
                Err(error)
            }
        }
    }

    /// Ends the session, with which the router drops all rules.
    fn stop(&mut self) -> Result<(), String> {
        (self.requests, self.running) = (None, None);
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err("the thread panicked; its session has ended".to_owned()),
            _ => Ok(()),
        }
    }

    fn counters(&self) -> IsolatorCounters {
        let status = locked(&self.status);
        IsolatorCounters {
            repairs: status.repairs,
            failed_checks: self.failed_checks,
            calls: status.calls,
            failed_calls: status.failed_calls,
            ..IsolatorCounters::default()
        }
    }
}

#[cfg(test)]
mod tests;
