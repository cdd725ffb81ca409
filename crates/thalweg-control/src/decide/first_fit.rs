//! Hedera's global first fit (Al-Fares et al., NSDI 2010, section 4.3), as Planck is compared with (section 7.1).
//!
//! Every so often all flows are looked at, in order: each takes the first path all of whose links have room for its
//! [demand](super::demand) beside the flows before it. One that fits nowhere stays where it is.

use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::demand::demands;
use super::{Alternative, Cause, Decider, Decision, Observed, Pins, Verdict};
use crate::pair::Pair;
use crate::routes::{LinkNumber, Paths};

/// Demands are sums of shares; what is over by rounding alone still fits.
const ROUNDING: f64 = 1e-6;

/// Global first fit at work.
#[derive(Clone, Copy, Debug)]
pub struct FirstFit {
    interval: Nanos,
}

impl FirstFit {
    /// Looks at all flows this often: 1 s and 0.1 s in the paper.
    pub fn new(interval: Nanos) -> FirstFit {
        FirstFit { interval }
    }
}

impl Decider for FirstFit {
    fn name(&self) -> &'static str {
        "first_fit"
    }

    fn polls(&self) -> Option<Nanos> {
        Some(self.interval)
    }

    fn polled(
        &mut self,
        flows: &[Observed],
        now: Timestamp,
        pins: &Pins,
        paths: &mut Paths,
        decisions: &mut Vec<Decision>,
    ) {
        let pairs: Vec<Pair> = flows.iter().map(|flow| flow.pair).collect();
        let mut taken = vec![0.0; paths.links()];
        for (flow, share) in flows.iter().zip(demands(&pairs)) {
            let Observed { pair, address: from, rate } = *flow;
            let alternatives = alternatives(pair, &taken, paths);
            let access = paths.of(pair, from).and_then(|links| links.last().copied());
            let demand = share * access.map_or(0.0, |link| paths.capacity(link).0 as f64);
            let fits = |way: &&Alternative| {
                way.expected.0 as f64 >= demand * (1.0 - ROUNDING) && !paths.is_barred(pair, way.address)
            };
            let is_pinned = pins.contains_key(&pair);
            let to = match alternatives.iter().find(fits) {
                Some(way) if !is_pinned => way.address,
                _ => from,
            };
            for link in paths.of(pair, to).unwrap_or_default() {
                taken[link.0 as usize] += demand;
            }
            let verdict = match to == from {
                _ if is_pinned => Verdict::Pinned,
                true => Verdict::Stays,
                false => Verdict::Goes,
            };
            decisions.push(Decision {
                pair,
                time: now,
                cause: Cause::Poll,
                rate,
                from,
                to,
                verdict,
                alternatives,
            });
        }
    }
}

/// What is left of each way.
fn alternatives(pair: Pair, taken: &[f64], paths: &mut Paths) -> Vec<Alternative> {
    let ways = (0..paths.addresses()).filter_map(|address| {
        let links: Vec<LinkNumber> = paths.of(pair, address)?.to_vec();
        let left = |link: LinkNumber| {
            (paths.capacity(link).0 as f64 - taken[link.0 as usize]).max(0.0).round() as u64
        };
        let (left, tightest) = links.into_iter().map(|link| (left(link), link)).min()?;
        Some(Alternative { address, expected: BitRate(left), tightest })
    });
    ways.collect()
}
