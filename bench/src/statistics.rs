//! Numbers that stand for many.

/// Least, quartiles and greatest of a sample, as box plots show them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FiveNumbers {
    /// Least.
    pub min: f64,
    /// First quartile.
    pub lower: f64,
    /// Median.
    pub median: f64,
    /// Third quartile.
    pub upper: f64,
    /// Greatest.
    pub max: f64,
}

impl FiveNumbers {
    /// Of a sample in any order; all zero if it is empty.
    pub fn of(sample: &[f64]) -> FiveNumbers {
        let at = |share| quantile(sample, share);
        FiveNumbers { min: at(0.0), lower: at(0.25), median: at(0.5), upper: at(0.75), max: at(1.0) }
    }
}

/// The value that a share of the sample does not exceed, interpolated linearly between neighbours (type 7 of
/// Hyndman and Fan 1996); zero if the sample is empty.
pub fn quantile(sample: &[f64], share: f64) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share * last as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * place.fract()
}

/// The mean of a sample; zero if it is empty.
pub fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len().max(1) as f64
}

/// The middle of a sample; zero if it is empty.
pub fn median(sample: &[f64]) -> f64 {
    quantile(sample, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        assert_eq!(median(&[3.0, 1.0]), 2.0);
        assert_eq!(quantile(&[4.0, 0.0, 1.0, 3.0, 2.0], 0.25), 1.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
        assert_eq!(FiveNumbers::of(&[7.0]).max, 7.0);
    }
}
