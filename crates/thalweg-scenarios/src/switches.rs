//! The eBPF switches of a lab, for the control loop: a thread that reads back what they have installed and which links carry
//! frames, and puts rules right.
//!
//! It has a thread of its own because reading all tables takes milliseconds, in which packets would wait. Its end leaves
//! switches as they are.

use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, unbounded};
use thalweg_control::control_loop::Input;
use thalweg_control::routes::Change;
use thalweg_daemon::control::SwitchTables;
use thalweg_lab::{Lab, Prefix};
use thalweg_wire::Nanos;

use super::error::ScenarioError;
use super::installed::{carry_out, installed};

/// How often it is looked which links are up and what switches have installed.
const READ_BACK: Nanos = Nanos::from_millis(20);

/// What is to be done. Few of these wait: the loop commands one after the other was answered.
enum Work {
    ReadBack,
    Repair(Vec<Change>),
}

/// The switches of a lab; the thread ends when this is dropped.
pub(super) struct Switches {
    work: Option<Sender<Work>>,
    answers: Receiver<Vec<Input>>,
    thread: Option<JoinHandle<()>>,
}

impl Switches {
    /// Those of the lab of this name.
    ///
    /// # Errors
    /// If the lab is gone, or the system has no more threads.
    pub(super) fn of(prefix: &Prefix) -> Result<Switches, ScenarioError> {
        let lab = Lab::find(prefix)?;
        let (work, to_do) = unbounded();
        let (answer, answers) = unbounded();
        let run = move || {
            for work in to_do {
                if answer.send(carry_out_one(&lab, work)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("switches".to_owned()).spawn(run);
        let thread = thread.map_err(|error| ScenarioError::Watching(error.to_string()))?;
        Ok(Switches { work: Some(work), answers, thread: Some(thread) })
    }

    fn put(&self, work: Work) {
        if let Some(sender) = &self.work {
            // Nobody takes it any more if the lab is gone, which has been answered.
            let _ = sender.send(work);
        }
    }
}

impl SwitchTables for Switches {
    fn interval(&self) -> Nanos {
        READ_BACK
    }

    fn read_back(&mut self) {
        self.put(Work::ReadBack);
    }

    fn repair(&mut self, changes: Vec<Change>) {
        self.put(Work::Repair(changes));
    }

    fn answers(&mut self) -> Vec<Input> {
        self.answers.try_iter().flatten().collect()
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

fn carry_out_one(lab: &Lab, work: Work) -> Vec<Input> {
    match work {
        Work::ReadBack => {
            read_back(lab).unwrap_or_else(|error| vec![Input::ReadBackFailed(error.to_string())])
        }
        Work::Repair(changes) => match carry_out(lab, &changes) {
            Ok(()) => vec![Input::Repaired],
            Err(error) => vec![Input::RepairFailed(error.to_string())],
        },
    }
}

fn read_back(lab: &Lab) -> Result<Vec<Input>, ScenarioError> {
    let links = lab.links()?;
    Ok(vec![Input::Links(links), Input::Tables { router: None, rules: installed(lab)? }])
}
