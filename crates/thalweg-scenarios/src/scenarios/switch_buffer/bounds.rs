//! The claims about losses, with bounds that were fixed before the first measurement.
//!
//! | claim | source of the bound |
//! |---|---|
//! | losses or none in each case | table 3.3 |
//! | case 1: about half of the link | figure 3.9a: 500 Mbit/s of 1 Gbit/s |
//! | case 1: the congestion window stays | figure 3.9a: 59.4 KB all the time |
//! | case 2: the congestion window rises and falls | figure 3.10a |

use super::Results;
use super::run::Run;
use crate::quantiles::mean;
use crate::scenarios::isolate::bounds::Check;

/// Windows are compared from this second on, after slow start.
pub const STEADY_FROM: usize = 5;

/// Checks all claims.
pub fn check(results: &Results) -> Vec<Check> {
    let mut checks = Vec::new();
    for case in &results.parameters.cases {
        let loses = mean(results.runs(case.number).map(|run| f64::from(u8::from(run.loses()))));
        let (what, range) = match case.loses {
            true => ("losses", [0.9, 1.0]),
            false => ("no losses", [0.0, 0.1]),
        };
        let claim = format!("case {}: {what}, share of runs with losses", case.number);
        checks.push(Check::new(claim, loses, range, ""));
    }
    let link = results.parameters.link_rate.0 as f64;
    let share = mean(results.runs(1).map(|run| 100.0 * run.flow_rate_bps / link));
    checks.push(Check::new("case 1: share of the link".to_owned(), share, [40.0, 65.0], "%"));
    // A run that ends before is not compared.
    let ratio = |run: &Run| {
        let (least, most) = run.cwnd_range(STEADY_FROM)?;
        Some(most as f64 / least.max(1) as f64)
    };
    let ratios = |number| results.runs(number).filter_map(ratio);
    if ratios(1).next().is_some() {
        let greatest = ratios(1).fold(0.0, f64::max);
        let claim = "case 1: the congestion window stays: greatest over least".to_owned();
        checks.push(Check::new(claim, greatest, [1.0, 1.1], ""));
        let least = ratios(2).fold(f64::INFINITY, f64::min);
        let claim = "case 2: the congestion window rises and falls: greatest over least".to_owned();
        checks.push(Check::new(claim, least, [1.2, f64::INFINITY], ""));
    }
    checks
}
