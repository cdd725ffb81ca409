//! Adaptation of the rate threshold R to the traffic (Maji, dissertation, University of Virginia 2018, sections 3.2 and 4.2:
//! the traffic analysis module of CFTES).
//!
//! The background traffic of each [period](period) is recorded and summarised as a [tag](tag). If the [library](library) has a
//! [loss curve](loss_curve) for similar traffic, the period's threshold is the largest rate with an acceptable loss. Otherwise
//! a simulation of the recorded packets finds a curve. The threshold of the coming period is [forecast](forecast) from those
//! of earlier periods.
//!
//! | module | contents |
//! |---|---|
//! | [`period`] | T2, an hour by default |
//! | [`tag`] | mean rate and burstiness |
//! | [`loss_curve`] | loss by rate, and the threshold that follows |
//! | [`library`] | loss curves by tag |
//! | [`forecast`] | the threshold of the coming period |
//! | [`equation`] | equation 3.2, which needs no simulation |
//! | [`regulator`] | lowers R if the router counts more loss than is acceptable |
//!
//! **Order of preference** ([`Reason`]): the same period of earlier days; the latest period of the last day; equation 3.2,
//! if traffic is known but its simulation is not finished; the configured threshold.
//!
//! **Pure.** Inputs and time go in, commands and R come out. **Bounded.** Curves, periods and waiting simulations have
//! limits; what exceeds them is the oldest, and is counted.

pub mod equation;
pub mod forecast;
pub mod library;
pub mod loss_curve;
pub mod period;
pub mod regulator;
pub mod tag;

use std::collections::{BTreeMap, VecDeque};

use thalweg_wire::BitRate;

use forecast::{Basis, forecast};
use library::Library;
use loss_curve::{LossCurve, Threshold};
use period::{PERIODS_PER_DAY, Period};
use tag::{Tag, Tolerance};

/// Options of the adaptation.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdOptions {
    /// The rate of the link: C.
    pub link_rate: BitRate,
    /// The acceptable loss of the background traffic, a share of its packets: l_acpt.
    pub acceptable_loss: f64,
    /// How far apart the tags of similar traffic may be.
    pub tolerance: Tolerance,
    /// R before anything is known.
    pub fallback: BitRate,
    /// The lowest R, above 0.
    pub lowest: BitRate,
    /// Alpha of equation 3.2 for a burstiness of 1.
    pub alpha: f64,
    /// How many days are kept.
    pub days: u64,
    /// How many loss curves are kept.
    pub curves: usize,
    /// How many recorded periods may wait for their simulation.
    pub waiting: usize,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Nothing but time.
    Tick,
    /// A period ended and was recorded completely.
    Recorded(Period, Tag),
    /// A period ended, and its recording is of no use.
    Unusable(Period, Unusable),
    /// The simulation of a period has finished. The curve's tag is that of the period.
    Simulated(Period, LossCurve),
    /// The simulation of a period failed, or its recording is gone.
    NotSimulated(Period),
}

/// Why the recording of a period is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The collector did not run for the whole period.
    Incomplete,
    /// Packets were dropped before they were read, or their source was reopened.
    Dropped,
    /// Packets found the queue to the recorder full.
    Lost,
    /// The clock stepped.
    ClockStepped,
    /// There were too few packets for a burstiness.
    Idle,
    /// The recording could not be written.
    NotWritten,
}

impl Unusable {
    /// All reasons.
    pub const ALL: [Unusable; 6] = [
        Unusable::Incomplete,
        Unusable::Dropped,
        Unusable::Lost,
        Unusable::ClockStepped,
        Unusable::Idle,
        Unusable::NotWritten,
    ];

    /// Returns the name used in API and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Unusable::Incomplete => "incomplete",
            Unusable::Dropped => "dropped",
            Unusable::Lost => "lost",
            Unusable::ClockStepped => "clock_stepped",
            Unusable::Idle => "idle",
            Unusable::NotWritten => "not_written",
        }
    }
}

/// What the caller must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Simulate the recording of a period, and answer with [`Input::Simulated`] or [`Input::NotSimulated`].
    Simulate(Period),
    /// Delete the recording of a period.
    Discard(Period),
}

