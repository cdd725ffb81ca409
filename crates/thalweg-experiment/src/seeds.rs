//! Runs of a sweep that differ only in their seed: their means, with confidence intervals.

use crate::results::SweepResults;

/// A mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean of the runs.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval, by Student's t; `None` for one run.
    pub half_width: Option<f64>,
}

impl Mean {
    /// Returns the mean of the finite values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Mean> {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        if values.is_empty() {
            return None;
        }
        let half_width = (values.len() > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            student_t(values.len() - 1) * (squares / (count - 1.0) / count).sqrt()
        });
        Some(Mean { mean, half_width })
    }
}

/// The 97.5th percentile of Student's t distribution: within 0.001 above thirty degrees of freedom, by the first terms of its
/// expansion around the normal distribution (Abramowitz and Stegun 26.7.5).
fn student_t(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    let z: f64 = 1.959_964;
    match degrees.checked_sub(1).and_then(|index| TABLE.get(index)) {
        Some(&quantile) => quantile,
        None => z + (z.powi(3) + z) / (4.0 * degrees as f64),
    }
}

/// Runs that differ only in their seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The values of the other keys.
    pub values: Vec<String>,
    /// The indices of the runs.
    pub runs: Vec<usize>,
}

/// Returns the keys of a sweep other than the seed, and its groups in order of appearance; `None` if the seed was not swept.
pub fn groups(results: &SweepResults) -> Option<(Vec<String>, Vec<Group>)> {
    let seed = results.keys.iter().position(|key| key == "seed")?;
    let without = |values: &[String]| {
        let others = values.iter().enumerate().filter(|(index, _)| *index != seed);
        others.map(|(_, value)| value.clone()).collect::<Vec<String>>()
    };
    let mut groups: Vec<Group> = Vec::new();
    for (index, run) in results.runs.iter().enumerate() {
        let values = without(&run.values);
        match groups.iter_mut().find(|group| group.values == values) {
            Some(group) => group.runs.push(index),
            None => groups.push(Group { values, runs: vec![index] }),
        }
    }
    groups.iter().any(|group| group.runs.len() > 1).then(|| (without(&results.keys), groups))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: `t.test(c(5, 7, 9))`, `t.test(1:40)`.
    #[test]
    fn intervals_are_those_of_student() {
        let of_three = Mean::of([5.0, 7.0, 9.0, f64::NAN]).unwrap();
        assert_eq!(of_three.mean, 7.0);
        assert!((of_three.half_width.unwrap() - 4.968).abs() < 0.001, "{of_three:?}");
        let of_forty = Mean::of((1..=40).map(f64::from)).unwrap();
        assert!((of_forty.half_width.unwrap() - 3.7388).abs() < 0.005, "{of_forty:?}");
        assert_eq!(Mean::of([3.0]), Some(Mean { mean: 3.0, half_width: None }));
        assert_eq!(Mean::of([f64::NAN]), None);
    }
}
