//! Axes: what part of the numbers they show, where their ticks are and what these say.

use std::ops::Range;

use libm::{exp10, floor, log10};
use plotters::coord::ranged1d::{KeyPointHint, KeyPointWeight, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::page::CHARACTER;
use crate::quantity::{number, percent};

/// Ticks of a linear axis, about.
const TICKS: u32 = 5;
/// Decades that a logarithmic axis can have and still name each.
const NAMED_DECADES: i32 = 7;

/// How an axis shows values.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Logarithmic, or linear from zero.
    pub is_logarithmic: bool,
    /// What a tick says.
    pub label: fn(f64) -> String,
}

impl Scale {
    /// Linear from zero.
    pub const LINEAR: Scale = Scale { is_logarithmic: false, label: number };
    /// Logarithmic; values that are not above zero are left out.
    pub const LOGARITHMIC: Scale = Scale { is_logarithmic: true, label: number };

    /// The same with labels in percent, for values that are shares.
    pub const fn in_percent(self) -> Scale {
        Scale { label: percent, ..self }
    }

    /// An axis that shows all of `values`.
    pub fn axis(self, values: impl Iterator<Item = f64>) -> Axis {
        let shown = values.filter(|value| value.is_finite() && (!self.is_logarithmic || *value > 0.0));
        let (least, most) = extent(shown);
        match self.is_logarithmic {
            true => Axis::logarithmic(least, most, self.label),
            false => Axis::from_zero(most, TICKS, self.label),
        }
    }
}

/// An axis, complete with its ticks.
#[derive(Clone, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    /// Whether ticks are names.
    has_names: bool,
    /// With their labels, upwards.
    ticks: Vec<(f64, String)>,
    /// Thin lines between ticks.
    minor: Vec<f64>,
}

impl Axis {
    /// From `low` to `high` as they are, with at most about `count` ticks.
    pub fn linear(low: f64, high: f64, count: u32, label: impl Fn(f64) -> String) -> Axis {
        let (low, high) = (low, if high > low { high } else { low + 1.0 });
        let step = even_step((high - low) / f64::from(count.max(1)));
        let first = libm::ceil(low / step - 1e-9) as i64;
        let last = floor(high / step + 1e-9) as i64;
        let ticks = (first..=last).map(|n| n as f64 * step).map(|tick| (tick, label(tick))).collect();
        Axis { low, high, is_logarithmic: false, has_names: false, ticks, minor: Vec::new() }
    }

    /// From zero to the first tick at or above `highest`.
    pub fn from_zero(highest: f64, count: u32, label: impl Fn(f64) -> String) -> Axis {
        let highest = if highest > 0.0 && highest.is_finite() { highest } else { 1.0 };
        let step = even_step(highest / f64::from(count.max(1)));
        Axis::linear(0.0, step * libm::ceil(highest / step - 1e-9), count, label)
    }

    /// From zero to a little above `highest`: for plots that are too low to give space away.
    pub fn close_above(highest: f64, count: u32, label: impl Fn(f64) -> String) -> Axis {
        let highest = if highest > 0.0 && highest.is_finite() { highest } else { 1.0 };
        Axis::linear(0.0, 1.06 * highest, count, label)
    }

    /// Around `low` to `high`, both above zero, with named ticks at powers of ten; also at 2 and 5 times these if
    /// the axis has few.
    pub fn logarithmic(low: f64, high: f64, label: impl Fn(f64) -> String) -> Axis {
        let (low, high) =
            if low > 0.0 && low <= high && high.is_finite() { (low, high) } else { (1.0, 10.0) };
        let (low, high) = (one_two_five_below(low), one_two_five_above(high));
        let high = if high > low { high } else { 10.0 * low };
        let shown = |value: &f64| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(value);
        let decades = floor(log10(low) + 1e-9) as i32..=floor(log10(high) + 1e-9) as i32;
        let every = ((decades.end() - decades.start()) / NAMED_DECADES + 1).max(1);
        let is_short = log10(high / low) < 2.0;
        let (mut ticks, mut minor) = (Vec::new(), Vec::new());
        for decade in decades {
            for digit in 1..10 {
                let value = times_ten_to(f64::from(digit), decade);
                if !shown(&value) {
                    continue;
                }
                let is_named = if is_short { matches!(digit, 1 | 2 | 5) } else { digit == 1 };
                match is_named && decade.rem_euclid(every) == 0 {
                    true => ticks.push((value, label(value))),
                    false if every == 1 || digit == 1 => minor.push(value),
                    false => {}
                }
            }
        }
        Axis { low, high, is_logarithmic: true, has_names: false, ticks, minor }
    }

