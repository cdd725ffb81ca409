//! Regulates the rate threshold R by the loss that a router counts (RQA; *Heavy-hitter* dissertation, University of Virginia 2018,
//! section 4.2): if the loss of the primary queue over the last N polls is above l_acpt, flows faster than others fill that
//! queue undetected, and R decreases by delta R.
//!
//! **Loss.** Drops divided by packets of the last N usable intervals, not the mean of N ratios. After each change of R the
//! window starts anew, so R changes at most once per window, and each decision sees traffic under the present R.
//!
//! **Down.** Real losses vary: the standard deviation of a window is 1.5 times its mean. A single window above l_acpt therefore
//! proves little. A cumulative sum (CUSUM; Page 1954, *Biometrika* 41) adds up by how much each window exceeds l_acpt, in units of l_acpt, and
//! never falls below 0. R decreases when the sum reaches `evidence`: at once if the loss is three times l_acpt, after four
//! windows at one and a half times. `evidence` 0 is the rule of the dissertation.
//!
//! **Up** (the dissertation has no rule). R increases by delta R, at most to the base, after `calm_windows` windows in which the
//! sum never reached `evidence`, if an upper bound of their loss is below `margin` times l_acpt. The bound is the higher of the
//! 95 % bound of a Poisson count, which needs 3 / (margin l_acpt) packets without any drop, and of the mean of k windows
//! with the standard deviation above: mean (1 + 1.645 * 1.5 / sqrt(k)).
//!
//! **No oscillation.** If R must decrease again after an increase, the next increase needs four times as many calm windows, up
//! to `max_calm_windows`. Two increases in a row halve the number. So at constant traffic the time between two attempts grows to a day.
//!
//! **No spiral.** Drops of a scavenger queue grow when R decreases. Only the loss of the primary queue counts;
//! a sum of both changes nothing ([`Measurement::SumOfQueues`]).
//!
//! Memory: a few hundred bytes and N intervals. No clock: an interval is one call.

use std::collections::VecDeque;
use std::fmt;

use thalweg_wire::BitRate;
use thiserror::Error;

/// Standard deviation of the loss of a window, in units of its mean.
const DISPERSION: f64 = 1.5;

/// The quantile of the normal distribution for 95 %.
const Z: f64 = 1.645;

/// A window with fewer expected drops than this counts as if it had them: one drop of a hundred packets proves nothing.
const MIN_EXPECTED_DROPS: f64 = 3.0;

/// Rounding errors of the cumulative sum.
const ROUNDING: f64 = 1e-9;

/// By how much the number of calm windows grows after a failed increase.
const BACK_OFF: u32 = 4;

/// Options of a [`Regulator`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegulatorOptions {
    /// l_acpt, the acceptable loss of the primary queue: above 0, at most 1.
    pub acceptable_loss: f64,
    /// Delta R.
    pub step: BitRate,
    /// The lowest R.
    pub floor: BitRate,
    /// The highest R.
    pub ceiling: BitRate,
    /// N, the number of intervals of a window.
    pub intervals: usize,
    /// Excess, in units of l_acpt and summed over windows, from which R decreases.
    pub evidence: f64,
    /// R increases only if the loss is below this share of l_acpt.
    pub margin: f64,
    /// Calm windows before the first increase.
    pub calm_windows: u32,
    /// The maximum number of calm windows before an increase.
    pub max_calm_windows: u32,
}

/// Why options are invalid.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("invalid {name} {value}: expected {expected}")]
pub struct RegulatorOptionsError {
    /// The option.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The accepted values.
    pub expected: &'static str,
}

/// What an interval says about the primary queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Measurement {
    /// Packets that arrived at the primary queue, and those that it dropped.
    Loss {
        /// Packets, including dropped ones.
        packets: u64,
        /// Dropped packets.
        drops: u64,
    },
    /// The router counts the drops of all queues together.
    SumOfQueues,
    /// Nothing, and why: `restarted`, `the poll failed (timeout)`.
    Unusable(String),
}

