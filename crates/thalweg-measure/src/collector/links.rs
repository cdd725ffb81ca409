//! The load of each link direction of the switch: the sum of the rates of its flows (Planck, section 3.2.2), and the
//! rules that detect congestion.
//!
//! Sums are integers in bits per second, so adding and subtracting the same rate leaves no residue. A change of a
//! flow's rate changes two sums, its input's and its output's. Rules are evaluated when a sum changes, and once per
//! tick, since smoothing and min_event_interval depend on time alone.

use thalweg_network::PortIndex;
use thalweg_sketch::{Bound, Estimate};
use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::options::LinkRule;
use super::report::{CongestionChange, LinkDirection, LinkReport, PortDirection};
use super::smoothing::{Pending, Smoothing};

/// The load of one link direction: the cache line that every rate change touches.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Load {
    /// Bits per second.
    sum: u64,
    /// The part of it that has not passed the smoothing yet.
    pending: Pending,
    /// No rule can begin or clear congestion while the smoothed sum is at least the first and below the second of these. For
    /// repeats see [`Links::repeats`].
    quiet: [f64; 2],
    changed: Timestamp,
    /// The greatest smoothed sum since the last turn of [`Links::turn_peaks`]. Between two changes, the smoothed sum only approaches the sum, so it is greatest at
    /// a change or now.
    peak: f64,
}

/// The time between two turns of peaks: the interval at which Prometheus reads metrics by default.
const PEAK_PERIOD: Nanos = Nanos::from_secs(60);

/// The rest of the state of one link direction.
#[derive(Clone, Debug)]
struct Link {
    side: LinkDirection,
    capacity: BitRate,
    /// The latest last sample of the flows that have become silent.
    silent_since: Option<Timestamp>,
    /// The peak of the period before.
    previous_peak: f64,
    rules: Vec<RuleState>,
}

/// A rule at one link.
#[derive(Clone, Copy, Debug)]
struct RuleState {
    rule: usize,
    upper: f64,
    lower: f64,
    min_event_interval: Nanos,
    repeat: Nanos,
    is_congested: bool,
    last_event: Option<Timestamp>,
    is_delayed: bool,
}

/// A rule that fired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FiredRule {
    pub(super) rule: usize,
    pub(super) change: CongestionChange,
    pub(super) threshold: f64,
}

/// All link directions of the switch.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// Of port `p`, `2 p` is the input and `2 p + 1` the output.
    loads: Vec<Load>,
    links: Vec<Link>,
    smoothing: Smoothing,
    delayed: u64,
    /// When peaks turn next.
    next_turn: Timestamp,
}

/// Returns the index of a link direction in all lists.
pub(super) fn index_of(side: LinkDirection) -> usize {
    2 * side.port.index() + usize::from(side.direction == PortDirection::Output)
}

impl Links {
    /// Creates idle links, one port for each capacity.
    pub(super) fn new(capacities: &[BitRate], rules: &[LinkRule], smoothing: Nanos) -> Links {
        let smoothing = Smoothing::new(smoothing);
        let ports = (0..).map(PortIndex).zip(capacities);
        let sides = ports.flat_map(|(port, &capacity)| {
            [PortDirection::Input, PortDirection::Output]
                .map(|direction| (LinkDirection { port, direction }, capacity))
        });
        let links: Vec<Link> = sides.map(|(side, capacity)| Link::new(side, capacity, rules)).collect();
        let loads = links.iter().map(|link| Load { quiet: link.quiet(), ..Load::IDLE }).collect();
        Links { loads, links, smoothing, delayed: 0, next_turn: Timestamp(0) }
    }

    /// Returns the number of changes that were delayed because they followed another event too soon.
    pub(super) fn delayed(&self) -> u64 {
        self.delayed
    }

    /// Returns the number of link directions.
    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns the current load of a link, in bits per second.
    #[inline(always)]
    pub(super) fn sum(&self, link: usize) -> u64 {
        self.loads[link].sum
    }

    /// Returns the capacity of a link.
    #[inline]
    pub(super) fn capacity(&self, link: usize) -> BitRate {
        self.links[link].capacity
    }

    /// Notes that a flow of a link has become silent after a sample at this time.
    pub(super) fn note_silence(&mut self, link: usize, last_sample: Timestamp) {
        let since = &mut self.links[link].silent_since;
        *since = Some(since.map_or(last_sample, |since| since.max(last_sample)));
    }

    /// Returns the time since which no silent flow of a link had a sample; `None` if none has become silent.
    pub(super) fn silent_since(&self, link: usize) -> Option<Timestamp> {
        self.links[link].silent_since
    }

    /// Whether a link would exceed its capacity, by more than the error of rates, if `new` replaced the rate `old`.
    pub(super) fn would_overflow(&self, link: usize, old: u64, new: u64) -> bool {
        let sum = self.loads[link].sum - old + new;
        sum as f64 > 1.02 * self.links[link].capacity.0 as f64
    }

