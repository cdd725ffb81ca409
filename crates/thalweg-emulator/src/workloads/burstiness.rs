//! The burstiness of traffic: the coefficient of variation of the bytes in windows of T1 over T2 (Maji, dissertation,
//! University of Virginia 2018, section 4.1).
//!
//! For the Poisson Pareto burst process it has a closed form, see [`of_bursts`]. The values that the dissertation shows
//! are higher and come from another routine: see
//! [`published_burstiness`](crate::workloads::burst_process::published_burstiness).

use crate::workloads::burst_process::BurstProcess;

/// Bytes by window, summarised. 48 bytes, O(1) per packet and per window.
#[derive(Clone, Copy, Debug)]
pub struct Burstiness {
    window_ps: u64,
    /// The end of the current window, and the bytes in it.
    end_ps: u64,
    bytes: u64,
    /// Complete windows: their number, mean, and sum of squared deviations (Welford 1962).
    count: u64,
    mean: f64,
    squares: f64,
}

impl Burstiness {
    /// Without packets, with windows of `window_ps` picoseconds (T1), at least 1.
    pub fn new(window_ps: u64) -> Burstiness {
        let window_ps = window_ps.max(1);
        Burstiness { window_ps, end_ps: window_ps, bytes: 0, count: 0, mean: 0.0, squares: 0.0 }
    }

    /// Adds a packet. Packets are in order of time.
    #[inline]
    pub fn add(&mut self, at_ps: u64, length: u16) {
        while at_ps >= self.end_ps {
            self.close();
        }
        self.bytes += u64::from(length);
    }

    /// Closes the windows that end by `at_ps`.
    pub fn finish(&mut self, at_ps: u64) {
        while at_ps >= self.end_ps {
            self.close();
        }
    }

    fn close(&mut self) {
        let bytes = std::mem::take(&mut self.bytes) as f64;
        self.count += 1;
        let deviation = bytes - self.mean;
        self.mean += deviation / self.count as f64;
        self.squares += deviation * (bytes - self.mean);
        self.end_ps += self.window_ps;
    }

    /// Standard deviation divided by mean, over complete windows; NaN without any bytes in them.
    pub fn value(&self) -> f64 {
        (self.squares / self.count as f64).sqrt() / self.mean
    }

    /// The mean rate over complete windows, in bits per second; NaN without any.
    pub fn mean_bps(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { 8e12 * self.mean / self.window_ps as f64 }
    }
}

/// The burstiness of a burst process without packets, with windows of `window_seconds`.
///
/// Active bursts are those of an M/G/infinity queue, whose covariance at distance u is lambda times the integral of
/// P(duration > x) over x > u (Cox and Isham 1980). The variance of a window follows by integrating it twice. By the
/// midpoint rule, to 1e-6.
pub fn of_bursts(process: &BurstProcess, window_seconds: f64) -> f64 {
    const STEPS: u32 = 20_000;
    let shape = 3.0 - 2.0 * process.hurst;
    let shortest = process.mean_seconds * (shape - 1.0) / shape;
    let longer_than = |u: f64| match u < shortest {
        true => shortest - u + shortest / (shape - 1.0),
        false => shortest / (shape - 1.0) * libm::pow(shortest / u, shape - 1.0),
    };
    let step = window_seconds / f64::from(STEPS);
    let points = (0..STEPS).map(|index| (f64::from(index) + 0.5) * step);
    let integral: f64 = points.map(|u| (window_seconds - u) * longer_than(u) * step).sum();
    let mean = process.bursts_per_second * process.mean_seconds * window_seconds;
    (2.0 * process.bursts_per_second * integral).sqrt() / mean
}

#[cfg(test)]
mod tests {
    use thalweg_wire::BitRate;

    use super::*;

    #[test]
    fn burstiness_is_deviation_over_mean_with_empty_windows() {
        let mut burstiness = Burstiness::new(100);
        for at_ps in [0, 99, 100, 399] {
            burstiness.add(at_ps, 1_500);
        }
        burstiness.finish(400);
        // 3,000, 1,500, 0, 1,500: mean 1,500, variance 1,125,000.
        assert!((burstiness.value() - 1_125_000f64.sqrt() / 1_500.0).abs() < 1e-12);
        assert!((burstiness.mean_bps() - 8e12 * 6_000.0 / 400.0).abs() < 1.0);
        assert!(Burstiness::new(100).value().is_nan());
    }

    /// With the dissertation's durations and windows of 100 ms, the integral is (7/3 + 2 ln 2 - 1) of the shortest
    /// duration cubed.
    #[test]
    fn closed_form_of_the_dissertations_process() {
        for bursts_per_second in [10.0, 100.0, 600.0] {
            let process = BurstProcess::of_dissertation(bursts_per_second, BitRate(200_000_000));
            let expected = (2.0 * (7.0 / 3.0 + 2.0 * 2f64.ln() - 1.0) / 0.8 / bursts_per_second).sqrt();
            assert!((of_bursts(&process, 0.1) / expected - 1.0).abs() < 1e-6, "{expected}");
        }
    }
}
