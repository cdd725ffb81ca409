//! Calls of another program or server, one for each redirection and release, on a fixed number of threads.
//!
//! So calls are bounded, and those of a flow are in order: a flow has at most one command without an answer.
//!
//! **Stop**: calls to redirect a flow that wait are dropped at once, those to release one after the time that the daemon gives them. Then the
//! reset removes everything.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// A message, and whether the router may have changed.
    fn call(&self, call: &Call) -> Result<(), CallError>;

    /// Removes what an earlier run left. Takes no longer than the timeout.
    ///
    /// # Errors
    /// A message.
    fn reset(&self) -> Result<(), String>;

    /// Ends running calls early, if that is possible, and all later ones.
    fn interrupt(&self) {}
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallError {
    /// The call had no effect.
    Failed(String),
    /// Nobody knows whether it had one, such as after a timeout.
    Unknown(String),
}

impl CallError {
    pub(super) fn into_message(self) -> String {
        match self {
            CallError::Failed(message) | CallError::Unknown(message) => message,
        }
    }
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
    progress: Arc<Progress>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads share.
#[derive(Debug, Default)]
struct Progress {
    calls: AtomicU64,
    failed_calls: AtomicU64,
    /// The error of the last call; `None` if it succeeded.
    problem: Mutex<Option<String>>,
    /// Whether calls to redirect a flow that wait are to be dropped.
    drops_redirects: AtomicBool,
    /// Whether all calls that wait are to be dropped.
    is_stopping: AtomicBool,
}

impl Progress {
    fn problem(&self) -> MutexGuard<'_, Option<String>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call.
    fn count(&self, error: Option<&str>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.failed_calls.fetch_add(u64::from(error.is_some()), Ordering::Relaxed);
        *self.problem() = error.map(str::to_owned);
    }

    /// Makes a call, unless it is dropped. Returns its answer.
    fn work(&self, call: &Call, caller: &impl Caller) -> Input {
        if self.drops_redirects.load(Ordering::Relaxed) && call.action == Action::Redirect {
            return call.failed("the daemon stops".to_owned());
        }
        let done = caller.call(call);
        let error = done.as_ref().err().cloned().map(CallError::into_message);
        self.count(error.map(|error| format!("{}: {error}", call.action.name())).as_deref());
        call.answer(done)
    }
}

impl<C: Caller> Calls<C> {
    /// Creates the queue. Nothing is called before [`start`](Self::start).
    pub(super) fn new(caller: C, concurrency: usize) -> Calls<C> {
        // At most one answer for each call that the loop has commanded, which is bounded.
        let (answer_sender, answers) = unbounded();
        Calls {
            caller: Arc::new(caller),
            concurrency,
            queue: None,
            answers,
            answer_sender,
            progress: Arc::default(),
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
            let progress = Arc::clone(&self.progress);
            let work = move || {
                for call in queue {
                    if progress.is_stopping.load(Ordering::Relaxed) {
                        return;
                    }
                    if answers.send(progress.work(&call, &*caller)).is_err() {
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

    /// Returns the error of the last call, if it failed.
    pub(super) fn check(&self) -> Result<Vec<String>, String> {
        self.progress.problem().clone().map_or(Ok(Vec::new()), Err)
    }

    /// Drops calls to redirect a flow that wait.
    pub(super) fn prepare_stop(&self) {
        self.progress.drops_redirects.store(true, Ordering::Relaxed);
    }

    /// Drops calls that wait, ends the threads, and removes everything. Running calls end early if that is possible, otherwise by their
    /// timeout.
    pub(super) fn stop(&mut self) -> Result<(), String> {
        self.progress.is_stopping.store(true, Ordering::Relaxed);
        self.caller.interrupt();
        self.queue = None;
        for thread in self.threads.drain(..) {
            // A call that panicked has failed.
            let _ = thread.join();
        }
        self.reset()
    }

    fn reset(&self) -> Result<(), String> {
        let done = self.caller.reset();
        self.progress.count(done.as_ref().err().map(String::as_str));
        done
    }

    pub(super) fn counters(&self) -> IsolatorCounters {
        IsolatorCounters {
            calls: self.progress.calls.load(Ordering::Relaxed),
            failed_calls: self.progress.failed_calls.load(Ordering::Relaxed),
            ..IsolatorCounters::default()
        }
    }
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Action::Redirect => "redirect",
            Action::Release => "release",
        }
    }
}

impl Call {
    /// Returns action, protocol, source, source port, destination and destination port as text.
    pub(super) fn arguments(&self) -> [String; 6] {
        let FlowKey { src_port, dst_port, protocol, .. } = self.key;
        let (src, dst) = (self.key.src().to_string(), self.key.dst().to_string());
        [
            self.action.name().to_owned(),
            protocol.to_string(),
            src,
            src_port.to_string(),
            dst,
            dst_port.to_string(),
        ]
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

    fn answer(&self, done: Result<(), CallError>) -> Input {
        match (self.action, done) {
            (Action::Redirect, Ok(())) => Input::Redirected(self.id),
            (Action::Release, Ok(())) => Input::Released(self.id),
            (Action::Redirect, Err(CallError::Unknown(error))) => Input::Unknown(self.id, error),
            (_, Err(error)) => self.failed(error.into_message()),
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