    /// From zero, unless that would press lines flat to the ground: logarithmic if the largest value is more than
    /// `spread` times the least, and none is zero. Values below zero and what is no number have no say.
    pub fn fitting(
        values: impl Iterator<Item = f64>,
        spread: f64,
        count: u32,
        label: impl Fn(f64) -> String,
    ) -> Axis {
        let shown = values.filter(|value| *value >= 0.0 && value.is_finite());
        let (least, most) = extent(shown);
        match least > 0.0 && most > spread * least {
            true => Axis::logarithmic(least, most, label),
            false => Axis::from_zero(most, count, label),
        }
    }

    /// 0 to 1, in percent.
    pub fn share() -> Axis {
        Axis::linear(0.0, 1.0, 5, |share| format!("{:.0} %", 100.0 * share))
    }

    /// A tick for each name, at 0, 1, 2 and so on.
    pub fn places(names: &[String]) -> Axis {
        let ticks = (0..).map(f64::from).zip(names.iter().cloned()).collect();
        let high = names.len().max(1) as f64 - 0.5;
        Axis { low: -0.5, high, is_logarithmic: false, has_names: true, ticks, minor: Vec::new() }
    }

    /// An axis around the given values, with a labelled tick at each of them: logarithmic if they spread by more than a factor of
    /// 20, otherwise linear. Labels that would touch the one before are omitted.
    pub fn at(values: &[(f64, String)]) -> Axis {
        let (low, high) = extent(values.iter().map(|value| value.0));
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let is_logarithmic = low > 0.0 && high > 20.0 * low;
        let margin = if high > low { 0.04 * (high - low) } else { 0.5 * high.abs().max(1.0) };
        let (low, high) = match is_logarithmic {
            true => (low / 1.15, high * 1.15),
            false => (low - margin, high + margin),
        };
        let mut axis =
            Axis { low, high, is_logarithmic, has_names: false, ticks: Vec::new(), minor: Vec::new() };
        let mut free_from = 0.0;
        for (value, label) in values {
            let position = axis.position(*value);
            // Of a panel of about 400 pixels.
            let half = f64::from(CHARACTER) * (label.chars().count() as f64 + 1.0) / 800.0;
            if position - half >= free_from || axis.ticks.is_empty() {
                axis.ticks.push((*value, label.clone()));
                free_from = position + half;
            } else {
                axis.minor.push(*value);
            }
        }
        axis
    }

    /// Width that the names of a horizontal axis take side by side; zero if its ticks are numbers.
    pub(crate) fn names_width(&self) -> u32 {
        match self.has_names {
            true => self.ticks.len() as u32 * (CHARACTER * self.longest_label() + 10),
            false => 0,
        }
    }

    /// Characters of the longest label.
    pub(crate) fn longest_label(&self) -> u32 {
        self.ticks.iter().map(|(_, label)| label.chars().count() as u32).max().unwrap_or(0)
    }

    /// The least value shown.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The greatest value shown.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Whether a value can be shown at all: a logarithmic axis has none below its beginning.
    pub fn shows(&self, value: f64) -> bool {
        value.is_finite() && (!self.is_logarithmic || value > 0.0)
    }

    /// Where a value lies, from 0 at the beginning to 1 at the end.
    pub fn position(&self, value: f64) -> f64 {
        let part = match self.is_logarithmic {
            true => log10(value.max(self.low) / self.low) / log10(self.high / self.low),
            false => (value - self.low) / (self.high - self.low),
        };
        part.clamp(0.0, 1.0)
    }
}

/// What plotters asks of an axis.
impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + libm::round(self.position(*value) * f64::from(to - from)) as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight() {
            KeyPointWeight::Bold => self.ticks.iter().map(|(tick, _)| *tick).collect(),
            KeyPointWeight::Any => self.minor.clone(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let named = self.ticks.iter().find(|(tick, _)| tick == value);
        named.map(|(_, label)| label.clone()).unwrap_or_default()
    }
}

/// Least and greatest of `values`; infinity and zero if there are none.
pub fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(least, most), value| (least.min(value), most.max(value)))
}

/// The least of 1, 2 and 5 times a power of ten that is no smaller than `value`.
fn even_step(value: f64) -> f64 {
    one_two_five_above(value.max(f64::MIN_POSITIVE * 1e10))
}

fn one_two_five_above(value: f64) -> f64 {
    let decade = floor(log10(value)) as i32;
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| times_ten_to(digit, decade));
    steps.into_iter().find(|step| *step >= value * (1.0 - 1e-9)).unwrap_or(steps[3])
}

