//! Estimates the sampling ratio of a monitor port from the TCP flows among the samples.
//!
//! The paper leaves flows without sequence numbers to future work (Planck, sections 3.2.2 and 9.2). They share the
//! monitor port with flows that have them. If those advanced by `A` bytes and `S` bytes of that were sampled, then `S
//! / A` is the sampling ratio of their packets, and of all packets, as a monitor port drops without regard to their
//! contents. Below, `q = S / A`.
//!
//! `S` and `A` are summed over spans of all flows that ended within the last eight windows of 1 ms, or of ten sevenths of
//! the longest burst where that is more. A span is a burst of a flow and the pause after it ([`super::burst`]).
//!
//! **Bound:** `S / A` is a ratio estimator over spans. Its variance is estimated from the residuals `S - q A` of each
//! span (Cochran, "Sampling Techniques", 3rd edition 1977, section 6.4), and the interval is the normal approximation's
//! at 95 %. With fewer than [`MIN_SPANS`] spans there is no bound.
//!
//! **Drops come in runs.** If packets were drawn independently, the residual of a span of `A` bytes in packets of `m`
//! bytes would have the variance `q (1 - q) A m`. A monitor port's buffer drops runs of packets, so residuals vary more.
//! The factor, at least one, is the *dispersion*: it also widens the interval of a flow that is measured by its
//! samples (McCullagh & Nelder, "Generalized Linear Models", 2nd edition 1989, section 4.5).
//!
//! **Ports do not compete with themselves.** A full first-in-first-out buffer accepts one frame each time that it has
//! sent one: the next that arrives. Frames of one output port arrive one after the other, so a frame competes only
//! with those of other ports. Of a port with load `x` it accepts `r = 1 / (1 + L - x)`, where `L` is the load of all
//! ports, both as shares of the monitor port's rate. So the busier a port, the higher its ratio, and the ratio of
//! flows on busy ports underestimates a flow on a quiet one. If the monitor port's rate is known, `1 + L` is
//! estimated as `(A + S x) / S`, with the sum of `S x` over all spans, each with the load of its own port, and each flow
//! has the ratio of its port (`Ratio::load_of`). A switch may behave differently. So the bounds of a flow include all
//! ratios from `q / (1 + q)`, that of an idle port if the port of the TCP flows is full, to `q`, that of a port as busy as
//! theirs. A port that is busier than all theirs has a higher ratio, which the bounds do not include.
//!
//! **Short frames fit more often.** A full buffer of bytes drains by a frame until the next full-sized one fits, and
//! a very short one fits before. So acknowledgements are nearly all sampled at a port that counts bytes. From there on the
//! ratio falls linearly to `q` at an eighth of the size of the TCP flows' packets (`Ratio::of_frames`); above, ports
//! differ too much to correct for it.
//!
//! **Cost:** eight additions per span. No allocation.

use thalweg_sketch::{Bound, Estimate};
use thalweg_wire::{Nanos, Timestamp};

/// The number of windows in the memory.
const WINDOWS: usize = 8;
/// The shortest window, in nanoseconds.
const WINDOW: u64 = 1_000_000;
/// How long the last ratio is valid without further TCP spans.
const VALIDITY: u64 = 100_000_000;
/// The minimum number of spans for a bound.
pub const MIN_SPANS: u64 = 8;
/// The 97.5 % quantile of the normal distribution.
pub(crate) const Z_95: f64 = 1.959_964;
/// A ratio of at least this means that everything is sampled.
const ALL: f64 = 0.999_9;
/// The confidence of the intervals.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// Sums over spans of sampled bytes `S`, advanced bytes `A` and their products.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    spans: u64,
    sampled: u64,
    advanced: u64,
    /// Of sampled bytes times the load of the port.
    loaded: f64,
    sampled_squared: f64,
    product: f64,
    advanced_squared: f64,
    /// Of advanced bytes times the payload per packet.
    in_packets: f64,
}

