//! Estimates a rate with bounds from a span of samples.

use thalweg_wire::{Nanos, Timestamp};

use super::{FlowRates, PLAUSIBLE, flag, links_of};
use crate::rates::Basis;
use crate::rates::burst::Span;
use crate::rates::sampling::{Ratio, SampledSpan, Z_95};

/// The headers of a TCP segment with timestamps, and framing.
pub(super) const TCP_OVERHEAD: f64 = 90.0;

/// The factor by which the sampling ratio of a flow may be less than that of the TCP flows. A full buffer accepts the
/// next frame that fits. So it prefers short frames, and flows whose packets arrive in step with those that it sends. In
/// the simulation of `tests/it/star.rs` ratios differ by up to this factor.
const UNEQUAL: f64 = 2.0;

/// How long identifications count as in use after a rate from them.
const IN_USE: Nanos = Nanos::from_secs(1);

/// The rate of a span with its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// Bits per second on the wire.
    pub(super) rate: f64,
    /// Lower bound; NaN if unknown.
    pub(super) lower: f64,
    /// Upper bound; infinite if unknown.
    pub(super) upper: f64,
    pub(super) basis: Basis,
}

impl FlowRates {
    /// Estimates the rate of a span that a direction has completed at `time`.
    ///
    /// Everything below is inlined: passing the result through memory, written and read in pieces of different sizes,
    /// took a tenth of the time per packet.
    #[inline(always)]
    pub(super) fn measure(&mut self, number: u32, span: &Span, time: Timestamp) -> Measured {
        let by_sequence = if span.advance == 0 {
            None
        } else if span.length > self.longest_span {
            self.counters.wrapped += 1;
            None
        } else {
            self.by_sequence(number, span, time)
        };
        match by_sequence {
            Some(measured) => measured,
            None => self.by_count(number, span, time),
        }
    }

    /// Estimates the rate from the number of packets, by their identifications if those count them, and otherwise by the
    /// samples.
    #[inline(always)]
    fn by_count(&mut self, number: u32, span: &Span, time: Timestamp) -> Measured {
        let by_samples = self.by_samples(number, span, time);
        match span.passed >= span.samples && span.passed > 0 {
            true => self.by_identification(number, span, time, by_samples),
            false => by_samples,
        }
    }

    /// Estimates the rate from the number of packets that passed, with the mean size of the samples.
    ///
    /// The lower bound is what was sampled, which is certain: the sender may count other packets too, and packets may be
    /// lost before the switch. The upper bound assumes the largest sample's size for all packets without a sample. If the
    /// number contradicts the samples, these count instead: beyond [`UNEQUAL`] times their upper bound, which trains of
    /// packets can exceed.
    #[cold]
    fn by_identification(
        &mut self,
        number: u32,
        span: &Span,
        time: Timestamp,
        by_samples: Measured,
    ) -> Measured {
        let flags = &mut self.tracks[number as usize].ports.flags;
        let is_shared = *flags & flag::SHARED != 0;
        *flags &= !flag::SHARED;
        let is_all = self.context.is_all;
        let (wire, passed, samples) = (f64::from(span.wire), f64::from(span.passed), f64::from(span.samples));
        let bits = 8e9 * wire * passed / samples;
        let rate = bits / span.length as f64;
        if is_shared || is_all || rate > UNEQUAL * by_samples.upper || self.is_implausible(rate, span) {
            return by_samples;
        }
        self.identified_until = time + IN_USE;
        let most = 8e9 * (wire + (passed - samples) * f64::from(span.largest));
        let (lower, upper) = self.within_jitter(8e9 * wire, most.max(bits), span);
        Measured { rate, lower, upper, basis: Basis::Identification }
    }

    /// Estimates the rate from the advance of sequence numbers, unless they are misleading. Headers and framing are
    /// extrapolated from the samples.
    #[inline(always)]
    fn by_sequence(&mut self, number: u32, span: &Span, time: Timestamp) -> Option<Measured> {
        let bits = 8e9 * self.wire_bytes(span);
        let rate = bits / span.length as f64;
        if self.is_implausible(rate, span) {
            return None;
        }
        let is_misleading = span.late > 0 && self.has_many_late_samples(span, time)
            || span.payload < span.advance && self.has_lost_samples(number, span, rate, time);
        self.record_sampled(number, span, time);
        let (lower, upper) = self.within_jitter(bits, bits, span);
        (!is_misleading).then_some(Measured { rate, lower, upper, basis: Basis::SequenceNumbers })
    }

    /// Adds the span to the sampling ratio: bytes sampled and bytes passed.
    #[inline(always)]
    fn record_sampled(&mut self, number: u32, span: &Span, time: Timestamp) {
        let load = self.load_of_port(number) as f64 * self.per_monitor_rate;
        // Retransmitted data has passed once, even if it was lost before the monitor port.
        let sampled = match span.late {
            0 => span.payload,
            late => {
                (f64::from(span.payload) * f64::from(span.samples + late) / f64::from(span.samples)) as u32
            }
        };
        let packet = f64::from(span.payload) / f64::from(span.samples);
        self.ratio.add(time.0, SampledSpan { sampled, advanced: span.advance, packet, load });
    }

    /// Whether so many samples were late that the sample count is more accurate than sequence numbers: the share of
    /// late ones exceeds the sampling noise.
    #[cold]
    fn has_many_late_samples(&mut self, span: &Span, time: Timestamp) -> bool {
        let Some(ratio) = self.ratio.at(time.0) else { return false };
        let late = f64::from(span.late);
        late * late > (1.0 - ratio.value) * f64::from(span.samples)
    }

