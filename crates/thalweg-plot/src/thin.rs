//! Fewer points that look the same.

/// Of each run of points in the same column of pixels the first, the lowest, the highest and the last, in their order:
/// so that a line through them covers the pixels that one through all would, and no extreme is lost. `column` is the
/// place of a point's `x`; points are in order of it.
pub(crate) fn thinned(points: &[(f64, f64)], column: impl Fn(f64) -> i64) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    for run in points.chunk_by(|left, right| column(left.0) == column(right.0)) {
        let by_y = |left: &usize, right: &usize| run[*left].1.total_cmp(&run[*right].1);
        let last = run.len() - 1;
        let lowest = (0..run.len()).min_by(by_y).unwrap_or(0);
        let highest = (0..run.len()).max_by(by_y).unwrap_or(0);
        let mut indices = [0, lowest.min(highest), lowest.max(highest), last].to_vec();
        indices.dedup();
        kept.extend(indices.into_iter().map(|index| run[index]));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pixel_column_keeps_its_ends_and_its_extremes() {
        let points = [(0.0, 5.0), (0.1, 9.0), (0.2, 6.0), (0.3, 1.0), (0.9, 4.0), (1.0, 7.0)];
        let kept = thinned(&points, |x| x as i64);
        assert_eq!(kept, [(0.0, 5.0), (0.1, 9.0), (0.3, 1.0), (0.9, 4.0), (1.0, 7.0)]);
        assert_eq!(thinned(&points, |x| (x * 10.0) as i64).len(), points.len());
        assert_eq!(thinned(&[], |_| 0), []);
    }

    #[test]
    fn a_million_points_become_four_per_pixel_column() {
        let points: Vec<_> = (0..1_000_000u32).map(|n| (f64::from(n), f64::from(n % 977))).collect();
        let kept = thinned(&points, |x| (x / 1_000.0) as i64);
        assert!(kept.len() <= 4 * 1_000, "{}", kept.len());
        assert_eq!(kept.iter().map(|point| point.1).fold(0.0, f64::max), 976.0);
    }
}