/// The ratio as last computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    /// The share of packets sampled, above 0 and at most 1.
    pub(crate) value: f64,
    /// Half the width of the interval, as a share of the value; NaN if there is none.
    pub(crate) relative_error: f64,
    /// The variance of the number of samples, as a multiple of that of independent draws; at least 1.
    pub(crate) dispersion: f64,
    /// `1 + L`: one plus the load of all ports.
    pub(crate) competition: f64,
    /// The mean size of the packets that it is of, in bytes of payload.
    pub(crate) payload: f64,
}

/// The recent sampling ratio of a monitor port.
#[derive(Clone, Debug)]
pub struct SamplingRatio {
    windows: [Sums; WINDOWS],
    /// The length of a window in nanoseconds.
    window: u64,
    /// The number of the current window, counted from the epoch.
    number: u64,
    /// When the last span was added.
    latest: u64,
    /// The ratio at the end of the previous window, and the time of its last span.
    current: Option<(Ratio, u64)>,
}

/// A span of a TCP flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SampledSpan {
    /// The payload that was sampled.
    pub(crate) sampled: u32,
    /// The advance of sequence numbers.
    pub(crate) advanced: u32,
    /// The payload of one sample, on average.
    pub(crate) packet: f64,
    /// The load of its output port, as a share of the monitor port's rate.
    pub(crate) load: f64,
}

impl SamplingRatio {
    /// Creates a ratio without spans, for bursts of at most this length.
    pub(crate) fn new(longest_burst: Nanos) -> SamplingRatio {
        let window = WINDOW.max(longest_burst.0.saturating_mul(10) / 7);
        SamplingRatio { windows: [Sums::default(); WINDOWS], window, number: 0, latest: 0, current: None }
    }

    /// Adds a span that ended at `time`.
    #[inline]
    pub(crate) fn add(&mut self, time: u64, span: SampledSpan) {
        let SampledSpan { sampled, advanced, packet, load } = span;
        // A span that ended slightly earlier counts as current; if time goes back further, all windows are cleared.
        let number = time / self.window;
        if number > self.number || number + (WINDOWS as u64) < self.number {
            self.advance_to(number);
        }
        self.latest = time;
        let sums = &mut self.windows[(self.number % WINDOWS as u64) as usize];
        let (s, a) = (f64::from(sampled), f64::from(advanced));
        sums.spans += 1;
        sums.sampled += u64::from(sampled);
        sums.advanced += u64::from(advanced);
        sums.loaded += s * load;
        sums.sampled_squared += s * s;
        sums.product += s * a;
        sums.advanced_squared += a * a;
        sums.in_packets += a * packet;
    }

    /// Returns the ratio at `time`; `None` without recent TCP spans.
    #[inline]
    pub(crate) fn at(&mut self, time: u64) -> Option<Ratio> {
        if time / self.window > self.number {
            self.advance_to(time / self.window);
        }
        let (ratio, since) = self.current?;
        (time.saturating_sub(since) < self.validity()).then_some(ratio)
    }

    /// Returns the last ratio with its bound; `None` without recent TCP spans.
    pub fn estimate(&self, now: Timestamp) -> Option<Estimate> {
        let (Ratio { value, relative_error, .. }, since) = self.current?;
        if now.0.saturating_sub(since) >= self.validity() {
            return None;
        }
        let half = value * relative_error;
        let bound = match half.is_nan() {
            true => Bound::Unknown,
            false => Bound::Interval {
                lower: (value - half).max(0.0),
                upper: (value + half).min(1.0),
                confidence: CONFIDENCE,
            },
        };
        Some(Estimate { value, bound })
    }

    /// Returns how long the last ratio is valid.
    fn validity(&self) -> u64 {
        VALIDITY.max(WINDOWS as u64 * self.window)
    }