    /// Sets up links for another topology, without load. A link that existed before keeps its state and its rules, so
    /// that its congestion will be reported as cleared.
    pub(super) fn set_up(&mut self, capacities: &[BitRate], rules: &[LinkRule]) {
        let mut renewed = Links::new(capacities, rules, Nanos::ZERO);
        (renewed.smoothing, renewed.delayed) = (self.smoothing, self.delayed);
        renewed.next_turn = self.next_turn;
        for (new, old) in renewed.links.iter_mut().zip(&self.links) {
            new.rules.clone_from(&old.rules);
        }
        for (load, link) in renewed.loads.iter_mut().zip(&renewed.links) {
            load.quiet = link.quiet();
        }
        *self = renewed;
    }

    /// Handles time that went back to `now`: no rule is delayed by an event of the future.
    pub(super) fn rewind(&mut self, now: Timestamp) {
        if let Some(factor) = self.smoothing.rewind(now) {
            self.scale(factor);
        }
        for state in self.links.iter_mut().flat_map(|link| &mut link.rules) {
            state.last_event = None;
        }
        self.links.iter_mut().for_each(|link| link.silent_since = None);
        self.next_turn = now;
    }

    /// Begins a new period of peaks if the last one is over.
    pub(super) fn turn_peaks(&mut self, now: Timestamp) {
        if now < self.next_turn {
            return;
        }
        self.next_turn = now + PEAK_PERIOD;
        for (load, link) in self.loads.iter_mut().zip(&mut self.links) {
            link.previous_peak = load.peak;
            load.peak = load.level(&self.smoothing);
        }
    }

    /// Advances the time of the smoothing.
    #[inline(always)]
    pub(super) fn advance(&mut self, now: Timestamp) {
        if let Some(factor) = self.smoothing.advance(now) {
            self.scale(factor);
        }
    }

    fn scale(&mut self, factor: f64) {
        self.loads.iter_mut().for_each(|load| load.pending.scale(factor));
    }

    /// Replaces the rate `old` by `new` in a link's sum; the smoothing must have advanced to this time. Returns
    /// whether rules must be evaluated.
    #[inline(always)]
    pub(super) fn replace(&mut self, link: usize, old: u64, new: u64, now: Timestamp) -> bool {
        let load = &mut self.loads[link];
        load.pending.change(old, new, &self.smoothing);
        load.sum = load.sum - old + new;
        load.changed = now;
        let level = load.level(&self.smoothing);
        load.peak = load.peak.max(level);
        load.is_loud(level)
    }

    /// Whether rules must be evaluated because time has passed.
    #[inline]
    pub(super) fn must_evaluate(&self, link: usize) -> bool {
        let load = &self.loads[link];
        load.is_loud(load.level(&self.smoothing))
    }

    /// Whether a rule may have to repeat that the link is congested.
    pub(super) fn repeats(&self, link: usize) -> bool {
        self.links[link].rules.iter().any(|state| state.is_congested && state.repeat > Nanos::ZERO)
    }

    /// Evaluates a link's rules and returns one that fired. Call it until `None`.
    #[cold]
    pub(super) fn evaluate(&mut self, link: usize, now: Timestamp) -> Option<FiredRule> {
        let load = &mut self.loads[link];
        let state = &mut self.links[link];
        let utilisation = self.smoothing.smoothed(load.sum, load.pending) / state.capacity.0 as f64;
        let delayed = &mut self.delayed;
        let fired = state.rules.iter_mut().find_map(|rule| rule.update(utilisation, now, delayed));
        load.quiet = state.quiet();
        fired
    }

    /// Returns the current state of a link; `rate` is the sum of the rates of its `flows`.
    pub(super) fn report(&self, link: usize, now: Timestamp, rate: Estimate, flows: u32) -> LinkReport {
        let (load, state) = (&self.loads[link], &self.links[link]);
        // A link carries at most its capacity, even if its flows' rates are from different times.
        let capacity = state.capacity.0 as f64;
        let rate = at_most(rate, capacity);
        let smoothed = self.smoothing.smoothed_at(now, load.sum, load.pending).clamp(0.0, capacity);
        let peak = smoothed.max(load.peak).max(state.previous_peak).min(capacity);
        LinkReport {
            side: state.side,
            capacity: state.capacity,
            rate,
            smoothed,
            peak,
            utilisation: smoothed / capacity,
            flows,
            changed: load.changed,
        }
    }
}

/// The sum of two estimates. The probability that its bounds fail is at most the sum of both failure probabilities
/// (Boole's inequality).
pub(super) fn sum(one: Estimate, other: Estimate) -> Estimate {
    let bound = match (one.bound, other.bound) {
        (
            Bound::Interval { lower, upper, confidence },
            Bound::Interval { lower: l, upper: u, confidence: c },
        ) => Bound::Interval {
            lower: lower + l,
            upper: upper + u,
            confidence: (confidence - (1.0 - c)).max(0.0),
        },
        _ => Bound::Unknown,
    };
    Estimate { value: one.value + other.value, bound }
}

