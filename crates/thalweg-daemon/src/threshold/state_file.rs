//! What survives a restart: loss curves and periods, in a file that is replaced as a whole.
//!
//! A crash at any moment leaves the old or the new file. A damaged file is set aside, and the adaptation begins without it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thalweg_control::threshold::loss_curve::{LossCurve, LossPoint, Threshold};
use thalweg_control::threshold::period::Period;
use thalweg_control::threshold::tag::Tag;
use thalweg_control::threshold::{Adaptation, Observation, Outcome, ThresholdOptions, Unusable};
use thalweg_wire::{BitRate, Nanos};
use thiserror::Error;

/// The version of the format.
const VERSION: u32 = 1;

/// The name of the file in its directory.
const NAME: &str = "threshold.json";

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub(super) enum StateError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// It is not what this program writes.
    #[error("{path} is damaged: {reason}. It was renamed to {aside}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// Its new name.
        aside: PathBuf,
    },
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct State {
    version: u32,
    /// T2 in nanoseconds. Periods of another length are forgotten; curves hold in any case.
    period_ns: u64,
    curves: Vec<CurveState>,
    periods: Vec<PeriodState>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct CurveState {
    mean_rate_bps: u64,
    burstiness: f64,
    seconds: f64,
    used: u64,
    /// What was simulated. Curves of other simulations are forgotten.
    simulation: String,
    /// Rate in bit/s, loss, standard error.
    points: Vec<(u64, f64, f64)>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct PeriodState {
    period: u64,
    outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mean_rate_bps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    burstiness: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threshold_bps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is_acceptable: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forecast_bps: Option<u64>,
    /// Files of earlier versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous_bps: Option<u64>,
}

/// The file, and what its contents depend on.
#[derive(Clone, Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    period: Nanos,
    /// Describes the port and the flow that are simulated.
    simulation: String,
}

impl StateFile {
    pub(super) fn new(folder: &Path, period: Nanos, simulation: String) -> StateFile {
        StateFile { path: folder.join(NAME), period, simulation }
    }

    /// Creates the adaptation in the period `now`, with what the file has. The other value is what was wrong with it.
    pub(super) fn load(&self, options: ThresholdOptions, now: Period) -> (Adaptation, Option<StateError>) {
        match self.read() {
            Ok(Some(state)) => {
                let curves = state.curves.into_iter().filter_map(|curve| self.curve(curve));
                let is_same = state.period_ns == self.period.0;
                let periods = state.periods.into_iter().filter(|_| is_same).filter_map(observation);
                (Adaptation::restore(options, now, curves, periods), None)
            }
            Ok(None) => (Adaptation::new(options, now), None),
            Err(error) => (Adaptation::new(options, now), Some(error)),
        }
    }

    /// Reads the file; `None` if there is none.
    fn read(&self) -> Result<Option<State>, StateError> {
        let path = &self.path;
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StateError::Io { path: path.clone(), source }),
        };
        let damaged = |reason: String| {
            let aside = path.with_extension("json.damaged");
            let _ = std::fs::rename(path, &aside);
            StateError::Damaged { path: path.clone(), reason, aside }
        };
        let state: State = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        match state.version {
            VERSION => Ok(Some(state)),
            other => Err(damaged(format!("version {other}, expected {VERSION}"))),
        }
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// If it cannot be written. The old one is kept then.
    pub(super) fn save(&self, adaptation: &Adaptation) -> io::Result<()> {
        let curves = adaptation.curves().map(|(curve, used)| self.curve_state(curve, used));
        let state = State {
            version: VERSION,
            period_ns: self.period.0,
            curves: curves.collect(),
            periods: adaptation.observations().map(period_state).collect(),
        };
        let part = self.path.with_extension("json.part");
        let mut file = File::create(&part)?;
        file.write_all(&serde_json::to_vec(&state)?)?;
        file.sync_all()?;
        std::fs::rename(&part, &self.path)?;
        File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }

    fn curve_state(&self, curve: &LossCurve, used: Period) -> CurveState {
        CurveState {
            mean_rate_bps: curve.tag.mean_rate.0,
            burstiness: curve.tag.burstiness,
            seconds: curve.seconds,
            used: used.0,
            simulation: self.simulation.clone(),
            points: curve.points.iter().map(|point| (point.rate.0, point.loss, point.error)).collect(),
        }
    }

    /// Returns a curve, unless it is of another simulation.
    fn curve(&self, state: CurveState) -> Option<(LossCurve, Period)> {
        let is_same = state.simulation == self.simulation;
        let points = state.points.into_iter();
        let points = points.map(|(rate, loss, error)| LossPoint { rate: BitRate(rate), loss, error });
        let tag = Tag { mean_rate: BitRate(state.mean_rate_bps), burstiness: state.burstiness };
        let curve = LossCurve { tag, points: points.collect(), seconds: state.seconds };
        (is_same && !curve.points.is_empty()).then_some((curve, Period(state.used)))
    }
}

fn period_state((period, observation): (Period, Observation)) -> PeriodState {
    let Observation { outcome, .. } = observation;
    let (tag, threshold) = (outcome.tag(), outcome.threshold());
    PeriodState {
        period: period.0,
        outcome: outcome.name().to_owned(),
        mean_rate_bps: tag.map(|tag| tag.mean_rate.0),
        burstiness: tag.map(|tag| tag.burstiness),
        threshold_bps: threshold.map(|threshold| threshold.rate.0),
        is_acceptable: threshold.map(|threshold| threshold.is_acceptable),
        forecast_bps: observation.forecast.map(|rate| rate.0),
        previous_bps: observation.previous.map(|rate| rate.0),
    }
}