    /// Advances to another window.
    #[cold]
    fn advance_to(&mut self, number: u64) {
        let mut all = Sums::default();
        for sums in &self.windows {
            all.spans += sums.spans;
            all.sampled += sums.sampled;
            all.advanced += sums.advanced;
            all.loaded += sums.loaded;
            all.sampled_squared += sums.sampled_squared;
            all.product += sums.product;
            all.advanced_squared += sums.advanced_squared;
            all.in_packets += sums.in_packets;
        }
        if let Some(ratio) = all.ratio() {
            self.current = Some((ratio, self.latest));
        }
        // If time goes back, all windows are cleared, as after a long pause.
        let gone = number.checked_sub(self.number).map_or(WINDOWS as u64, |gone| gone.min(WINDOWS as u64));
        for window in number + 1 - gone.min(number + 1)..=number {
            self.windows[(window % WINDOWS as u64) as usize] = Sums::default();
        }
        self.number = number;
    }
}

impl Ratio {
    /// Whether everything is sampled.
    #[inline(always)]
    pub(crate) fn is_all(&self) -> bool {
        self.value >= ALL
    }

    /// Returns the sampling ratio of packets of this size, in bytes of payload.
    #[inline(always)]
    pub(crate) fn of_frames(&self, payload: f64) -> f64 {
        1.0 - (8.0 * payload / self.payload).min(1.0) * (1.0 - self.value)
    }

    /// Returns the load of a flow of which the load `sampled` was sampled, if the other flows on its port have the load
    /// `others`. All loads are shares of the monitor port's rate.
    pub(crate) fn load_of(&self, sampled: f64, others: f64) -> f64 {
        // sampled = x / (competition - others - x), solved for x.
        (sampled * (self.competition - others) / (1.0 + sampled)).max(sampled)
    }
}

