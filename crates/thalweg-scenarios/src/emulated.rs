//! The emulated lab of one scenario: created from an experiment, removed at its end.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use thalweg_lab::{EmulatedLab, EmulatedPlan, Lab, Namespace, Prefix};
use thalweg_network::EndpointId;

use crate::error::ScenarioError;

/// The report of the arbiter in its folder.
const REPORT: &str = "real-time.json";

/// Plans the lab of an experiment file, with its reports in a folder.
pub type Planner<'a> = dyn Fn(&Path, &Prefix, &Path) -> Result<EmulatedPlan, String> + 'a;

/// What the arbiter reports on a run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct ArbiterRun {
    /// Whether few enough slots were late.
    pub valid: bool,
    /// Slots that were due and not skipped.
    pub slots: u64,
    /// Slots that started late.
    pub late_slots: u64,
    /// Slots of pauses.
    pub skipped_slots: u64,
    /// The share of late and skipped slots, 0 to 1.
    pub late_share: f64,
    /// The longest delay of a slot, in nanoseconds.
    pub worst_delay_ns: u64,
    /// Requests of all endpoints.
    pub requests: u64,
}

/// A lab that is removed on drop.
pub(crate) struct EmulatedSession {
    lab: EmulatedLab,
    folder: PathBuf,
    stop: Arc<AtomicBool>,
}

impl EmulatedSession {
    /// Creates the lab of an experiment, with its reports in `folder`.
    ///
    /// # Errors
    /// If a lab with this prefix exists, the experiment is invalid, or the lab cannot be created.
    pub(crate) fn up(
        experiment: &str,
        planner: &Planner<'_>,
        prefix: &Prefix,
        folder: &Path,
        stop: &Arc<AtomicBool>,
    ) -> Result<EmulatedSession, ScenarioError> {
        if Lab::is_up(prefix) {
            return Err(ScenarioError::PrefixInUse { prefix: prefix.to_string() });
        }
        let file = folder.join("experiment.toml");
        fs::write(&file, experiment)
            .map_err(|error| ScenarioError::Monitoring(format!("{}: {error}", file.display())))?;
        let plan = planner(&file, prefix, folder).map_err(ScenarioError::Monitoring)?;
        Ok(EmulatedSession {
            lab: EmulatedLab::up(&plan)?,
            folder: folder.to_owned(),
            stop: Arc::clone(stop),
        })
    }

    /// Returns the namespace of a host.
    pub(crate) fn host(&self, number: u16) -> Namespace {
        self.lab.host(EndpointId(number))
    }

    /// Returns the address of a host.
    pub(crate) fn address(&self, number: u16) -> Ipv4Addr {
        self.lab.topology().endpoints()[usize::from(number)].ip
    }

    /// Whether the user wants the scenario to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the emulated network. Returns the report of the arbiter.
    ///
    /// # Errors
    /// If a process cannot be ended, or there is no report.
    pub(crate) fn finish(self) -> Result<ArbiterRun, ScenarioError> {
        self.lab.stop()?;
        let path = self.folder.join(REPORT);
        let failed = |reason: String| ScenarioError::Monitoring(format!("{}: {reason}", path.display()));
        let text = fs::read(&path).map_err(|error| failed(error.to_string()))?;
        serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))
    }
}

impl Drop for EmulatedSession {
    fn drop(&mut self) {
        // Nobody is left to report to; the next lab of this prefix removes what is left.
        let _ = Lab::down(self.lab.prefix());
    }
}
