//! Drives the adaptation: passes blocks to the recorder, what it finds to the decisions, and carries out their commands.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, never};
use thalweg_control::threshold::period::Period;
use thalweg_control::threshold::{Adaptation, Command, Decision, Input, Outcome};
use thalweg_linux::clock::realtime;
use thalweg_wire::BitRate;

use super::Threshold;
use super::recorder::Recorder;
use super::regulated::Regulated;
use super::report::{RecordingReport, SimulationReport, ThresholdReport};
use super::simulation::{Progress, Simulator, recorded};
use super::state_file::StateFile;
use crate::collectors::CollectorList;
use crate::collectors::background::Block;
use crate::lifecycle::Lifecycle;

/// Interval at which R is applied and the report renewed. Also the longest time before a stop is noticed.
const TICK: Duration = Duration::from_millis(200);

/// Maximum number of blocks to handle before time advances.
const BLOCKS_PER_TICK: usize = 256;

/// The driver of the adaptation.
pub(super) struct Driver {
    threshold: Threshold,
    blocks: Receiver<Block>,
    collectors: CollectorList,
    lifecycle: Lifecycle,
    recorder: Recorder,
    simulator: Simulator,
    progress: Arc<Progress>,
    state_file: StateFile,
    adaptation: Adaptation,
    regulated: Option<Regulated>,
    /// R as it applies.
    rate: BitRate,
    /// The decision that was logged last.
    logged: Option<Decision>,
    error: Option<String>,
}

