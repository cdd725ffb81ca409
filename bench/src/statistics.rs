//! Summary statistics.

/// Minimum, quartiles and maximum of a sample, for box plots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FiveNumbers {
    /// Minimum.
    pub min: f64,
    /// First quartile.
    pub lower: f64,
    /// Median.
    pub median: f64,
    /// Third quartile.
    pub upper: f64,
    /// Maximum.
    pub max: f64,
}

impl FiveNumbers {
    /// Computes them for a sample in any order; all zero if it is empty.
    pub fn of(sample: &[f64]) -> FiveNumbers {
        let at = |share| quantile(sample, share);
        FiveNumbers { min: at(0.0), lower: at(0.25), median: at(0.5), upper: at(0.75), max: at(1.0) }
    }

    /// Returns them from minimum to maximum.
    pub fn in_order(self) -> [f64; 5] {
        [self.min, self.lower, self.median, self.upper, self.max]
    }
}

/// Returns the quantile of a sample for a share, interpolated linearly (type 7 of Hyndman and Fan 1996); zero if the
/// sample is empty.
pub fn quantile(sample: &[f64], share: f64) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share * last as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * place.fract()
}

/// Returns the mean of a sample; zero if it is empty.
pub fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len().max(1) as f64
}

/// Returns the median of a sample; zero if it is empty.
pub fn median(sample: &[f64]) -> f64 {
    quantile(sample, 0.5)
}

/// Returns half of the 95 % confidence interval of the mean, for about normally distributed values (Student 1908); NaN
/// with fewer than two values.
pub fn half_interval(sample: &[f64]) -> f64 {
    /// 97.5 % quantiles of Student's distribution for 1, 2 and so on degrees of freedom.
    const STUDENT: [f64; 19] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093,
    ];
    let Some(freedom) = sample.len().checked_sub(1).filter(|&freedom| freedom > 0) else { return f64::NAN };
    let mean = mean(sample);
    let variance = sample.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / freedom as f64;
    let quantile = STUDENT.get(freedom - 1).copied().unwrap_or(2.09);
    quantile * (variance / sample.len() as f64).sqrt()
}

/// Returns the 95 % confidence interval of the mean; NaN with fewer than two values.
pub fn interval(sample: &[f64]) -> (f64, f64) {
    let (mean, half) = (mean(sample), half_interval(sample));
    (mean - half, mean + half)
}

/// Formats the mean of a sample with its 95 % confidence interval: `5.87 ± 0.02`.
pub fn with_interval(sample: &[f64]) -> String {
    format!("{:.2} ± {:.2}", mean(sample), half_interval(sample))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated() {
        assert_eq!(median(&[3.0, 1.0]), 2.0);
        assert_eq!(quantile(&[4.0, 0.0, 1.0, 3.0, 2.0], 0.25), 1.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
        assert_eq!(FiveNumbers::of(&[7.0]).max, 7.0);
    }

    #[test]
    fn confidence_interval_uses_students_distribution() {
        // Mean 3, variance 2.5, standard error sqrt(0.5).
        assert!((half_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]) - 2.776 * 0.5f64.sqrt()).abs() < 1e-9);
        assert!(half_interval(&[1.0]).is_nan());
    }
}