    /// Whether part of the sequence advance was lost before the monitor port. Then the estimated rate exceeds the
    /// output link's capacity, and fewer packets were sampled than expected, by more than three standard deviations;
    /// by six if the link is not known.
    fn has_lost_samples(&mut self, number: u32, span: &Span, rate: f64, time: Timestamp) -> bool {
        let track = &self.tracks[number as usize];
        let deviations = match links_of(track)[1] {
            Some(link) if self.links.would_overflow(link, track.rate, rate as u64) => 3.0,
            Some(_) => return false,
            None => 6.0,
        };
        let Some(ratio) = self.ratio.at(time.0) else { return false };
        let expected = ratio.value * f64::from(span.advance);
        let packets = expected * f64::from(span.samples) / f64::from(span.payload.max(1));
        let missing = 1.0 - f64::from(span.payload) / expected;
        missing > deviations * ((1.0 - ratio.value) / packets).sqrt()
    }

    /// Estimates the rate from the samples, divided by the sampling ratio.
    ///
    /// The lower bound is what was sampled, which is certain. The upper bound is that of the score interval of a Poisson
    /// distribution, with the variance of draws that are not independent ([`Ratio`]), times [`UNEQUAL`].
    #[inline(always)]
    fn by_samples(&mut self, number: u32, span: &Span, time: Timestamp) -> Measured {
        let samples = f64::from(span.samples + span.late);
        let wire = match span.late {
            0 => f64::from(span.wire),
            _ => f64::from(span.wire) * samples / f64::from(span.samples),
        };
        let bits = 8e9 * wire;
        let sampled = bits / span.length as f64;
        let Some(ratio) = self.ratio.at(time.0) else {
            let (lower, _) = self.within_jitter(bits, bits, span);
            // The observed rate, if the queueing delay of samples is not known.
            let lower = if lower.is_nan() { sampled } else { lower };
            return Measured { rate: sampled, lower, upper: f64::INFINITY, basis: Basis::SamplesAlone };
        };
        if ratio.is_all() {
            let (lower, upper) = self.within_jitter(bits, bits, span);
            return Measured { rate: sampled, lower, upper, basis: Basis::SamplingRatio };
        }
        let error = relative_error(samples, &ratio);
        let plain = sampled / ratio.value;
        let rate = match self.per_monitor_rate {
            0.0 => plain,
            per_rate => {
                let others = self.load_of_port(number).saturating_sub(self.tracks[number as usize].rate);
                ratio.load_of(sampled * per_rate, others as f64 * per_rate) / per_rate
            }
        };
        let payload = f64::from(span.payload) / f64::from(span.samples);
        let rate = (rate * ratio.value / ratio.of_frames(payload)).max(sampled);
        if ratio.relative_error.is_nan() {
            // Too few spans for a bound of the ratio: what was sampled has passed.
            let (lower, _) = self.within_jitter(bits, bits, span);
            let lower = if lower.is_nan() { sampled } else { lower };
            return Measured { rate, lower, upper: f64::INFINITY, basis: Basis::SamplingRatio };
        }
        // Where the buffer counts frames and not bytes, short ones have the ratio of the others.
        let max = UNEQUAL * rate.max(plain * (1.0 + ratio.value)) * (1.0 + error);
        let min = sampled;
        let length = span.length as f64;
        let (lower, upper) = self.within_jitter(min * length, max * length, span);
        // The queueing delay of samples is not known: the interval covers only the sampling error.
        let (lower, upper) = if lower.is_nan() { (min, max) } else { (lower, upper) };
        Measured { rate, lower, upper, basis: Basis::SamplingRatio }
    }

    /// Rates of `min` and `max` bits in a span whose ends are uncertain by the queueing delay at the monitor port;
    /// NaN if that is not known. Bits are times 1e9.
    #[inline(always)]
    fn within_jitter(&self, min: f64, max: f64, span: &Span) -> (f64, f64) {
        let length = span.length as f64;
        match self.jitter {
            None => (f64::NAN, f64::NAN),
            Some(jitter) if jitter < length => (min / (length + jitter), max / (length - jitter)),
            Some(jitter) => (min / (length + jitter), f64::INFINITY),
        }
    }

    /// Whether a rate exceeds the fastest link even if the queueing delay has shortened its span.
    #[inline(always)]
    pub(super) fn is_implausible(&self, rate: f64, span: &Span) -> bool {
        let length = span.length as f64;
        rate * length > PLAUSIBLE * self.fastest * (length + self.jitter.unwrap_or(0.0))
    }

    /// The load of a flow's output port; the flow's own rate if the port is not known.
    #[inline]
    fn load_of_port(&self, number: u32) -> u64 {
        let track = &self.tracks[number as usize];
        let [_, output] = links_of(track);
        output.map_or(track.rate, |link| self.links.sum(link))
    }
    /// Bytes on the wire of a span with sequence numbers: the advance, with headers and framing extrapolated from its
    /// samples. One full-sized frame is added to the samples, so that a few small samples do not represent many large
    /// packets.
    #[inline(always)]
    fn wire_bytes(&self, span: &Span) -> f64 {
        if span.payload == span.advance {
            return f64::from(span.wire);
        }
        let full = self.full_frame;
        let (wire, payload) = (f64::from(span.wire) + full, f64::from(span.payload) + full - TCP_OVERHEAD);
        f64::max(f64::from(span.advance) * wire / payload, f64::from(span.wire))
    }
}

/// Returns by how much a rate from samples may be too low, as a share of it: the error of the number of samples and that
/// of the ratio together.
#[inline(always)]
fn relative_error(samples: f64, ratio: &Ratio) -> f64 {
    let variance = Z_95 * Z_95 * (1.0 - ratio.value) * ratio.dispersion / samples;
    let of_samples = variance / 2.0 + (variance + variance * variance / 4.0).sqrt();
    of_samples.hypot(ratio.relative_error)
}
