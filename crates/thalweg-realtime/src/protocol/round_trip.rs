//! The retransmission timeout (RFC 6298).

use thalweg_wire::Nanos;

use super::LinkOptions;

/// The timeout, from the round-trip times so far and the number of timeouts since the last acknowledgement.
pub(super) struct RoundTrip {
    /// SRTT and RTTVAR; none before the first measurement.
    estimate: Option<(Nanos, Nanos)>,
    /// The timeout is doubled as often.
    backoff: u32,
    initial: Nanos,
    min: Nanos,
    max: Nanos,
}

impl RoundTrip {
    pub(super) fn new(options: &LinkOptions) -> RoundTrip {
        RoundTrip {
            estimate: None,
            backoff: 0,
            initial: options.initial_timeout,
            min: options.min_timeout,
            max: options.max_timeout,
        }
    }

    /// Forgets everything: the peer is another one.
    pub(super) fn reset(&mut self) {
        (self.estimate, self.backoff) = (None, 0);
    }

    /// The peer answers: ends the backoff.
    pub(super) fn progressed(&mut self) {
        self.backoff = 0;
    }

    /// Takes a round-trip time: alpha = 1/8, beta = 1/4 (section 2).
    pub(super) fn measured(&mut self, sample: Nanos) {
        self.estimate = Some(match self.estimate {
            None => (sample, Nanos(sample.0 / 2)),
            Some((smoothed, variation)) => {
                let deviation = smoothed.0.abs_diff(sample.0);
                let variation =
                    Nanos((3 * u128::from(variation.0) + u128::from(deviation)).div_ceil(4) as u64);
                (Nanos(((7 * u128::from(smoothed.0) + u128::from(sample.0)) / 8) as u64), variation)
            }
        });
    }

    /// SRTT; none before the first measurement.
    pub(super) fn smoothed(&self) -> Option<Nanos> {
        self.estimate.map(|(smoothed, _)| smoothed)
    }

    /// A datagram was lost: doubles the timeout (section 5.5).
    pub(super) fn timed_out(&mut self) {
        self.backoff = (self.backoff + 1).min(u64::BITS - 1);
    }

    /// SRTT + 4 RTTVAR, at least the floor; doubled for each timeout, at most the cap.
    pub(super) fn timeout(&self) -> Nanos {
        let base = match self.estimate {
            None => self.initial,
            Some((smoothed, variation)) => {
                smoothed.saturating_add(Nanos(variation.0.saturating_mul(4))).max(self.min)
            }
        };
        Nanos(base.0.saturating_mul(1 << self.backoff)).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_round_trips_and_doubles_up_to_the_cap() {
        let micros = Nanos::from_micros;
        let options = LinkOptions {
            initial_timeout: micros(1_000),
            min_timeout: micros(500),
            max_timeout: micros(5_000),
            ..LinkOptions::default()
        };
        let mut round_trip = RoundTrip::new(&options);
        assert_eq!(round_trip.timeout(), micros(1_000));
        round_trip.measured(micros(400));
        assert_eq!(round_trip.timeout(), micros(400 + 4 * 200));
        round_trip.measured(micros(800));
        // RTTVAR = 3/4 200 + 1/4 400, SRTT = 7/8 400 + 1/8 800.
        assert_eq!(round_trip.timeout(), micros(450 + 4 * 250));
        round_trip.timed_out();
        assert_eq!(round_trip.timeout(), micros(2_900));
        (0..100).for_each(|_| round_trip.timed_out());
        assert_eq!(round_trip.timeout(), micros(5_000));
        round_trip.progressed();
        (0..100).for_each(|_| round_trip.measured(micros(10)));
        assert_eq!(round_trip.timeout(), micros(500));
        round_trip.measured(Nanos(u64::MAX));
        assert_eq!(round_trip.timeout(), micros(5_000));
    }
}
