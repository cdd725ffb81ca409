//! Adaptation of the rate threshold R to the traffic (Maji, dissertation, University of Virginia 2018, sections 3.2 and 4.2:
//! the traffic analysis module of CFTES).
//!
//! The background traffic of each [period] is recorded and summarised as a [tag]. If the [library] has
//! [loss curves](loss_curve) of similar traffic, the period's threshold is the largest rate with an acceptable loss. Otherwise
//! a simulation of the recorded packets finds a curve. The tag of the coming period is [forecast](mod@forecast) from those of
//! earlier periods, and its threshold is that of this tag.
//!
//! **Noise.** Loss is rare: that of one hour is mostly chance. So curves of similar traffic are pooled, and as long as the pooled
//! loss does not [settle](library::Pool::is_settled) the threshold, more recordings of such traffic are simulated, one at a
//! time and only if no new traffic waits. Thresholds of earlier periods are derived again after each simulation.
//!
//! | module | contents |
//! |---|---|
//! | [`period`] | T2, an hour by default |
//! | [`tag`] | mean rate and burstiness |
//! | [`loss_curve`] | loss by rate, and the threshold that follows |
//! | [`library`] | loss curves by tag, pooled |
//! | [`mod@forecast`] | the tag of the coming period |
//! | [`equation`] | equation 3.2, which needs no simulation |
//! | [`regulator`] | lowers R if the router counts more loss than is acceptable |
//!
//! **Order of preference** ([`Reason`]): the tag of the same period of earlier days; that of the latest period of the last day;
//! equation 3.2, if traffic is known but no curve is near; the configured threshold.
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

use forecast::{Basis, Forecast, forecast};
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
    /// The threshold of the latest period, as known when that forecast was made.
    pub previous: Option<BitRate>,
}

/// Why R is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The same period on so many earlier days.
    Days(usize),
    /// The latest period that was recorded.
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

/// How far forecasts were off: means of |forecast / threshold - 1| over the periods where both are known. The threshold is that
/// of the period's own traffic by all curves that are known by now, so that the noise of a single simulation is no error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForecastErrors {
    /// Of the forecasts.
    pub forecast: f64,
    /// Of the threshold of the previous period, taken as forecast at the same time.
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
    /// Of those, the ones whose simulation has begun, because the curves did not settle the threshold.
    pub refined: u64,
    /// Simulations that finished.
    pub simulated: u64,
    /// Simulations that failed.
    pub failed: u64,
    /// Periods that were not simulated, because too many waited.
    pub skipped: u64,
}