/// What a measurement has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// R.
    pub rate_threshold: BitRate,
    /// The change.
    pub change: Change,
    /// Its reason.
    pub reason: Reason,
    /// The loss of the window, if it is complete.
    pub loss: Option<f64>,
}

/// The change of R.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// R stays.
    Kept,
    /// R decreased.
    Lowered,
    /// R increased.
    Raised,
}

/// Why R changed or stays.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The window is incomplete.
    Collecting {
        /// Usable intervals so far.
        intervals: usize,
        /// Intervals of a window.
        of: usize,
    },
    /// The interval is unusable.
    Unusable(String),
    /// The loss of the primary queue is unknown: the router counts the drops of all queues together.
    SumOfQueues,
    /// The loss is above the acceptable one.
    Above,
    /// The loss is above the acceptable one, but not by enough evidence.
    Unproven,
    /// The loss is above the acceptable one, and R is at its floor.
    AtFloor,
    /// The loss is acceptable, and R waits for more calm windows.
    Calming {
        /// Calm windows so far.
        windows: u32,
        /// Calm windows that are needed.
        of: u32,
    },
    /// The loss is acceptable, but not surely low enough for an increase.
    TooClose,
    /// The loss is surely low enough for an increase.
    Low,
    /// The loss is acceptable, and R is at its base or ceiling.
    AtBase,
}

/// Regulates R.
#[derive(Clone, Debug)]
pub struct Regulator {
    options: RegulatorOptions,
    base: BitRate,
    /// By how much R is below the base.
    reduction: BitRate,
    /// Packets and drops of the intervals of the present window.
    window: VecDeque<(u64, u64)>,
    /// The cumulative sum.
    excess: f64,
    /// Windows since the last change or exceedance, their packets and drops.
    calm: Calm,
    /// Calm windows that the next increase needs.
    needed: u32,
    last_change: Change,
}

#[derive(Clone, Copy, Debug, Default)]
struct Calm {
    windows: u32,
    packets: u64,
    drops: u64,
}

impl Default for RegulatorOptions {
    /// A window of a minute with polls every 10 s.
    fn default() -> Self {
        RegulatorOptions {
            acceptable_loss: 1e-5,
            step: BitRate(5_000_000),
            floor: BitRate(5_000_000),
            ceiling: BitRate(u64::MAX),
            intervals: 6,
            evidence: 2.0,
            margin: 0.5,
            calm_windows: 6,
            max_calm_windows: 1_440,
        }
    }
}

impl RegulatorOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// The first option that is invalid.
    pub fn check(&self) -> Result<(), RegulatorOptionsError> {
        let wrong = |name, value: &dyn fmt::Display, expected| {
            Err(RegulatorOptionsError { name, value: value.to_string(), expected })
        };
        match () {
            () if !(self.acceptable_loss > 0.0 && self.acceptable_loss <= 1.0) => {
                wrong("acceptable loss", &self.acceptable_loss, "a share above 0 and at most 1")
            }
            () if self.step.0 == 0 => wrong("step", &self.step, "more than 0"),
            () if self.floor > self.ceiling => wrong("floor", &self.floor, "at most the ceiling"),
            () if self.intervals == 0 => wrong("number of intervals", &self.intervals, "at least 1"),
            () if !(self.evidence >= 0.0 && self.evidence.is_finite()) => {
                wrong("evidence", &self.evidence, "a number from 0")
            }
            () if !(self.margin > 0.0 && self.margin < 1.0) => {
                wrong("margin", &self.margin, "a share between 0 and 1, so that there is hysteresis")
            }
            () if self.calm_windows == 0 || self.calm_windows > self.max_calm_windows => {
                wrong("number of calm windows", &self.calm_windows, "from 1 to the maximum")
            }
            () => Ok(()),
        }
    }
}