/// What is known of a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// Its recording is of no use.
    Unusable(Unusable),
    /// It waits for its simulation.
    Waiting(Tag),
    /// Its simulation failed, or too many waited.
    Unknown(Tag),
    /// Its threshold, from the curve of its own simulation or of similar traffic.
    Known(Tag, Threshold),
}

impl Outcome {
    /// Returns the name used in the API and in the stored state.
    pub const fn name(&self) -> &'static str {
        match self {
            Outcome::Unusable(reason) => reason.name(),
            Outcome::Waiting(_) => "waiting",
            Outcome::Unknown(_) => "unknown",
            Outcome::Known(..) => "known",
        }
    }

    /// Returns the tag; `None` if the recording is of no use.
    pub const fn tag(&self) -> Option<Tag> {
        match self {
            Outcome::Unusable(_) => None,
            Outcome::Waiting(tag) | Outcome::Unknown(tag) | Outcome::Known(tag, _) => Some(*tag),
        }
    }

    /// Returns the threshold, if it is known.
    pub const fn threshold(&self) -> Option<Threshold> {
        match self {
            Outcome::Known(_, threshold) => Some(*threshold),
            _ => None,
        }
    }
}

/// A period that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// What is known of it.
    pub outcome: Outcome,
    /// What was first forecast for it.
    pub forecast: Option<BitRate>,
}

/// Why R is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The same period on so many earlier days.
    Days(usize),
    /// The latest period whose threshold is known.
    Latest(Period),
    /// Equation 3.2 with the tag of this period.
    Equation(Period),
    /// Nothing is known.
    Configured,
}

impl Reason {
    /// Returns the name used in API and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Days(_) => "days",
            Reason::Latest(_) => "latest",
            Reason::Equation(_) => "equation",
            Reason::Configured => "configured",
        }
    }
}

/// The threshold of a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The period for which it holds.
    pub period: Period,
    /// R.
    pub rate: BitRate,
    /// Why.
    pub reason: Reason,
    /// What equation 3.2 gives, if the tag of a period of the last day is known.
    pub equation: Option<BitRate>,
}

/// How far forecasts were off: means of |forecast / threshold - 1| over the periods where both are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForecastErrors {
    /// Of the forecasts.
    pub forecast: f64,
    /// Of the threshold of the previous period, taken as forecast.
    pub previous: f64,
    /// The number of periods.
    pub periods: usize,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThresholdCounters {
    /// Periods that were recorded completely.
    pub recorded: u64,
    /// Periods whose recording was of no use, in the order of [`Unusable::ALL`].
    pub unusable: [u64; Unusable::ALL.len()],
    /// Periods for which the library had a curve.
    pub matched: u64,
    /// Simulations that finished.
    pub simulated: u64,
    /// Simulations that failed.
    pub failed: u64,
    /// Periods that were not simulated, because too many waited.
    pub skipped: u64,
}

/// The adaptation.
#[derive(Clone, Debug)]
pub struct Adaptation {
    options: ThresholdOptions,
    library: Library,
    observations: BTreeMap<Period, Observation>,
    /// Recorded periods without a threshold, the oldest first. The first is being simulated.
    waiting: VecDeque<Period>,
    is_simulating: bool,
    commands: VecDeque<Command>,
    decision: Decision,
    /// The first forecast for the current period.
    forecast: Option<BitRate>,
    counters: ThresholdCounters,
}

impl Adaptation {
    /// Creates an adaptation that knows nothing, in the period `now`.
    pub fn new(options: ThresholdOptions, now: Period) -> Adaptation {
        Adaptation::restore(options, now, [], [])
    }

    /// Creates an adaptation with what an earlier run knew. Thresholds are derived again, so the acceptable loss may have changed.
    pub fn restore(
        options: ThresholdOptions,
        now: Period,
        curves: impl IntoIterator<Item = (LossCurve, Period)>,
        observations: impl IntoIterator<Item = (Period, Observation)>,
    ) -> Adaptation {
        let rate = options.fallback;
        let mut adaptation = Adaptation {
            library: Library::new(options.curves),
            options,
            observations: observations.into_iter().collect(),
            waiting: VecDeque::new(),
            is_simulating: false,
            commands: VecDeque::new(),
            decision: Decision { period: now, rate, reason: Reason::Configured, equation: None },
            forecast: None,
            counters: ThresholdCounters::default(),
        };
        curves.into_iter().for_each(|(curve, used)| adaptation.library.add(curve, used));
        let periods: Vec<(Period, Outcome)> = adaptation
            .observations
            .iter()
            .map(|(period, observation)| (*period, observation.outcome))
            .collect();
        for (period, outcome) in periods {
            if let Some(tag) = outcome.tag() {
                adaptation.look_up(period, tag, matches!(outcome, Outcome::Waiting(_)));
            }
        }
        adaptation.forget(now);
        adaptation.begin(now);
        adaptation
    }

