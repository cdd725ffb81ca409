//! Keeps forwarding whole: reads back what switches have installed and which links carry frames, and puts right what is
//! not as it should be.
//!
//! It looks every 20 ms. When a link has failed or is back, the trees are made anew over what is up; collectors and
//! controller are told of them first, and they are installed [a little later](SETTLE) (Planck, section 4.1). What a
//! switch has forgotten, and what somebody else has left in it, is found by comparison with what is wanted: so it
//! is no matter who began with an installation, or how far that one came.
//!
//! Its end leaves switches as they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use thalweg_control::routes::Rules;
use thalweg_lab::{Lab, Prefix};
use thalweg_network::routing::{TreeOptions, spanning_trees};
use thalweg_network::{Forwarding, NetworkState};

use super::closed_loop::Announcer;
use super::error::ScenarioError;
use super::installed::{carry_out, installed};

/// How often it looks.
const INTERVAL: Duration = Duration::from_millis(20);

/// How long after collectors were told new routes are installed.
const SETTLE: Duration = Duration::from_millis(2);

/// Somebody who keeps forwarding whole, until this is dropped.
pub(super) struct Keeper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Kept, ScenarioError>>>,
}

/// What a keeper has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// Rules that were missing or wrong, and those that nobody wanted.
    pub(super) corrected: u64,
    /// How often trees were made anew.
    pub(super) rerouted: u64,
}

impl Keeper {
    /// Keeps the rules in the switches of a lab that `state` comes to.
    ///
    /// # Errors
    /// If the lab is gone, or the system has no more threads.
    pub(super) fn start(
        prefix: &Prefix,
        state: &Arc<NetworkState>,
        trees: TreeOptions,
        announcer: Announcer,
    ) -> Result<Keeper, ScenarioError> {
        let lab = Lab::find(prefix)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (is_stopped, state) = (Arc::clone(&stop), Arc::clone(state));
        let work = move || {
            let mut work = Work { lab, state, trees, announcer, kept: Kept::default() };
            while !is_stopped.load(Ordering::Relaxed) {
                work.look()?;
                thread::sleep(INTERVAL);
            }
            Ok(work.kept)
        };
        let thread = thread::Builder::new().name("keeper".to_owned()).spawn(work);
        let thread = thread.map_err(|error| ScenarioError::Watching(error.to_string()))?;
        Ok(Keeper { stop, thread: Some(thread) })
    }

    /// Ends it.
    ///
    /// # Errors
    /// If it has ended early.
    pub(super) fn finish(mut self) -> Result<Kept, ScenarioError> {
        self.join()
    }

    fn join(&mut self) -> Result<Kept, ScenarioError> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        let panicked = || ScenarioError::Watching("a mistake of the program".to_owned());
        ended.and_then(Result::ok).ok_or_else(panicked)?
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Whoever wants to know how it ended has asked.
        let _ = self.thread.is_some().then(|| self.join());
    }
}

struct Work {
    lab: Lab,
    state: Arc<NetworkState>,
    trees: TreeOptions,
    announcer: Announcer,
    kept: Kept,
}

impl Work {
    fn look(&mut self) -> Result<(), ScenarioError> {
        let links = self.lab.links()?;
        if links != *self.state.links() {
            let tables = spanning_trees(self.state.topology(), &links, self.trees);
            let state = self.state.with_links(links)?.with_forwarding(Forwarding::tables(tables))?;
            self.state = Arc::new(state);
            self.kept.rerouted += 1;
            self.announcer.announce(&self.state);
            thread::sleep(SETTLE);
        }
        let wanted = Rules::of_tables(self.state.topology(), self.state.forwarding().all_tables());
        let changes = installed(&self.lab)?.changes_to(&wanted);
        self.kept.corrected += changes.len() as u64;
        carry_out(&self.lab, &changes)
    }
}
