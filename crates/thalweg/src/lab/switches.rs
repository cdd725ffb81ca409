//! The eBPF switches of a lab, for the control loop: a thread that reads back what they have installed and which links carry
//! frames, and puts rules right.
//!
//! It has a thread of its own because reading all tables takes milliseconds, in which packets would wait. Its end leaves
//! switches as they are.

use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, unbounded};
use thalweg_control::control_loop::Input;
use thalweg_control::routes::Change;
use thalweg_lab::{Lab, Prefix};

use super::error::ScenarioError;
use super::installed::{carry_out, installed};

/// What is to be done. Few of these wait: the loop commands one after the other was answered.
enum Work {
    ReadBack,
    Repair(Vec<Change>),
}

/// The switches of a lab; the thread ends when this is dropped.
pub(super) struct Switches {
    work: Option<Sender<Work>>,
    answers: Receiver<Result<Vec<Input>, ScenarioError>>,
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

    /// Reads what is installed; the answer is an input.
    pub(super) fn read_back(&self) {
        self.put(Work::ReadBack);
    }

    /// Puts rules right, in order; the answer is an input.
    pub(super) fn repair(&self, changes: Vec<Change>) {
        self.put(Work::Repair(changes));
    }

    /// What has been answered.
    ///
    /// # Errors
    /// If the lab is gone.
    pub(super) fn answers(&self) -> Result<Vec<Input>, ScenarioError> {
        let answers: Result<Vec<_>, _> = self.answers.try_iter().collect();
        Ok(answers?.concat())
    }

    fn put(&self, work: Work) {
        if let Some(sender) = &self.work {
            // Nobody takes it any more if the lab is gone, which has been answered.
            let _ = sender.send(work);
        }
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

fn carry_out_one(lab: &Lab, work: Work) -> Result<Vec<Input>, ScenarioError> {
    match work {
        Work::ReadBack => {
            let links = lab.links()?;
            Ok(vec![Input::Links(links), Input::Tables { router: None, rules: installed(lab)? }])
        }
        Work::Repair(changes) => {
            carry_out(lab, &changes)?;
            Ok(vec![Input::Repaired])
        }
    }
}
