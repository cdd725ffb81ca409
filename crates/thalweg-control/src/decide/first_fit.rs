//! Hedera's global first fit (Al-Fares et al., NSDI 2010, section 4.3), which Planck is compared with (section 7.1).
//!
//! Periodically considers all flows in order. Each flow takes the first path whose links all have room for its
//! [demand](super::demand) in addition to the flows before it. A flow that fits nowhere keeps its path.

use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::demand::demands;
use super::{Alternative, Cause, Decider, Decision, PairRate, Pins, Verdict};
use crate::pair::Pair;
use crate::routes::{LinkNumber, Paths};

/// Relative tolerance for rounding errors: demands are sums of shares.
const ROUNDING: f64 = 1e-6;

/// The global first-fit decider.
#[derive(Clone, Copy, Debug)]
pub struct FirstFit {
    interval: Nanos,
}

impl FirstFit {
    /// Creates a decider that runs at this interval: 1 s and 0.1 s in the paper.
    pub fn new(interval: Nanos) -> FirstFit {
        FirstFit { interval }
    }
}

impl Decider for FirstFit {
    fn name(&self) -> &'static str {
        "first_fit"
    }

    fn poll_interval(&self) -> Option<Nanos> {
        Some(self.interval)
    }

    fn on_poll(
        &mut self,
        flows: &[PairRate],
        now: Timestamp,
        pins: &Pins,
        paths: &mut Paths,
        decisions: &mut Vec<Decision>,
    ) {
        let pairs: Vec<Pair> = flows.iter().map(|flow| flow.pair).collect();
        let mut used = vec![0.0; paths.links()];
        for (flow, share) in flows.iter().zip(demands(&pairs)) {
            let &PairRate { pair, address: from, rate, .. } = flow;
            let alternatives = alternatives(pair, &used, paths);
            let access = paths.of(pair, from).and_then(|links| links.last().copied());
            let demand = share * access.map_or(0.0, |link| paths.capacity(link).0 as f64);
            let fits = |path: &&Alternative| {
                path.expected.0 as f64 >= demand * (1.0 - ROUNDING) && !paths.is_broken(pair, path.address)
            };
            let is_pinned = pins.contains_key(&pair);
            let to = match alternatives.iter().find(fits) {
                Some(path) if !is_pinned => path.address,
                _ => from,
            };
            for link in paths.of(pair, to).unwrap_or_default() {
                used[link.0 as usize] += demand;
            }
            let verdict = match to == from {
                _ if is_pinned => Verdict::Pinned,
                true => Verdict::Keep,
                false => Verdict::Reroute,
            };
            decisions.push(Decision {
                pair,
                time: now,
                cause: Cause::Poll,
                rate,
                from,
                to,
                verdict,
                flow_moves: 0,
                alternatives,
            });
        }
    }
}

/// Returns each path with the capacity that is left on it.
fn alternatives(pair: Pair, used: &[f64], paths: &mut Paths) -> Vec<Alternative> {
    let alternatives = (0..paths.addresses()).filter_map(|address| {
        let links: Vec<LinkNumber> = paths.of(pair, address)?.to_vec();
        let left = |link: LinkNumber| {
            (paths.capacity(link).0 as f64 - used[link.0 as usize]).max(0.0).round() as u64
        };
        let (left, tightest) = links.into_iter().map(|link| (left(link), link)).min()?;
        Some(Alternative { address, expected: BitRate(left), tightest })
    });
    alternatives.collect()
}