impl Sums {
    fn ratio(&self) -> Option<Ratio> {
        if self.advanced == 0 || self.sampled == 0 {
            return None;
        }
        let (spans, advanced) = (self.spans as f64, self.advanced as f64);
        let ratio = self.sampled as f64 / advanced;
        let residuals =
            self.sampled_squared - 2.0 * ratio * self.product + ratio * ratio * self.advanced_squared;
        let relative_error = match self.spans {
            ..MIN_SPANS => f64::NAN,
            _ => Z_95 * (residuals.max(0.0) * spans / (spans - 1.0)).sqrt() / (advanced * ratio),
        };
        let independent = ratio * (1.0 - ratio) * self.in_packets;
        // NaN if everything was sampled: 1.
        let dispersion = (residuals / independent).max(1.0);
        let competition = (advanced + self.loaded) / self.sampled as f64;
        let payload = self.in_packets / advanced;
        Some(Ratio { value: ratio.min(1.0), relative_error, dispersion, competition, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: u64 = WINDOW / 10;

    fn span(sampled: u32, advanced: u32, load: f64) -> SampledSpan {
        SampledSpan { sampled, advanced, packet: 1_448.0, load }
    }

    /// Spans of 100 packets each, one after the other; `kept` has the number of sampled packets of each.
    fn ratio_of(kept: &[u32]) -> SamplingRatio {
        let mut ratio = SamplingRatio::new(Nanos(1));
        for (step, &kept) in (1_000u64..).zip(kept) {
            ratio.add(step * INTERVAL, span(kept * 1_448, 144_800, 0.0));
        }
        ratio.at((1_000 + kept.len() as u64) * INTERVAL + WINDOW);
        ratio
    }

    #[test]
    fn equal_spans_give_an_exact_sampling_ratio() {
        let estimate = ratio_of(&[25; 40]).estimate(Timestamp(1_050 * INTERVAL)).unwrap();
        assert!((estimate.value - 0.25).abs() < 1e-12);
        assert!(estimate.upper().unwrap() - estimate.lower().unwrap() < 1e-6);
    }

    #[test]
    fn varying_spans_widen_the_interval_of_the_sampling_ratio() {
        let estimate = ratio_of(&[20, 30].repeat(20)).estimate(Timestamp(1_050 * INTERVAL)).unwrap();
        assert!((estimate.value - 0.25).abs() < 1e-3);
        // 40 spans with a standard deviation of 0.05 around 0.25: 1.96 * 0.05 / sqrt(40).
        let half = (estimate.upper().unwrap() - estimate.lower().unwrap()) / 2.0;
        assert!((half - 0.015_5).abs() < 0.002, "{half}");
    }

    #[test]
    fn the_dispersion_tells_runs_of_drops_from_independent_ones() {
        let dispersion = |kept: &[u32]| {
            let mut ratio = ratio_of(kept);
            ratio.at(1_050 * INTERVAL).unwrap().dispersion
        };
        // Of 100 packets, 25 with a standard deviation of 4.3 if they are drawn independently.
        assert!((dispersion(&[20, 30].repeat(20)) - 25.0 / 18.75).abs() < 0.02);
        assert!((dispersion(&[5, 45].repeat(20)) - 400.0 / 18.75).abs() < 0.2);
        assert_eq!(dispersion(&[25; 40]), 1.0);
        assert_eq!(dispersion(&[100; 40]), 1.0, "everything is sampled");
    }

    #[test]
    fn old_spans_leave_the_sampling_ratio() {
        let mut ratio = SamplingRatio::new(Nanos(1));
        for step in 0..200u64 {
            let kept = if step < 100 { 90 } else { 10 };
            ratio.add(step * INTERVAL + WINDOW * 10, span(kept, 100, 0.0));
        }
        assert!((ratio.at(WINDOW * 31).unwrap().value - 0.1).abs() < 1e-9);
        assert_eq!(ratio.at(WINDOW * 31 + VALIDITY + WINDOW), None, "the last ratio expires");
    }

    /// Ports with loads of 1, 0.5 and 0.1 of a monitor port that is 1.6 times oversubscribed.
    #[test]
    fn quiet_ports_are_sampled_less_than_busy_ones() {
        let loads = [1.0, 0.5, 0.1];
        let competition = 1.0 + loads.iter().sum::<f64>();
        let mut ratio = SamplingRatio::new(Nanos(1));
        for step in 1_000..1_040u64 {
            for load in [1.0, 0.5] {
                let advanced = 1e6 * load;
                let sampled = (advanced / (competition - load)) as u32;
                ratio.add(step * INTERVAL, span(sampled, advanced as u32, load));
            }
        }
        let ratio = ratio.at(1_050 * INTERVAL).unwrap();
        assert!((ratio.competition - competition).abs() < 1e-3, "{ratio:?}");
        let quiet = 0.1 / (competition - 0.1);
        assert!((ratio.load_of(quiet, 0.0) - 0.1).abs() < 1e-4);
        assert!((quiet / ratio.value - 0.1).abs() > 0.02, "the plain ratio is off by more than a fifth");
    }

    #[test]
    fn short_frames_have_a_higher_ratio() {
        let ratio = ratio_of(&[25; 40]).at(1_050 * INTERVAL).unwrap();
        assert_eq!((ratio.of_frames(1_448.0), ratio.of_frames(9_000.0)), (0.25, 0.25));
        assert_eq!((ratio.of_frames(181.0), ratio.of_frames(90.5), ratio.of_frames(0.0)), (0.25, 0.625, 1.0));
    }

    #[test]
    fn too_few_spans_give_no_bound() {
        assert_eq!(ratio_of(&[25; 3]).estimate(Timestamp(1_050 * INTERVAL)).unwrap().bound, Bound::Unknown);
        assert_eq!(SamplingRatio::new(Nanos(1)).estimate(Timestamp(1_050 * INTERVAL)), None);
        assert_eq!(
            ratio_of(&[0; 40]).estimate(Timestamp(1_050 * INTERVAL)),
            None,
            "no ratio without samples"
        );
    }
}
