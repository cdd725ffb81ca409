//! Bernoulli trials: the number of successes in `n` trials, and the number of failures before the first success.
//!
//! Counts are exact binomial draws. Up to ten expected successes, the gaps between successes are drawn. Beyond that,
//! transformed rejection with squeeze (Hörmann 1993, algorithm BTRS) takes 1.15 attempts on average for any `n`.

use crate::random::Random;

/// Expected successes above which rejection is valid (Hörmann 1993, section 3) and cheaper than drawing gaps.
const REJECTION_MIN: f64 = 10.0;

/// Independent trials with the same success probability.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trials {
    probability: f64,
    /// Logarithm of the failure probability.
    ln_failure: f64,
}

impl Trials {
    /// Returns trials with one success in `interval` on average.
    pub(super) fn one_in(interval: u32) -> Trials {
        let probability = 1.0 / f64::from(interval);
        Trials { probability, ln_failure: libm::log1p(-probability) }
    }

    /// Returns the probability of a success.
    pub(super) fn probability(self) -> f64 {
        self.probability
    }

    /// Returns the probability of at least one success in `n` trials.
    #[inline]
    pub(super) fn any(self, n: u64) -> f64 {
        if self.probability == 1.0 { 1.0 } else { -libm::expm1(n as f64 * self.ln_failure) }
    }

    /// Draws the number of failures before a success: geometric.
    #[inline]
    pub(super) fn failures(self, random: &mut Random) -> u64 {
        if self.probability == 1.0 {
            return 0;
        }
        (libm::log(random.unit()) / self.ln_failure) as u64
    }

    /// Draws the number of failures before the first success of `n` trials, given at least one success: below `n`.
    #[inline]
    pub(super) fn failures_within(self, n: u64, random: &mut Random) -> u64 {
        if self.probability == 1.0 {
            return 0;
        }
        let failures = libm::log1p(-random.unit() * self.any(n)) / self.ln_failure;
        (failures as u64).min(n - 1)
    }

    /// Draws the number of successes in `n` trials: binomial.
    pub(super) fn successes(self, n: u64, random: &mut Random) -> u64 {
        let p = self.probability;
        if p == 1.0 {
            n
        } else if p > 0.5 {
            let complement = Trials { probability: 1.0 - p, ln_failure: libm::log(p) };
            n - complement.successes(n, random)
        } else if n as f64 * p < REJECTION_MIN {
            self.by_gaps(n, random)
        } else {
            self.by_rejection(n, random)
        }
    }

    fn by_gaps(self, n: u64, random: &mut Random) -> u64 {
        let (mut successes, mut trial) = (0, self.failures(random));
        while trial < n {
            successes += 1;
            trial = trial.saturating_add(1).saturating_add(self.failures(random));
        }
        successes
    }

    fn by_rejection(self, n: u64, random: &mut Random) -> u64 {
        let (trials, p) = (n as f64, self.probability);
        let odds = p / (1.0 - p);
        let deviation = (trials * p * (1.0 - p)).sqrt();
        let b = 1.15 + 2.53 * deviation;
        let a = -0.0873 + 0.0248 * b + 0.01 * p;
        let centre = trials * p + 0.5;
        let squeeze = 0.92 - 4.2 / b;
        let alpha = (2.83 + 5.1 / b) * deviation;
        let mode = libm::floor((trials + 1.0) * p);
        loop {
            let (u, v) = (random.unit() - 0.5, random.unit());
            let us = 0.5 - u.abs();
            let k = libm::floor((2.0 * a / us + b) * u + centre);
            if us >= 0.07 && v <= squeeze {
                return k as u64;
            }
            if !(0.0..=trials).contains(&k) {
                continue;
            }
            let v = libm::log(v * alpha / (a / (us * us) + b));
            let bound = (mode + 0.5) * libm::log((mode + 1.0) / (odds * (trials - mode + 1.0)))
                + (trials + 1.0) * libm::log((trials - mode + 1.0) / (trials - k + 1.0))
                + (k + 0.5) * libm::log(odds * (trials - k + 1.0) / (k + 1.0))
                + stirling_tail(mode)
                + stirling_tail(trials - mode)
                - stirling_tail(k)
                - stirling_tail(trials - k);
            if v <= bound {
                return k as u64;
            }
        }
    }
}

