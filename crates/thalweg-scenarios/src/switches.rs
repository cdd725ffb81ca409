//! The eBPF switches of a lab for the control loop: a thread that reads back rules and link states and repairs rules.
//! It has its own thread because reading all tables takes milliseconds, during which packets would wait. In between, the
//! thread watches the carrier of all links, so that a failed one is known sooner. When it ends, the switches keep their
//! rules.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use thalweg_control::control_loop::Input;
use thalweg_control::routes::Change;
use thalweg_daemon::control::SwitchTables;
use thalweg_lab::{Lab, Prefix};
use thalweg_network::LinkState;
use thalweg_wire::Nanos;

use super::error::ScenarioError;
use super::installed::{apply_changes, installed};

/// Interval at which links and rules are read back.
const READ_INTERVAL: Nanos = Nanos::from_millis(20);

/// Interval at which the carrier of links is read while the thread has no task.
const CARRIER_INTERVAL: Duration = Duration::from_millis(5);

/// A task of the thread. Few are queued: the loop sends the next one after the answer.
enum Task {
    ReadBack,
    RepairRules(Vec<Change>),
}

/// The switches of a lab; the thread ends on drop.
pub(super) struct Switches {
    task: Option<Sender<Task>>,
    answers: Receiver<Vec<Input>>,
    thread: Option<JoinHandle<()>>,
}

impl Switches {
    /// Starts the thread for the lab with this prefix.
    ///
    /// # Errors
    /// If the lab no longer exists, or the thread cannot be started.
    pub(super) fn start(prefix: &Prefix) -> Result<Switches, ScenarioError> {
        let lab = Lab::find(prefix)?;
        let (task, tasks) = unbounded();
        let (answer, answers) = unbounded();
        let run = move || {
            let mut carrier = CarrierWatch::default();
            loop {
                let inputs = match tasks.recv_timeout(CARRIER_INTERVAL) {
                    Ok(task) => run_task(&lab, task),
                    Err(RecvTimeoutError::Timeout) => carrier.changes(&lab),
                    Err(RecvTimeoutError::Disconnected) => return,
                };
                if !inputs.is_empty() && answer.send(inputs).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("switches".to_owned()).spawn(run);
        let thread = thread.map_err(|error| ScenarioError::Monitoring(error.to_string()))?;
        Ok(Switches { task: Some(task), answers, thread: Some(thread) })
    }

    fn send(&self, task: Task) {
        if let Some(sender) = &self.task {
            // Fails only if the thread has ended; the loop has received the error by then.
            let _ = sender.send(task);
        }
    }
}

impl SwitchTables for Switches {
    fn interval(&self) -> Nanos {
        READ_INTERVAL
    }

    fn read_back(&mut self) {
        self.send(Task::ReadBack);
    }

    fn repair_rules(&mut self, changes: Vec<Change>) {
        self.send(Task::RepairRules(changes));
    }

    fn answers(&mut self) -> Vec<Input> {
        self.answers.try_iter().flatten().collect()
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        self.task = None;
        if let Some(thread) = self.thread.take() {
            // A panicked thread has printed its message.
            let _ = thread.join();
        }
    }
}

/// The last known state of links.
#[derive(Default)]
struct CarrierWatch(Option<LinkState>);

impl CarrierWatch {
    /// Returns the state of links if it has changed. An error is reported by the next read-back.
    fn changes(&mut self, lab: &Lab) -> Vec<Input> {
        let Ok(links) = lab.links() else { return Vec::new() };
        if self.0.as_ref() == Some(&links) {
            return Vec::new();
        }
        self.0 = Some(links.clone());
        vec![Input::Links(links)]
    }
}

fn run_task(lab: &Lab, task: Task) -> Vec<Input> {
    match task {
        Task::ReadBack => {
            read_back(lab).unwrap_or_else(|error| vec![Input::ReadBackFailed(error.to_string())])
        }
        Task::RepairRules(changes) => match apply_changes(lab, &changes) {
            Ok(()) => vec![Input::RulesRepaired],
            Err(error) => vec![Input::RuleRepairFailed(error.to_string())],
        },
    }
}

fn read_back(lab: &Lab) -> Result<Vec<Input>, ScenarioError> {
    let links = lab.links()?;
    Ok(vec![Input::Links(links), Input::Tables { router: None, rules: installed(lab)? }])
}
