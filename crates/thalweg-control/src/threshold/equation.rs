//! Equation 3.2 of the dissertation: R = alpha (C - r), without a simulation.

use thalweg_wire::BitRate;

use super::tag::Tag;

/// Returns alpha (C - r): a share of the link's headroom. `scale` is alpha for a burstiness of 1; alpha is inversely
/// proportional to burstiness, and at most 1.
pub fn threshold(tag: &Tag, link_rate: BitRate, scale: f64) -> BitRate {
    let headroom = link_rate.0.saturating_sub(tag.mean_rate.0) as f64;
    let alpha = match tag.burstiness > 0.0 {
        true => (scale / tag.burstiness).min(1.0),
        false => 1.0,
    };
    BitRate((alpha * headroom) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_share_of_the_headroom() {
        let of = |rate, burstiness| {
            threshold(&Tag { mean_rate: BitRate(rate), burstiness }, BitRate(1_000), 0.25).0
        };
        assert_eq!((of(200, 0.5), of(200, 0.1), of(200, 0.0), of(1_200, 0.5)), (400, 800, 800, 0));
    }
}
