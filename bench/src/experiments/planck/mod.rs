//! What Planck claims (Rasley et al., SIGCOMM 2014, section 5), in virtual time: one module an experiment.
//!
//! One switch of the emulator ([`rack`]) has a monitor port that all its ports are mirrored to; the collector sees what
//! comes out of it ([`estimates`]), and is held against what has really passed the switch ([`truth`]). The same
//! seeds give the same numbers.
//!
//! | module | figure or table |
//! |---|---|
//! | [`bursts`] | figures 5 to 7: how many packets of a flow come in a row, and how many of others between |
//! | [`latency`] | figures 8 and 9: how late samples are |
//! | [`slow_start`] | figure 10: a rolling average against bursts while a flow starts |
//! | [`error`] | figure 11: error over oversubscription, and samplers with as many samples |
//! | [`timeline`] | figure 12 and table 1: from a packet to an estimate |

pub(super) mod bursts;
pub(super) mod error;
mod estimates;
pub(super) mod latency;
mod rack;
pub(super) mod slow_start;
#[cfg(test)]
mod tests;
pub(super) mod timeline;
mod truth;

use thalweg_wire::{Nanos, Timestamp};

use super::flexplane::Study;

/// After this a flow that is not held up has left slow start, with a round trip of 190 us.
const STARTED: Timestamp = Timestamp(5_000_000);

/// Points of a distribution in a plot.
const POINTS: usize = 400;

impl Study<'_> {
    /// How long each run lasts: `default`, unless told otherwise.
    fn duration(&self, default: Nanos) -> Nanos {
        self.seconds.map_or(default, |seconds| Nanos((seconds * 1e9) as u64))
    }
}

/// Points of a cumulative distribution: values, and the share of the sample that is no greater.
fn distribution(mut sample: Vec<f64>) -> Vec<(f64, f64)> {
    sample.sort_by(f64::total_cmp);
    let Some(last) = sample.len().checked_sub(1) else { return Vec::new() };
    let point = |part: usize| (sample[last * part / POINTS], part as f64 / POINTS as f64);
    (0..=POINTS).map(point).collect()
}

/// Microseconds.
fn us(span: Nanos) -> f64 {
    span.0 as f64 / 1e3
}