impl Reason {
    /// Returns the name, as in events and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Reason::Collecting { .. } => "collecting",
            Reason::Unusable(_) => "unusable",
            Reason::SumOfQueues => "sum_of_queues",
            Reason::Above => "above",
            Reason::Unproven => "unproven",
            Reason::AtFloor => "at_floor",
            Reason::Calming { .. } => "calming",
            Reason::TooClose => "too_close",
            Reason::Low => "low",
            Reason::AtBase => "at_base",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Collecting { intervals, of } => write!(f, "{intervals} of {of} intervals of a window"),
            Reason::Unusable(why) => write!(f, "the interval is unusable: {why}"),
            Reason::SumOfQueues => f.write_str(
                "the router counts the drops of all queues together, so the loss of the primary queue is unknown; R is left alone",
            ),
            Reason::Above => f.write_str("the loss is above the acceptable loss"),
            Reason::Unproven => f.write_str("the loss is above the acceptable loss, which may be chance"),
            Reason::AtFloor => f.write_str("the loss is above the acceptable loss, and R is at its floor"),
            Reason::Calming { windows, of } => write!(f, "{windows} of {of} calm windows before an increase"),
            Reason::TooClose => f.write_str("the loss is acceptable, but an increase could exceed it"),
            Reason::Low => f.write_str("the loss is surely below the acceptable loss"),
            Reason::AtBase => f.write_str("the loss is acceptable, and R is not reduced"),
        }
    }
}

impl Regulator {
    /// Creates a regulator with R at the base, within floor and ceiling.
    ///
    /// # Errors
    /// If an option is invalid.
    pub fn new(options: RegulatorOptions, base: BitRate) -> Result<Regulator, RegulatorOptionsError> {
        options.check()?;
        Ok(Regulator {
            options,
            base,
            reduction: BitRate(0),
            window: VecDeque::new(),
            excess: 0.0,
            calm: Calm::default(),
            needed: options.calm_windows,
            last_change: Change::Kept,
        })
    }

    /// Returns R.
    pub fn rate_threshold(&self) -> BitRate {
        BitRate(self.top().0.saturating_sub(self.reduction.0)).clamp(self.options.floor, self.options.ceiling)
    }

    /// Returns the options.
    pub const fn options(&self) -> &RegulatorOptions {
        &self.options
    }

    /// Returns by how much R is below the base, within floor and ceiling.
    pub fn reduction(&self) -> BitRate {
        BitRate(self.top().0.saturating_sub(self.rate_threshold().0))
    }

    /// Sets the base, as for a new hour. R stays below it by the same amount. Returns R.
    pub fn set_base(&mut self, base: BitRate) -> BitRate {
        let before = self.rate_threshold();
        self.base = base;
        if self.rate_threshold() != before {
            self.start_anew();
        }
        self.rate_threshold()
    }

    /// Handles the measurement of one interval.
    pub fn observe(&mut self, measurement: Measurement) -> Step {
        match measurement {
            Measurement::Loss { packets, drops } => {
                self.window.push_back((packets, drops.min(packets)));
                let (intervals, of) = (self.window.len(), self.options.intervals);
                match intervals < of {
                    true => self.step(Change::Kept, Reason::Collecting { intervals, of }, None),
                    false => self.decide(),
                }
            }
            Measurement::SumOfQueues => {
                self.start_anew();
                self.step(Change::Kept, Reason::SumOfQueues, None)
            }
            Measurement::Unusable(why) => self.step(Change::Kept, Reason::Unusable(why), None),
        }
    }