/// Returns a period; `None` if it lacks what its outcome needs.
fn observation(state: PeriodState) -> Option<(Period, Observation)> {
    let tag = || Some(Tag { mean_rate: BitRate(state.mean_rate_bps?), burstiness: state.burstiness? });
    let outcome = match &*state.outcome {
        "waiting" => Outcome::Waiting(tag()?),
        "unknown" => Outcome::Unknown(tag()?),
        "known" => {
            let threshold =
                Threshold { rate: BitRate(state.threshold_bps?), is_acceptable: state.is_acceptable? };
            Outcome::Known(tag()?, threshold)
        }
        name => Outcome::Unusable(Unusable::ALL.into_iter().find(|reason| reason.name() == name)?),
    };
    let (forecast, previous) = (state.forecast_bps.map(BitRate), state.previous_bps.map(BitRate));
    Some((Period(state.period), Observation { outcome, forecast, previous }))
}

#[cfg(test)]
mod tests {
    use thalweg_control::threshold::tag::Tolerance;
    use thalweg_control::threshold::{Input, Reason};

    use super::*;

    const HOUR: Nanos = Nanos::from_secs(3_600);

    fn file(folder: &Path, period: Nanos, simulation: &str) -> StateFile {
        StateFile::new(folder, period, simulation.to_owned())
    }

    fn options() -> ThresholdOptions {
        ThresholdOptions {
            link_rate: BitRate(1_000),
            acceptable_loss: 0.01,
            tolerance: Tolerance { rate: BitRate(10), burstiness: 0.1 },
            fallback: BitRate(50),
            lowest: BitRate(10),
            alpha: 0.1,
            days: 14,
            curves: 8,
            waiting: 4,
        }
    }

    /// An adaptation that knows a threshold of 300 in period 100, and waits for period 101.
    fn adaptation() -> Adaptation {
        let mut adaptation = Adaptation::new(options(), Period(100));
        let tag = |rate| Tag { mean_rate: BitRate(rate), burstiness: 0.3 };
        adaptation.handle(Period(101), Input::Recorded(Period(100), tag(200)));
        let points = vec![LossPoint { rate: BitRate(300), loss: 1.0 / 3e3, error: 1e-5 }];
        let curve = LossCurve { tag: tag(200), points, seconds: 3_600.0 };
        adaptation.handle(Period(101), Input::Simulated(Period(100), curve));
        adaptation.handle(Period(102), Input::Recorded(Period(101), tag(400)));
        adaptation.handle(Period(103), Input::Unusable(Period(102), Unusable::Lost));
        adaptation
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(folder.path(), HOUR, "tcp");
        let (empty, error) = file.load(options(), Period(100));
        assert!(empty.curves().len() == 0 && error.is_none());
        let before = adaptation();
        file.save(&before).unwrap();
        let (after, error) = file.load(options(), Period(103));
        assert!(error.is_none(), "{error:?}");
        assert_eq!(after.observations().collect::<Vec<_>>(), before.observations().collect::<Vec<_>>());
        assert_eq!(after.curves().collect::<Vec<_>>(), before.curves().collect::<Vec<_>>());
        assert_eq!(after.decision(), before.decision());
        assert_eq!(after.waiting(), 1);
    }

    #[test]
    fn a_file_of_an_earlier_version_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(folder.path(), HOUR, "tcp");
        file.save(&adaptation()).unwrap();
        let text = std::fs::read_to_string(&file.path).unwrap();
        assert!(text.contains(r#","previous_bps":300"#), "{text}");
        std::fs::write(&file.path, text.replace(r#","previous_bps":300"#, "")).unwrap();
        let (after, error) = file.load(options(), Period(103));
        assert!(error.is_none() && after.observations().all(|(_, it)| it.previous.is_none()), "{error:?}");
        assert_eq!(after.curves().len(), 1);
    }

    #[test]
    fn what_does_not_hold_for_another_simulation_or_period_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        file(folder.path(), HOUR, "tcp").save(&adaptation()).unwrap();
        let (after, _) = file(folder.path(), HOUR, "rounds").load(options(), Period(103));
        assert_eq!((after.curves().len(), after.observations().len()), (0, 3));
        assert!(matches!(after.decision().reason, Reason::Equation(_)));
        let minute = Nanos::from_secs(60);
        let (after, _) = file(folder.path(), minute, "tcp").load(options(), Period(103));
        assert_eq!((after.curves().len(), after.observations().len()), (1, 0));
    }

    #[test]
    fn a_damaged_file_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(folder.path(), HOUR, "tcp");
        file.save(&adaptation()).unwrap();
        let text = std::fs::read(&file.path).unwrap();
        let newer = String::from_utf8(text.clone()).unwrap().replace("\"version\":1", "\"version\":2");
        for (contents, expected) in [(&text[..text.len() / 2], "EOF"), (newer.as_bytes(), "version 2")] {
            std::fs::write(&file.path, contents).unwrap();
            let (after, error) = file.load(options(), Period(103));
            let error = error.unwrap().to_string();
            assert!(error.contains(expected) && error.contains("threshold.json.damaged"), "{error}");
            assert_eq!(after.curves().len(), 0);
            assert!(!file.path.exists());
        }
    }
}
