//! The state of the adaptation, for API and metrics.

use std::sync::{Mutex, PoisonError};

use thalweg_control::threshold::loss_curve::LossCurve;
use thalweg_control::threshold::period::Period;
use thalweg_control::threshold::{Decision, ForecastErrors, Observation, ThresholdCounters, Unusable};
use thalweg_wire::BitRate;

use super::regulated::RegulatorReport;

/// The adaptation at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdReport {
    /// R as the traffic suggests it, and why.
    pub decision: Decision,
    /// R as it applies.
    pub rate: BitRate,
    /// How far forecasts were off; `None` before two consecutive thresholds are known.
    pub errors: Option<ForecastErrors>,
    /// Counters.
    pub counters: ThresholdCounters,
    /// Periods that have ended, the latest first.
    pub periods: Vec<(Period, Observation)>,
    /// Loss curves, each with the last period that used it.
    pub curves: Vec<(LossCurve, Period)>,
    /// The period that is being recorded; `None` before the first packet.
    pub recording: Option<RecordingReport>,
    /// The period that is being simulated.
    pub simulation: Option<SimulationReport>,
    /// Recorded periods that wait for a simulation, including the one that is simulated.
    pub waiting: usize,
    /// The regulator; `None` without a poll.
    pub regulator: Option<RegulatorReport>,
    /// What is wrong with the file of the state; `None` if nothing is.
    pub error: Option<String>,
}

/// A period that is being recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingReport {
    /// The period.
    pub period: Period,
    /// Background packets so far.
    pub packets: u64,
    /// Why it will be of no use; `None` so far.
    pub trouble: Option<Unusable>,
}

/// A period that is being simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulationReport {
    /// The period.
    pub period: Period,
    /// The share that is done.
    pub progress: f64,
}

/// The latest report.
#[derive(Debug, Default)]
pub(super) struct State(Mutex<Option<ThresholdReport>>);

impl State {
    pub(super) fn report(&self) -> Option<ThresholdReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, report: ThresholdReport) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}