    /// Handles an input in the period `now`.
    pub fn handle(&mut self, now: Period, input: Input) {
        match input {
            Input::Tick => {}
            Input::Recorded(period, tag) => {
                self.counters.recorded += 1;
                self.observe(period, Outcome::Waiting(tag));
                let is_known = self.look_up(period, tag, true);
                self.counters.matched += u64::from(is_known);
                if is_known {
                    self.commands.push_back(Command::Discard(period));
                }
            }
            Input::Unusable(period, reason) => {
                let place = Unusable::ALL.iter().position(|other| *other == reason).unwrap_or_default();
                self.counters.unusable[place] += 1;
                self.observe(period, Outcome::Unusable(reason));
                self.commands.push_back(Command::Discard(period));
            }
            Input::Simulated(period, curve) => {
                self.counters.simulated += 1;
                self.library.add(curve, period);
                self.finish(period);
                // It may hold for others that wait.
                for (period, tag) in self.waiting_tags() {
                    if self.look_up(period, tag, false) {
                        self.waiting.retain(|other| *other != period);
                        self.commands.push_back(Command::Discard(period));
                    }
                }
            }
            Input::NotSimulated(period) => {
                self.counters.failed += 1;
                self.finish(period);
            }
        }
        if now != self.decision.period {
            self.forget(now);
            self.begin(now);
        } else {
            self.decide(now);
        }
        self.simulate_next();
    }

    /// Returns the next command, if any.
    pub fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// Returns R, and why.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Returns the options.
    pub fn options(&self) -> &ThresholdOptions {
        &self.options
    }

    /// Returns what is known of periods, the oldest first.
    pub fn observations(&self) -> impl ExactSizeIterator<Item = (Period, Observation)> {
        self.observations.iter().map(|(period, observation)| (*period, *observation))
    }

    /// Returns the loss curves, each with the last period that used it.
    pub fn curves(&self) -> impl ExactSizeIterator<Item = (&LossCurve, Period)> {
        self.library.curves()
    }

    /// Returns how many recorded periods wait for a simulation, including the one that runs.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the counters.
    pub fn counters(&self) -> ThresholdCounters {
        self.counters
    }

    /// Returns the mean errors of forecasts; `None` without any.
    pub fn forecast_errors(&self) -> Option<ForecastErrors> {
        let error = |forecast: BitRate, rate: BitRate| (forecast.0 as f64 / rate.0.max(1) as f64 - 1.0).abs();
        let errors = self.observations.iter().filter_map(|(period, observation)| {
            let rate = self.threshold(*period)?;
            Some((error(observation.forecast?, rate), error(self.threshold(period.previous())?, rate)))
        });
        let (mut sums, mut periods) = ((0.0, 0.0), 0);
        for (forecast, previous) in errors {
            (sums, periods) = ((sums.0 + forecast, sums.1 + previous), periods + 1);
        }
        let mean = |sum: f64| sum / periods as f64;
        (periods > 0).then(|| ForecastErrors { forecast: mean(sums.0), previous: mean(sums.1), periods })
    }

    /// Returns the threshold of a period that has ended.
    fn threshold(&self, period: Period) -> Option<BitRate> {
        Some(self.observations.get(&period)?.outcome.threshold()?.rate)
    }

    fn observe(&mut self, period: Period, outcome: Outcome) {
        let forecast = match period == self.decision.period {
            true => self.forecast,
            false => self.observations.get(&period).and_then(|observation| observation.forecast),
        };
        self.observations.insert(period, Observation { outcome, forecast });
    }