    /// Decides at the end of a window.
    fn decide(&mut self) -> Step {
        let add = |(packets, drops), (more, dropped): &(u64, u64)| (packets + more, drops + dropped);
        let (packets, drops) = self.window.iter().fold((0, 0), add);
        self.window.clear();
        if packets == 0 {
            return self.step(Change::Kept, Reason::Unusable("no packets".to_owned()), None);
        }
        let loss = drops as f64 / packets as f64;
        let expected = packets as f64 * self.options.acceptable_loss;
        let excess = (drops as f64 - expected) / expected.max(MIN_EXPECTED_DROPS);
        self.excess = (self.excess + excess).max(0.0);
        let is_above = loss > self.options.acceptable_loss;
        let (change, reason) = match is_above && self.excess + ROUNDING >= self.options.evidence {
            true => self.lower(),
            false => {
                self.calm.windows += 1;
                self.calm.packets += packets;
                self.calm.drops += drops;
                self.raise_if_low(is_above)
            }
        };
        self.step(change, reason, Some(loss))
    }

    fn lower(&mut self) -> (Change, Reason) {
        if self.rate_threshold() <= self.options.floor {
            self.start_anew();
            return (Change::Kept, Reason::AtFloor);
        }
        if self.last_change == Change::Raised {
            self.needed = self.needed.saturating_mul(BACK_OFF).min(self.options.max_calm_windows);
        }
        let lowest = self.top().0.saturating_sub(self.options.floor.0);
        self.reduction = BitRate(self.reduction().0.saturating_add(self.options.step.0).min(lowest));
        self.last_change = Change::Lowered;
        self.start_anew();
        (Change::Lowered, Reason::Above)
    }

    fn raise_if_low(&mut self, is_above: bool) -> (Change, Reason) {
        let reduction = self.reduction();
        let reason = match () {
            () if is_above => Reason::Unproven,
            () if reduction.0 == 0 => Reason::AtBase,
            () if self.calm.windows < self.needed => {
                Reason::Calming { windows: self.calm.windows, of: self.needed }
            }
            () if self.calm.upper_loss() >= self.options.margin * self.options.acceptable_loss => {
                Reason::TooClose
            }
            () => Reason::Low,
        };
        if reason != Reason::Low {
            self.limit_memory();
            return (Change::Kept, reason);
        }
        if self.last_change == Change::Raised {
            self.needed = (self.needed / 2).max(self.options.calm_windows);
        }
        self.reduction = BitRate(reduction.0.saturating_sub(self.options.step.0));
        self.last_change = Change::Raised;
        self.start_anew();
        (Change::Raised, reason)
    }

    /// Forgets half of the calm windows once there are twice as many as needed, so that old traffic does not count for ever.
    fn limit_memory(&mut self) {
        if self.calm.windows >= self.needed.saturating_mul(2) {
            let Calm { windows, packets, drops } = self.calm;
            self.calm = Calm { windows: windows / 2, packets: packets / 2, drops: drops.div_ceil(2) };
        }
    }

    /// Starts a window, and forgets losses under another R.
    fn start_anew(&mut self) {
        self.window.clear();
        self.excess = 0.0;
        self.calm = Calm::default();
    }

    /// The highest R now.
    fn top(&self) -> BitRate {
        self.base.clamp(self.options.floor, self.options.ceiling)
    }

    fn step(&self, change: Change, reason: Reason, loss: Option<f64>) -> Step {
        Step { rate_threshold: self.rate_threshold(), change, reason, loss }
    }
}

impl Calm {
    /// Returns an upper bound of the loss, which holds with a probability of 95 %.
    fn upper_loss(&self) -> f64 {
        let (packets, drops) = (self.packets.max(1) as f64, self.drops as f64);
        let spread = 1.0 + Z * DISPERSION / f64::from(self.windows.max(1)).sqrt();
        (upper_count(self.drops) / packets).max(drops / packets * spread)
    }
}

/// Returns the 95 % upper bound of the mean of a Poisson distribution of which `count` was seen (approximation of Wilson and
/// Hilferty 1931, *PNAS* 17): 2.97 for 0, where the exact one is 3.00.
fn upper_count(count: u64) -> f64 {
    let next = count as f64 + 1.0;
    next * (1.0 - 1.0 / (9.0 * next) + Z / (3.0 * next.sqrt())).powi(3)
}

#[cfg(test)]
mod tests;