/// What the library has for a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// No curve.
    Nothing,
    /// Curves of which more could change the threshold.
    Unsettled,
    /// Enough curves.
    Settled,
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
    /// The latest recorded period whose threshold is known, but not settled. It is simulated if nothing waits.
    unsettled: Option<Period>,
    commands: VecDeque<Command>,
    decision: Decision,
    /// The first forecast for the current period, and the threshold of the latest one at that time.
    forecast: Option<(BitRate, Option<BitRate>)>,
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
            unsettled: None,
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
                let found = self.look_up(period, tag, true);
                self.counters.matched += u64::from(found != Found::Nothing);
                match found {
                    Found::Nothing => {}
                    Found::Settled => self.commands.push_back(Command::Discard(period)),
                    Found::Unsettled => self.keep(period),
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
                // It may hold for others that wait, and it changes what similar curves say.
                for (period, tag) in self.tags() {
                    let is_found = self.look_up(period, tag, false) != Found::Nothing;
                    if is_found && self.waiting.contains(&period) {
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
        self.waiting.len() + usize::from(self.unsettled.is_some())
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
            Some((error(observation.forecast?, rate), error(observation.previous?, rate)))
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

    /// Returns the latest threshold of the last day that is known.
    fn latest_threshold(&self, now: Period) -> Option<BitRate> {
        let earliest = Period(now.0.saturating_sub(PERIODS_PER_DAY));
        let latest = self.observations.range(earliest..now).rev();
        latest.filter_map(|(_, observation)| observation.outcome.threshold()).map(|it| it.rate).next()
    }

    fn observe(&mut self, period: Period, outcome: Outcome) {
        let earlier = self.observations.get(&period);
        let (forecast, previous) = match (period == self.decision.period, earlier) {
            (true, _) => (self.forecast.map(|(rate, _)| rate), self.forecast.and_then(|(_, latest)| latest)),
            (false, Some(earlier)) => (earlier.forecast, earlier.previous),
            (false, None) => (None, None),
        };
        self.observations.insert(period, Observation { outcome, forecast, previous });
    }

    /// Derives the threshold of a period from the library. Otherwise the period waits for its simulation if `waits`. Returns
    /// what was found.
    fn look_up(&mut self, period: Period, tag: Tag, waits: bool) -> Found {
        let acceptable_loss = self.options.acceptable_loss;
        let pool = self.library.find(&tag, &self.options.tolerance, period);
        let (outcome, found) = match pool {
            Some(pool) => (
                Outcome::Known(tag, pool.curve.threshold(acceptable_loss)),
                match pool.is_settled(acceptable_loss) {
                    true => Found::Settled,
                    false => Found::Unsettled,
                },
            ),
            None if waits => {
                self.wait(period);
                (Outcome::Waiting(tag), Found::Nothing)
            }
            None => match self.waiting.contains(&period) {
                true => (Outcome::Waiting(tag), Found::Nothing),
                false => (Outcome::Unknown(tag), Found::Nothing),
            },
        };
        if let Some(observation) = self.observations.get_mut(&period) {
            observation.outcome = outcome;
        }
        found
    }

    /// Keeps a recording for a simulation when nothing waits, instead of that of an earlier period.
    fn keep(&mut self, period: Period) {
        if let Some(earlier) = self.unsettled.replace(period) {
            self.commands.push_back(Command::Discard(earlier));
        }
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

    /// Returns the tags of all periods, the oldest first.
    fn tags(&self) -> Vec<(Period, Tag)> {
        let tags = self.observations.iter();
        tags.filter_map(|(period, observation)| Some((*period, observation.outcome.tag()?))).collect()
    }

    fn simulate_next(&mut self) {
        if self.is_simulating {
            return;
        }
        if self.waiting.is_empty()
            && let Some(period) = self.unsettled.take()
        {
            self.counters.refined += 1;
            self.waiting.push_back(period);
        }
        if let Some(period) = self.waiting.front() {
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
        if let Some(period) = self.unsettled.take_if(|period| !is_kept(*period)) {
            self.commands.push_back(Command::Discard(period));
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
        let (rate, reason) = match (self.forecast_threshold(now), equation) {
            (Some((rate, Basis::Days(days))), _) => (rate, Reason::Days(days)),
            (Some((rate, Basis::Latest(period))), _) => (rate, Reason::Latest(period)),
            (None, Some((period, rate))) => (rate, Reason::Equation(period)),
            (None, None) => (self.options.fallback, Reason::Configured),
        };
        let rate = rate.clamp(self.options.lowest, self.options.link_rate.max(self.options.lowest));
        self.decision = Decision { period: now, rate, reason, equation: equation.map(|(_, rate)| rate) };
        if matches!(reason, Reason::Days(_) | Reason::Latest(_)) {
            let latest = self.latest_threshold(now);
            self.forecast.get_or_insert((rate, latest));
        }
    }

    /// Forecasts the tag of the period `now`, and returns the threshold of such traffic.
    fn forecast_threshold(&self, now: Period) -> Option<(BitRate, Basis)> {
        let part = |of: fn(Tag) -> f64| -> Option<Forecast> {
            forecast(now, self.options.days, |period| {
                Some(of(self.observations.get(&period)?.outcome.tag()?))
            })
        };
        let mean_rate = part(|tag| tag.mean_rate.0 as f64)?;
        let burstiness = part(|tag| tag.burstiness)?.value;
        let tag = Tag { mean_rate: BitRate(mean_rate.value.round() as u64), burstiness };
        let pool = self.library.nearest(&tag, &self.options.tolerance)?;
        Some((pool.curve.threshold(self.options.acceptable_loss).rate, mean_rate.basis))
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
