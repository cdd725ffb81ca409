//! The claims about throughput and queues, with bounds that were fixed before the first measurement.
//!
//! | claim | source of the bounds |
//! |---|---|
//! | goodput within 2 % of what the link leaves for payload | our aim |
//! | DropTail's queue is close to its buffer, and varies most | section 5.1; CUBIC leaves 70 % of a window after a loss |
//! | RED's queue is between its thresholds, or near | section 5.1 |
//! | DCTCP's queue is near K, and varies least | section 5.1; 5 flows and a round trip of 13 packets oscillate between 50 and 70 |
//! | median queue of real TCP over that of emulated hosts: 0.8 to 1.25 | our aim: both are TCP at the same round trip |
//! | the emulation protocol takes at most 2 % | the paper's 1 to 2 % |
//! | few slots are late | the arbiter's own rule |
//! | endpoints decide on every packet | each packet is sent once or dropped once |

use super::experiment::Scheme;
use super::{Results, link_payload};
use crate::scenarios::isolate::bounds::Check;

/// Bounds of the median queue in packets.
const fn median_bounds(scheme: Scheme) -> [f64; 2] {
    match scheme {
        Scheme::DropTail => [717.0, 1_024.0],
        Scheme::Red => [100.0, 350.0],
        Scheme::Dctcp => [30.0, 100.0],
    }
}

/// Checks all claims.
pub fn check(results: &Results) -> Vec<Check> {
    let payload = link_payload(results.rate);
    let mut checks = Vec::new();
    let schemes = results.schemes();
    for it in &schemes {
        let claim = |what: &str| format!("{}: {what}", it.scheme.name());
        let (real, hosts) = (&it.real, &it.hosts);
        let percent = 100.0 * real.goodput_bps / payload;
        checks.push(Check::new(claim("goodput of the link's payload rate"), percent, [98.0, 100.5], "%"));
        let median = f64::from(real.queue.median);
        checks.push(Check::new(claim("queue, median"), median, median_bounds(it.scheme), "packets"));
        let ratio = median / f64::from(hosts.queue.median);
        checks.push(Check::new(claim("median queue over that of emulated hosts"), ratio, [0.8, 1.25], ""));
    }
    let deviation = |scheme| {
        let of_scheme = schemes.iter().find(|it| it.scheme == scheme);
        of_scheme.map_or(f64::NAN, |it| it.real.queue.deviation)
    };
    let [tail, red, dctcp] = Scheme::ALL.map(deviation);
    let ratios = [
        ("RED's queue varies less than DropTail's: ratio", red / tail),
        ("DCTCP's less than RED's: ratio", dctcp / red),
    ];
    checks.extend(ratios.map(|(claim, ratio)| Check::new(claim.to_owned(), ratio, [0.0, 1.0], "")));
    let most = |of: fn(&super::Run) -> f64| results.runs.iter().map(of).fold(0.0, f64::max);
    let share = most(|run| 100.0 * run.protocol_share);
    checks.push(Check::new("bytes of the emulation protocol, at most".to_owned(), share, [0.0, 2.0], "%"));
    let invalid = results.runs.iter().filter(|run| !run.arbiter.valid).count() as f64;
    checks.push(Check::new("runs that the arbiter calls invalid".to_owned(), invalid, [0.0, 0.0], ""));
    let undecided = results.runs.iter().map(|run| run.undecided_packets).sum::<u64>() as f64;
    checks.push(Check::new("packets without a decision".to_owned(), undecided, [0.0, 0.0], ""));
    checks
}