fn one_two_five_below(value: f64) -> f64 {
    let decade = floor(log10(value) + 1e-12) as i32;
    let steps = [5.0, 2.0, 1.0].map(|digit| times_ten_to(digit, decade));
    steps.into_iter().find(|step| *step <= value * (1.0 + 1e-9)).unwrap_or(steps[2])
}

/// Below one by division, so that 0.2 is `0.2` and not the nearest to 2 times the nearest to 0.1.
fn times_ten_to(digit: f64, decade: i32) -> f64 {
    match decade {
        ..0 => digit / exp10(f64::from(-decade)),
        _ => digit * exp10(f64::from(decade)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_numbers_and_an_axis_from_zero_ends_at_a_tick() {
        let plain = |value: f64| value.to_string();
        let tenths = |value: f64| format!("{value:.1}");
        assert_eq!(labels(&Axis::linear(0.0, 1.0, 5, tenths)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let axis = Axis::from_zero(1_025.0, 3, plain);
        assert_eq!((labels(&axis), axis.high), (vec!["0", "500", "1000", "1500"], 1_500.0));
        assert_eq!(labels(&Axis::linear(0.13, 0.37, 3, tenths)), ["0.2", "0.3"]);
        assert_eq!(labels(&Axis::close_above(1_024.0, 3, plain)), ["0", "500", "1000"]);
    }

    #[test]
    fn a_logarithmic_axis_has_ticks_at_powers_of_ten_and_thin_lines_between() {
        let plain = |value: f64| value.to_string();
        let axis = Axis::logarithmic(0.03, 700.0, plain);
        assert_eq!(labels(&axis), ["0.1", "1", "10", "100", "1000"]);
        assert_eq!((axis.low, axis.high), (0.02, 1_000.0));
        assert!(axis.minor.contains(&0.02) && axis.minor.contains(&900.0) && !axis.minor.contains(&10.0));
        assert_eq!(labels(&Axis::logarithmic(1.2, 17.0, plain)), ["1", "2", "5", "10", "20"]);
        let long = Axis::logarithmic(1.0, 1e16, plain);
        assert!(long.ticks.len() <= 8, "{:?}", labels(&long));
    }

    #[test]
    fn unevenly_spaced_values_lie_at_uneven_distances() {
        let labelled =
            |values: &[f64]| values.iter().map(|value| (*value, value.to_string())).collect::<Vec<_>>();
        let sizes = Axis::at(&labelled(&[50.0, 100.0, 200.0, 400.0, 1024.0]));
        assert!(sizes.is_logarithmic && sizes.ticks.len() == 5);
        let loads = Axis::at(&labelled(&[10.0, 20.0, 80.0]));
        let positions = [10.0, 20.0, 80.0].map(|load| loads.position(load));
        assert!(!loads.is_logarithmic && positions[2] - positions[1] > 5.0 * (positions[1] - positions[0]));
        let dense = Axis::at(&labelled(&(1..=100).map(f64::from).collect::<Vec<_>>()));
        assert!(
            dense.ticks.len() < 30 && dense.ticks.len() + dense.minor.len() == 100,
            "{:?}",
            labels(&dense)
        );
        assert!(Axis::at(&[]).high() > Axis::at(&[]).low());
    }

    #[test]
    fn positions_run_from_one_end_to_the_other() {
        let axis = Axis::logarithmic(1.0, 100.0, |_| String::new());
        assert_eq!([0.1, 1.0, 10.0, 100.0, 1e9].map(|value| axis.position(value)), [0.0, 0.0, 0.5, 1.0, 1.0]);
        assert_eq!(axis.map(&10.0, (300, 100)), 200);
        let axis = Axis::from_zero(8.0, 4, |_| String::new());
        assert_eq!(axis.map(&2.0, (0, 400)), 100);
        assert!(!Axis::logarithmic(1.0, 2.0, |_| String::new()).shows(0.0) && !axis.shows(f64::NAN));
    }

    #[test]
    fn every_axis_has_an_extent_whatever_the_input() {
        let nothing = || std::iter::empty();
        for axis in [
            Axis::fitting(nothing(), 20.0, 5, |_| String::new()),
            Axis::fitting([f64::NAN, -1.0, 0.0].into_iter(), 20.0, 5, |_| String::new()),
            Axis::logarithmic(0.0, f64::INFINITY, |_| String::new()),
            Axis::logarithmic(5.0, 5.0, |_| String::new()),
            Axis::linear(3.0, 3.0, 0, |_| String::new()),
            Axis::places(&[]),
        ] {
            assert!(axis.high > axis.low, "{axis:?}");
        }
    }
}
