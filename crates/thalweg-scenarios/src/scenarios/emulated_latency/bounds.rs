//! The claims about the latency of the emulation, with bounds that were fixed before the first measurement.
//!
//! | claim | source of the bound |
//! |---|---|
//! | added latency at 10,000 packets/s: p50 at most 60 us, p99 at most 300 us | our aim; figure 3: 33.8 against 14.9 us in the median, on separate machines |
//! | none lost, none twice, none overtaken at this rate | each packet is sent once, in its order |
//! | few slots are late | the arbiter's own rule |

use super::{CLAIMED_RATE, Path, Results};
use crate::quantiles::Quantiles;
use crate::scenarios::isolate::bounds::Check;

/// Checks all claims.
pub fn check(results: &Results) -> Vec<Check> {
    let latency = |path| results.at(CLAIMED_RATE, path).map(|it| it.latency);
    let added = |value: fn(&Quantiles) -> u64| match latency(Path::Bare).zip(latency(Path::Emulated)) {
        Some((bare, emulated)) if bare.count > 0 && emulated.count > 0 => {
            (value(&emulated) as f64 - value(&bare) as f64) / 1e3
        }
        _ => f64::INFINITY,
    };
    let wrong = results
        .at(CLAIMED_RATE, Path::Emulated)
        .map_or(f64::INFINITY, |it| (it.lost + it.duplicates + it.reordered) as f64);
    let claim = |what: &str| format!("{CLAIMED_RATE} packets/s: {what}");
    let late = if results.arbiter(CLAIMED_RATE).is_some_and(|it| it.valid) { 0.0 } else { 1.0 };
    vec![
        Check::new(claim("added latency, p50"), added(|it| it.p50_ns), [0.0, 60.0], "us"),
        Check::new(claim("added latency, p99"), added(|it| it.p99_ns), [0.0, 300.0], "us"),
        Check::new(claim("packets lost, twice or overtaken"), wrong, [0.0, 0.0], ""),
        Check::new(claim("the arbiter calls the run invalid"), late, [0.0, 0.0], ""),
    ]
}