/// Limits an estimate and its bounds.
fn at_most(estimate: Estimate, limit: f64) -> Estimate {
    let bound = match estimate.bound {
        Bound::Interval { lower, upper, confidence } => {
            Bound::Interval { lower: lower.min(limit), upper: upper.min(limit), confidence }
        }
        other => other,
    };
    Estimate { value: estimate.value.min(limit), bound }
}

impl Load {
    const IDLE: Load = Load {
        sum: 0,
        pending: Pending::ZERO,
        quiet: [f64::NEG_INFINITY, f64::INFINITY],
        changed: Timestamp(0),
        peak: 0.0,
    };

    /// The smoothed sum.
    #[inline(always)]
    fn level(&self, smoothing: &Smoothing) -> f64 {
        smoothing.smoothed(self.sum, self.pending)
    }

    /// Whether rules must be evaluated at this level.
    #[inline(always)]
    fn is_loud(&self, level: f64) -> bool {
        level < self.quiet[0] || level >= self.quiet[1]
    }
}

impl Link {
    fn new(side: LinkDirection, capacity: BitRate, rules: &[LinkRule]) -> Link {
        let concerned = |rule: &LinkRule| rule.links.as_ref().is_none_or(|links| links.contains(&side));
        let rules = rules.iter().enumerate().filter(|(_, rule)| concerned(rule));
        let rules = rules.map(|(number, rule)| RuleState::new(number, rule)).collect();
        Link { side, capacity, silent_since: None, previous_peak: 0.0, rules }
    }

    /// See [`Load::quiet`]. A delayed rule is evaluated each time.
    fn quiet(&self) -> [f64; 2] {
        let capacity = self.capacity.0 as f64;
        let mut quiet = [f64::NEG_INFINITY, f64::INFINITY];
        for state in &self.rules {
            match (state.is_delayed, state.is_congested) {
                (true, _) => quiet = [f64::INFINITY, f64::NEG_INFINITY],
                // Wider than rounding errors: a rule may be evaluated too often, but never too late.
                (false, true) => quiet[0] = quiet[0].max(state.lower * capacity * (1.0 + 1e-12)),
                (false, false) => quiet[1] = quiet[1].min(state.upper * capacity * (1.0 - 1e-12)),
            }
        }
        quiet
    }
}

impl RuleState {
    fn new(number: usize, rule: &LinkRule) -> RuleState {
        let &LinkRule { upper, lower, min_event_interval, repeat, .. } = rule;
        RuleState {
            rule: number,
            upper,
            lower,
            min_event_interval,
            repeat,
            is_congested: false,
            last_event: None,
            is_delayed: false,
        }
    }

    #[inline]
    fn update(&mut self, utilisation: f64, now: Timestamp, delayed: &mut u64) -> Option<FiredRule> {
        let (change, threshold) = match self.is_congested {
            false if utilisation >= self.upper => (CongestionChange::Began, self.upper),
            true if utilisation < self.lower => (CongestionChange::Cleared, self.lower),
            true if self.must_repeat(now) => (CongestionChange::Repeated, self.lower),
            _ => {
                self.is_delayed = false;
                return None;
            }
        };
        if self.last_event.is_some_and(|last| now - last < self.min_event_interval) {
            *delayed += u64::from(!self.is_delayed);
            self.is_delayed = true;
            return None;
        }
        self.is_congested = change != CongestionChange::Cleared;
        (self.last_event, self.is_delayed) = (Some(now), false);
        Some(FiredRule { rule: self.rule, change, threshold })
    }

    fn must_repeat(&self, now: Timestamp) -> bool {
        self.repeat > Nanos::ZERO && self.last_event.is_none_or(|last| now - last >= self.repeat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_burst_remains_the_peak_for_one_to_two_periods() {
        let at = |seconds: u64| Timestamp(seconds * 1_000_000_000);
        let mut links = Links::new(&[BitRate(1_000)], &[], Nanos::ZERO);
        let output = 1;
        let peak = |links: &Links| links.report(output, at(200), Estimate::exact(0.0), 0).peak;
        links.turn_peaks(at(100));
        links.replace(output, 0, 900, at(110));
        links.replace(output, 900, 100, at(110));
        assert_eq!(peak(&links), 900.0);
        links.turn_peaks(at(159));
        links.turn_peaks(at(160));
        assert_eq!(peak(&links), 900.0, "that of the period before");
        links.turn_peaks(at(220));
        assert_eq!(peak(&links), 100.0, "what has been there all the time");
        links.replace(output, 100, 5_000, at(221));
        assert_eq!(peak(&links), 1_000.0, "the capacity");
    }
}
