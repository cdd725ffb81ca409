//! Claims of Planck (Rasley et al., SIGCOMM 2014, section 5), in virtual time: one module per experiment.
//!
//! An emulated switch ([`rack`]) mirrors all its ports to a monitor port. The collector's estimates ([`estimates`]) are
//! compared with the packets that passed the switch ([`truth`]). The same seeds give the same numbers.
//!
//! | module | figure or table |
//! |---|---|
//! | [`bursts`] | figures 5 to 7: length of a flow's bursts, and number of other packets in between |
//! | [`latency`] | figures 8 and 9: latency of samples |
//! | [`slow_start`] | figure 10: rolling average and burst estimates of a starting flow |
//! | [`error`] | figure 11: error by oversubscription, compared with samplers with as many samples |
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

/// After this time an undisturbed flow has left slow start, with a round trip of 190 us.
const STARTED: Timestamp = Timestamp(5_000_000);

/// Points of a distribution in a plot.
const POINTS: usize = 400;

impl Study<'_> {
    /// How long each run lasts: `default`, unless report otherwise.
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