/// The error term of Stirling's formula for `ln k!`: `ln k! - ln sqrt(2 pi) - (k + 1/2) ln(k + 1) + (k + 1)`.
fn stirling_tail(k: f64) -> f64 {
    const EXACT: [f64; 10] = [
        0.081_061_466_795_327_2,
        0.041_340_695_955_409_2,
        0.027_677_925_684_998_3,
        0.020_790_672_103_765_0,
        0.016_644_691_189_821_1,
        0.013_876_128_823_070_7,
        0.011_896_709_945_891_7,
        0.010_411_265_261_972_0,
        0.009_255_462_182_712_7,
        0.008_330_563_433_363_1,
    ];
    if let Some(&tail) = EXACT.get(k as usize) {
        return tail;
    }
    let square = (k + 1.0) * (k + 1.0);
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the probability of each count, by the recurrence of the binomial distribution.
    fn distribution(n: u64, p: f64) -> Vec<f64> {
        let mut probabilities = vec![(n as f64 * (1.0 - p).ln()).exp()];
        for k in 0..n {
            let next = probabilities[k as usize] * (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
            probabilities.push(next);
        }
        probabilities
    }

    /// 200,000 draws each, over all counts with at least 20 expected draws: chi-square over its degrees of freedom stays
    /// below 1 + 6 sqrt(2 / df), a false alarm with probability below 1e-6 (one seed each).
    #[test]
    fn counts_are_binomial_for_both_algorithms() {
        const DRAWS: u32 = 200_000;
        for (n, interval) in [(9_000, 1_000), (20_000, 1_000), (60, 3), (40, 2), (500_000, 10_000)] {
            let trials = Trials::one_in(interval);
            let mut random = Random::new(u64::from(interval) + n);
            let mut counts = vec![0u32; n as usize + 1];
            for _ in 0..DRAWS {
                counts[trials.successes(n, &mut random) as usize] += 1;
            }
            let (mut chi_square, mut cells) = (0.0, 0);
            for (count, probability) in counts.iter().zip(distribution(n, trials.probability())) {
                let expected = probability * f64::from(DRAWS);
                if expected >= 20.0 {
                    chi_square += (f64::from(*count) - expected).powi(2) / expected;
                    cells += 1;
                }
            }
            let freedom = f64::from(cells - 1);
            assert!(
                chi_square / freedom < 1.0 + 6.0 * (2.0 / freedom).sqrt(),
                "{n} {interval}: {chi_square}"
            );
        }
    }

    /// Means of 100,000 draws are within six standard deviations of the expected mean (a false alarm below 2e-8).
    #[test]
    fn failures_before_a_success_are_geometric() {
        let trials = Trials::one_in(1_000);
        let mut random = Random::new(7);
        let mut mean = |draw: &dyn Fn(&mut Random) -> u64| {
            (0..100_000).map(|_| draw(&mut random) as f64).sum::<f64>() / 1e5
        };
        let free = mean(&|random| trials.failures(random));
        assert!((free - 999.0).abs() < 6.0 * 1_000.0 / 100_000f64.sqrt(), "{free}");
        // The first of ten trials to succeed is nearly uniform: 4.5 minus (n^2 - 1) p / 12 = 0.008.
        let within = mean(&|random| trials.failures_within(10, random));
        assert!((within - 4.492).abs() < 6.0 * 2.87 / 100_000f64.sqrt(), "{within}");
    }

    #[test]
    fn without_sampling_every_trial_succeeds() {
        let (every, mut random) = (Trials::one_in(1), Random::new(1));
        assert_eq!(every.successes(12_345, &mut random), 12_345);
        assert_eq!((every.failures(&mut random), every.failures_within(3, &mut random)), (0, 0));
        assert_eq!(every.any(1), 1.0);
    }
}
