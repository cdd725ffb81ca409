//! Round-trip time estimation and the retransmission timeout (RFC 6298).

use thalweg_wire::Nanos;

/// Bounds of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// Before the first measurement. Default 1 s (RFC 6298, rule 2.1).
    pub initial: Nanos,
    /// The lower bound. Default 200 ms, that of Linux. RFC 6298 requires 1 s (rule 2.4). Data centres that tune for
    /// incast set 1 to 10 ms.
    pub min: Nanos,
    /// The upper bound, backed off or not. Default 60 s, the minimum of rule 2.5.
    pub max: Nanos,
}

impl Default for RtoConfig {
    fn default() -> RtoConfig {
        RtoConfig { initial: Nanos::from_secs(1), min: Nanos::from_millis(200), max: Nanos::from_secs(60) }
    }
}

/// The estimator: smoothed round-trip time, its variation, and the number of backoffs.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    config: RtoConfig,
    srtt: Option<Nanos>,
    rttvar: Nanos,
    min_rtt: Nanos,
    backoff: u32,
}

impl RttEstimator {
    /// An estimator without measurements.
    pub const fn new(config: RtoConfig) -> RttEstimator {
        RttEstimator { config, srtt: None, rttvar: Nanos::ZERO, min_rtt: Nanos(u64::MAX), backoff: 0 }
    }

    /// Adds a measurement, with alpha 1/8 and beta 1/4 (rules 2.2 and 2.3), and resets the backoff.
    #[inline]
    pub fn sample(&mut self, rtt: Nanos) {
        match self.srtt {
            None => (self.srtt, self.rttvar) = (Some(rtt), Nanos(rtt.0 / 2)),
            Some(srtt) => {
                self.rttvar = Nanos((3 * self.rttvar.0 + srtt.0.abs_diff(rtt.0)) / 4);
                self.srtt = Some(Nanos((7 * srtt.0 + rtt.0) / 8));
            }
        }
        self.min_rtt = self.min_rtt.min(rtt);
        self.backoff = 0;
    }

    /// Doubles the timeout after an expiry (rule 5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    /// Whether the timer has expired since the last measurement.
    pub const fn has_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// The retransmission timeout: SRTT + 4 RTTVAR within its bounds, doubled for each expiry. The granularity G of
    /// rule 2.3 is omitted: emulated clocks are exact to a slot, and the lower bound is far above it.
    #[inline]
    pub fn rto(&self) -> Nanos {
        let base =
            self.srtt.map_or(self.config.initial, |srtt| srtt.saturating_add(Nanos(4 * self.rttvar.0)));
        let bounded = base.max(self.config.min);
        Nanos(bounded.0.saturating_mul(1 << self.backoff)).min(self.config.max)
    }

    /// The smoothed round-trip time; `None` before the first measurement.
    pub const fn srtt(&self) -> Option<Nanos> {
        self.srtt
    }

    /// The shortest measurement; the maximum value before the first.
    pub const fn min_rtt(&self) -> Nanos {
        self.min_rtt
    }
}

/// 2^16 times the shortest timeout exceeds any reasonable upper bound.
const MAX_BACKOFF: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn unbounded() -> RttEstimator {
        RttEstimator::new(RtoConfig { min: Nanos::ZERO, ..RtoConfig::default() })
    }

    #[test]
    fn the_timeout_matches_rfc_6298_computed_by_hand() {
        let mut rtt = unbounded();
        assert_eq!(rtt.rto(), Nanos::from_secs(1), "2.1");
        rtt.sample(Nanos::from_micros(800));
        // 2.2: SRTT = 800, RTTVAR = 400, RTO = 800 + 4 * 400.
        assert_eq!((rtt.srtt(), rtt.rto()), (Some(Nanos::from_micros(800)), Nanos::from_micros(2400)));
        rtt.sample(Nanos::from_micros(1600));
        // 2.3: RTTVAR = 3/4 * 400 + 1/4 * 800 = 500, SRTT = 7/8 * 800 + 1/8 * 1600 = 900.
        assert_eq!((rtt.srtt(), rtt.rto()), (Some(Nanos::from_micros(900)), Nanos::from_micros(2900)));
        assert_eq!(rtt.min_rtt(), Nanos::from_micros(800));
    }

    #[test]
    fn the_timeout_doubles_until_the_next_measurement() {
        let mut rtt = unbounded();
        rtt.sample(Nanos::from_micros(800));
        let timeouts: Vec<u64> = (0..4)
            .map(|_| {
                rtt.back_off();
                rtt.rto().0 / 1000
            })
            .collect();
        assert_eq!(timeouts, [4800, 9600, 19_200, 38_400]);
        rtt.sample(Nanos::from_micros(800));
        assert_eq!(rtt.rto(), Nanos::from_micros(800 + 4 * 300));
    }

    #[test]
    fn the_timeout_stays_within_its_bounds() {
        let mut rtt = RttEstimator::new(RtoConfig::default());
        rtt.sample(Nanos::from_micros(100));
        assert_eq!(rtt.rto(), Nanos::from_millis(200));
        (0..100).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), Nanos::from_secs(60));
    }
}
