//! Calls of another program or server, one for each redirection and release, on a fixed number of threads.
//!
//! So calls are bounded, and those of a flow are in order: a flow has at most one command without an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, unbounded};
use thalweg_control::isolate::{Command, Input, RedirectionId};
use thalweg_wire::FlowKey;

use super::IsolatorCounters;

/// Capacity of the queue of calls.
const QUEUE_CAPACITY: usize = 4_096;

/// Makes calls. Each may block until its timeout.
pub(super) trait Caller: Send + Sync + 'static {
    /// Redirects or releases a flow.
    ///
    /// # Errors
    /// A message.
    fn call(&self, call: &Call) -> Result<(), String>;

    /// Removes what an earlier run left.
    ///
    /// # Errors
    /// A message.
    fn reset(&self) -> Result<(), String>;
}

/// A redirection or a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    action: Action,
    id: RedirectionId,
    key: FlowKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Redirect,
    Release,
}

/// The threads that make calls.
pub(super) struct Calls<C> {
    caller: Arc<C>,
    concurrency: usize,
    /// `None` before the start and after the stop.
    queue: Option<Sender<Call>>,
    answers: Receiver<Input>,
    answer_sender: Sender<Input>,
    calls: Arc<AtomicU64>,
    failed_calls: Arc<AtomicU64>,
    /// Whether waiting calls are to be skipped.
    is_stopping: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl<C: Caller> Calls<C> {
    /// Creates the queue. Nothing is called before [`start`](Self::start).
    pub(super) fn new(caller: C, concurrency: usize) -> Calls<C> {
        // At most one answer for each call that the loop has commanded, which is bounded.
        let (answer_sender, answers) = unbounded();
        let (calls, failed_calls, is_stopping) = Default::default();
        Calls {
            caller: Arc::new(caller),
            concurrency,
            queue: None,
            answers,
            answer_sender,
            calls,
            failed_calls,
            is_stopping,
            threads: Vec::new(),
        }
    }

    /// Removes what an earlier run left, and starts the threads.
    pub(super) fn start(&mut self) -> Result<(), String> {
        self.reset()?;
        let (sender, queue) = bounded::<Call>(QUEUE_CAPACITY);
        for _ in 0..self.concurrency.max(1) {
            let (queue, answers, caller) =
                (queue.clone(), self.answer_sender.clone(), Arc::clone(&self.caller));
            let (calls, failed_calls) = (Arc::clone(&self.calls), Arc::clone(&self.failed_calls));
            let is_stopping = Arc::clone(&self.is_stopping);
            let work = move || {
                for call in queue {
                    if is_stopping.load(Ordering::Relaxed) {
                        return;
                    }
                    let done = caller.call(&call);
                    calls.fetch_add(1, Ordering::Relaxed);
                    failed_calls.fetch_add(u64::from(done.is_err()), Ordering::Relaxed);
                    if answers.send(call.answer(done)).is_err() {
                        return;
                    }
                }
            };
            let thread = std::thread::Builder::new().name("isolate".to_owned()).spawn(work);
            self.threads.push(thread.map_err(|error| format!("cannot start a thread: {error}"))?);
        }
        self.queue = Some(sender);
        Ok(())
    }

    /// Queues a command. Returns an answer only if that failed.
    pub(super) fn execute(&self, command: Command) -> Option<Input> {
        let call = match command {
            Command::Redirect(id, key) => Call { action: Action::Redirect, id, key },
            Command::Release { id, key, .. } => Call { action: Action::Release, id, key },
            // Calls have no expiry.
            Command::Refresh(_) | Command::Restore(..) => return None,
        };
        let failed = |reason: &str| Some(call.failed(reason.to_owned()));
        match &self.queue {
            None => failed("not started"),
            Some(queue) => match queue.try_send(call) {
                Ok(()) => None,
                Err(TrySendError::Full(_)) => failed("too many calls are waiting"),
                Err(TrySendError::Disconnected(_)) => failed("the threads have ended"),
            },
        }
    }

    pub(super) fn answers(&self) -> Vec<Input> {
        self.answers.try_iter().collect()
    }

    /// Ends the threads after their present calls, and removes everything. Calls that wait are skipped.
    pub(super) fn stop(&mut self) -> Result<(), String> {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.queue = None;
        for thread in self.threads.drain(..) {
            // A call that panicked has failed.
            let _ = thread.join();
        }
        self.reset()
    }

    fn reset(&self) -> Result<(), String> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let done = self.caller.reset();
        self.failed_calls.fetch_add(u64::from(done.is_err()), Ordering::Relaxed);
        done
    }

    pub(super) fn counters(&self) -> IsolatorCounters {
        IsolatorCounters {
            calls: self.calls.load(Ordering::Relaxed),
            failed_calls: self.failed_calls.load(Ordering::Relaxed),
            ..IsolatorCounters::default()
        }
    }
}

impl Call {
    /// Returns action, protocol, source, source port, destination and destination port as text.
    pub(super) fn arguments(&self) -> [String; 6] {
        let FlowKey { src_port, dst_port, protocol, .. } = self.key;
        let action = match self.action {
            Action::Redirect => "redirect",
            Action::Release => "release",
        };
        let (src, dst) = (self.key.src().to_string(), self.key.dst().to_string());
        [action.to_owned(), protocol.to_string(), src, src_port.to_string(), dst, dst_port.to_string()]
    }

    /// Returns the same as JSON. No text needs an escape.
    pub(super) fn json(&self) -> String {
        let [action, protocol, src, src_port, dst, dst_port] = self.arguments();
        format!(
            "{{\"action\":\"{action}\",\"redirection\":{},\"protocol\":\"{protocol}\",\"src\":\"{src}\",\"src_port\":{src_port},\
             \"dst\":\"{dst}\",\"dst_port\":{dst_port}}}\n",
            self.id.0
        )
    }

    fn answer(&self, done: Result<(), String>) -> Input {
        match (self.action, done) {
            (Action::Redirect, Ok(())) => Input::Redirected(self.id),
            (Action::Release, Ok(())) => Input::Released(self.id),
            (_, Err(error)) => self.failed(error),
        }
    }

    fn failed(&self, error: String) -> Input {
        match self.action {
            Action::Redirect => Input::Failed(self.id, error),
            Action::Release => Input::ReleaseFailed(self.id, error),
        }
    }
}

/// The JSON of a reset.
pub(super) const RESET: &str = "{\"action\":\"reset\"}\n";