    /// Derives the threshold of a period from the library. Otherwise the period waits for its simulation if `waits`. Returns
    /// whether the threshold is known.
    fn look_up(&mut self, period: Period, tag: Tag, waits: bool) -> bool {
        let curve = self.library.find(&tag, &self.options.tolerance, period);
        let outcome = match curve.map(|curve| curve.threshold(self.options.acceptable_loss)) {
            Some(threshold) => Outcome::Known(tag, threshold),
            None if waits => {
                self.wait(period);
                Outcome::Waiting(tag)
            }
            None => match self.waiting.contains(&period) {
                true => Outcome::Waiting(tag),
                false => Outcome::Unknown(tag),
            },
        };
        if let Some(observation) = self.observations.get_mut(&period) {
            observation.outcome = outcome;
        }
        matches!(outcome, Outcome::Known(..))
    }

    fn wait(&mut self, period: Period) {
        // The first is being simulated.
        let first = usize::from(self.is_simulating);
        if self.waiting.len() >= self.options.waiting.max(1) + first
            && let Some(skipped) = self.waiting.remove(first)
        {
            self.counters.skipped += 1;
            self.give_up(skipped);
        }
        self.waiting.push_back(period);
    }

    /// Ends the simulation of a period.
    fn finish(&mut self, period: Period) {
        if self.waiting.front() == Some(&period) {
            self.waiting.pop_front();
            self.is_simulating = false;
        }
        self.give_up(period);
    }

    /// Discards a recording. The threshold may be known by now.
    fn give_up(&mut self, period: Period) {
        if let Some(Observation { outcome: Outcome::Waiting(tag), .. }) = self.observations.get(&period) {
            self.look_up(period, *tag, false);
        }
        self.commands.push_back(Command::Discard(period));
    }

    fn waiting_tags(&self) -> Vec<(Period, Tag)> {
        let tag = |period: &Period| match self.observations.get(period)?.outcome {
            Outcome::Waiting(tag) => Some((*period, tag)),
            _ => None,
        };
        self.waiting.iter().skip(usize::from(self.is_simulating)).filter_map(tag).collect()
    }

    fn simulate_next(&mut self) {
        if !self.is_simulating
            && let Some(period) = self.waiting.front()
        {
            self.commands.push_back(Command::Simulate(*period));
            self.is_simulating = true;
        }
    }

    /// Forgets periods that are too old, or later than now because the clock stepped back.
    fn forget(&mut self, now: Period) {
        let oldest = Period(now.0.saturating_sub(self.options.days * PERIODS_PER_DAY));
        let is_kept = |period: Period| period >= oldest && period <= now;
        let is_simulating = self.waiting.front().copied().filter(|_| self.is_simulating);
        for period in std::mem::take(&mut self.waiting) {
            match is_kept(period) || is_simulating == Some(period) {
                true => self.waiting.push_back(period),
                false => self.commands.push_back(Command::Discard(period)),
            }
        }
        let waiting = &self.waiting;
        self.observations.retain(|period, _| is_kept(*period) || waiting.contains(period));
    }

    /// Begins a period.
    fn begin(&mut self, now: Period) {
        self.forecast = None;
        self.decide(now);
    }

    /// Decides on R for the period `now`.
    fn decide(&mut self, now: Period) {
        let equation = self.equation(now);
        let forecast = forecast(now, self.options.days, |period| self.threshold(period));
        let (rate, reason) = match (forecast, equation) {
            (Some(forecast), _) => (
                forecast.rate,
                match forecast.basis {
                    Basis::Days(days) => Reason::Days(days),
                    Basis::Latest(period) => Reason::Latest(period),
                },
            ),
            (None, Some((period, rate))) => (rate, Reason::Equation(period)),
            (None, None) => (self.options.fallback, Reason::Configured),
        };
        let rate = rate.clamp(self.options.lowest, self.options.link_rate.max(self.options.lowest));
        self.decision = Decision { period: now, rate, reason, equation: equation.map(|(_, rate)| rate) };
        if matches!(reason, Reason::Days(_) | Reason::Latest(_)) {
            self.forecast.get_or_insert(rate);
        }
    }

    /// Returns what equation 3.2 gives for the latest tag of the last day, and the period of that tag.
    fn equation(&self, now: Period) -> Option<(Period, BitRate)> {
        let earliest = Period(now.0.saturating_sub(PERIODS_PER_DAY));
        self.observations.range(earliest..now).rev().find_map(|(period, observation)| {
            let tag = observation.outcome.tag()?;
            Some((*period, equation::threshold(&tag, self.options.link_rate, self.options.alpha)))
        })
    }
}

#[cfg(test)]
mod tests;