impl Driver {
    /// Loads the state of an earlier run.
    ///
    /// # Errors
    /// If the directory cannot be created, or a thread cannot be started.
    pub(super) fn begin(
        threshold: Threshold,
        blocks: Receiver<Block>,
        collectors: CollectorList,
        lifecycle: Lifecycle,
        regulated: Option<Regulated>,
    ) -> std::io::Result<Driver> {
        let config = threshold.config();
        let folder = &config.recorder.folder;
        let named = |error| std::io::Error::other(format!("threshold.folder: {}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(named)?;
        let recorder = Recorder::new(config.recorder.clone());
        let now = now(&threshold, &recorder);
        let state_file = StateFile::new(folder, config.recorder.period, config.simulation.to_string());
        let (adaptation, error) = state_file.load(config.options.clone(), now);
        let error = error.map(|error| error.to_string());
        if let Some(error) = &error {
            tracing::error!(error, "adaptation begins without what it knew");
        }
        remove_unknown(folder, &adaptation);
        let simulator = Simulator::start(folder, config.simulation.clone())?;
        let (progress, logged) = (simulator.progress(), None);
        Ok(Driver {
            threshold,
            blocks,
            collectors,
            lifecycle,
            recorder,
            simulator,
            progress,
            state_file,
            rate: adaptation.decision().rate,
            adaptation,
            regulated,
            logged,
            error,
        })
    }

    /// Runs until the daemon stops.
    pub(super) fn run(mut self) {
        let mut ticked = Instant::now();
        self.handle(vec![Input::Tick]);
        self.report();
        while !self.lifecycle.is_stopping() {
            let inputs = self.wait();
            if !inputs.is_empty() {
                self.handle(inputs);
                self.save();
            }
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                self.handle(vec![Input::Tick]);
                self.regulate();
                self.apply();
                self.report();
            }
        }
        self.recorder.stop();
        self.save();
    }

    /// Waits for blocks and results. Returns what they say about periods.
    fn wait(&mut self) -> Vec<Input> {
        let mut inputs = Vec::new();
        let first = crossbeam_channel::select! {
            recv(self.blocks) -> block => match block {
                Ok(block) => Some(block),
                Err(_) => {
                    // The collector has ended.
                    self.blocks = never();
                    None
                }
            },
            recv(self.simulator.results()) -> result => {
                inputs.extend(result);
                None
            }
            default(TICK) => None,
        };
        if let Some(first) = first {
            self.recorder.add(&first, &mut inputs);
            for _ in 1..BLOCKS_PER_TICK {
                let Ok(block) = self.blocks.try_recv() else { break };
                self.recorder.add(&block, &mut inputs);
            }
        }
        inputs
    }

    /// Passes inputs to the decisions, and carries out their commands.
    fn handle(&mut self, inputs: Vec<Input>) {
        let mut inputs = std::collections::VecDeque::from(inputs);
        while let Some(input) = inputs.pop_front() {
            log_input(&input);
            let now = now(&self.threshold, &self.recorder);
            self.adaptation.handle(now, input);
            while let Some(command) = self.adaptation.next_command() {
                inputs.extend(self.execute(command));
            }
        }
        self.log_decision();
    }

    fn execute(&self, command: Command) -> Option<Input> {
        let folder = &self.threshold.config().recorder.folder;
        match command {
            Command::Discard(period) => {
                let path = recorded(folder, period)?;
                if let Err(error) = std::fs::remove_file(&path) {
                    tracing::warn!(%error, file = %path.display(), "recording not deleted");
                }
                None
            }
            Command::Simulate(period) => {
                let observation = self.adaptation.observations().find(|(other, _)| *other == period);
                match observation.and_then(|(_, observation)| observation.outcome.tag()) {
                    Some(tag) if recorded(folder, period).is_some() => {
                        tracing::info!(period = period.0, "simulation of recorded traffic begins");
                        self.simulator.simulate(period, tag);
                        None
                    }
                    _ => Some(Input::NotSimulated(period)),
                }
            }
        }
    }

    /// Lowers R if the router counts too many losses.
    fn regulate(&mut self) {
        let base = self.adaptation.decision().rate;
        self.rate = self.regulated.as_mut().map_or(base, |regulated| regulated.advance(base));
    }

    /// Applies R to collectors that have another. A reload may have reset it.
    fn apply(&self) {
        let rate = self.rate;
        for name in &self.threshold.config().applies_to {
            if let Some(collector) = self.collectors.named(name)
                && collector.rate_threshold() != Some(rate)
                && let Err(error) = collector.set_rate_threshold(rate)
            {
                tracing::debug!(collector = &**name, %error, "threshold not applied yet");
            }
        }
    }

    fn save(&mut self) {
        self.error = match self.state_file.save(&self.adaptation) {
            Ok(()) => None,
            Err(error) => {
                tracing::error!(%error, "state of the adaptation not saved");
                Some(format!("state not saved: {error}"))
            }
        };
    }

    fn report(&self) {
        let adaptation = &self.adaptation;
        let recording = self.recorder.progress();
        let mut periods: Vec<_> = adaptation.observations().collect();
        periods.reverse();
        self.threshold.0.state.set(ThresholdReport {
            decision: adaptation.decision(),
            rate: self.rate,
            errors: adaptation.forecast_errors(),
            counters: adaptation.counters(),
            periods,
            curves: adaptation.curves().map(|(curve, used)| (curve.clone(), used)).collect(),
            recording: recording.map(|(period, packets, trouble)| RecordingReport {
                period,
                packets,
                trouble,
            }),
            simulation: self
                .progress
                .current()
                .map(|(period, progress)| SimulationReport { period, progress }),
            waiting: adaptation.waiting(),
            regulator: self.regulated.as_ref().map(Regulated::report),
            error: self.error.clone(),
        });
    }

    fn log_decision(&mut self) {
        let decision = self.adaptation.decision();
        let is_new = |logged: Decision| (logged.rate, logged.reason) != (decision.rate, decision.reason);
        if self.logged.is_none_or(is_new) {
            let (rate, reason) = (decision.rate.to_string(), decision.reason.name());
            let equation = decision.equation.map(|rate| rate.to_string());
            tracing::info!(rate, reason, equation, period = decision.period.0, "rate threshold");
            self.logged = Some(decision);
        }
    }
}

/// Returns the current period: by the clock for live sources, by the packets for others.
fn now(threshold: &Threshold, recorder: &Recorder) -> Period {
    let options = &threshold.config().recorder;
    let time = match options.is_live {
        true => realtime(),
        false => recorder.now(),
    };
    Period::at(time, options.period)
}

fn log_input(input: &Input) {
    match input {
        Input::Tick => {}
        Input::Recorded(period, tag) => {
            let (rate, burstiness) = (tag.mean_rate.to_string(), tag.burstiness);
            tracing::info!(period = period.0, rate, burstiness, "traffic recorded");
        }
        Input::Unusable(period, reason) => {
            tracing::warn!(period = period.0, reason = reason.name(), "recording of no use");
        }
        Input::Simulated(period, curve) => {
            tracing::info!(period = period.0, rates = curve.points.len(), "traffic simulated");
        }
        Input::NotSimulated(period) => tracing::warn!(period = period.0, "traffic not simulated"),
    }
}

/// Removes recordings of an earlier run that wait for nothing.
fn remove_unknown(folder: &Path, adaptation: &Adaptation) {
    let waiting: Vec<Period> = adaptation
        .observations()
        .filter(|(_, observation)| matches!(observation.outcome, Outcome::Waiting(_)))
        .map(|(period, _)| period)
        .collect();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let number = name.strip_suffix(".part").unwrap_or(name).strip_suffix(".parquet");
        let Some(period) = number.and_then(|number| number.parse().ok()).map(Period) else { continue };
        if (name.ends_with(".part") || !waiting.contains(&period))
            && let Err(error) = std::fs::remove_file(entry.path())
        {
            tracing::warn!(%error, file = %entry.path().display(), "recording not deleted");
        }
    }
}
