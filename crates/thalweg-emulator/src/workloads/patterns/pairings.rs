//! One flow from each endpoint (Planck, section 7.1; Hedera, Al-Fares et al., NSDI 2010, section 6.2): the patterns for
//! traffic engineering. Endpoints are in the given order.

use thalweg_network::EndpointId;
use thalweg_wire::{Nanos, Timestamp};

use super::{Schedule, distinct};
use crate::workloads::random::Random;
use crate::workloads::sizes::FlowSizes;
use crate::workloads::{FlowStart, UNBOUNDED, WorkloadError, checked_share};

/// Options of each endpoint's flow.
#[derive(Clone, Debug)]
pub struct Each {
    /// Sizes, drawn for each flow.
    pub sizes: FlowSizes,
    /// The start of the first flow.
    pub at: Timestamp,
    /// The time between the starts of consecutive flows; zero if all start at once.
    pub apart: Nanos,
    /// The seed of the experiment.
    pub seed: u64,
    /// The index of this pattern among others of its kind in the experiment, so that they differ.
    pub index: u64,
}

/// The probabilities that flows stay local (Hedera's Staggered Prob).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Staggered {
    /// Consecutive endpoints per edge router.
    pub endpoints_per_edge: usize,
    /// Endpoints per pod, a multiple of that.
    pub endpoints_per_pod: usize,
    /// The probability that a flow stays at its edge router.
    pub edge: f64,
    /// The probability that it goes to another edge router of its pod. The rest goes to other pods.
    pub pod: f64,
}

impl Schedule {
    /// Endpoint i sends to endpoint i + `stride`, modulo the number of endpoints. With half of the endpoints as stride, all
    /// flows of a fat tree cross its core.
    ///
    /// # Errors
    /// If there are fewer than two endpoints, one is listed twice, or endpoints would send to themselves.
    pub fn stride(endpoints: &[EndpointId], stride: usize, each: &Each) -> Result<Schedule, WorkloadError> {
        distinct("endpoints", endpoints, 2)?;
        let count = endpoints.len();
        if stride.is_multiple_of(count) {
            return Err(WorkloadError::Stride { stride, endpoints: count });
        }
        Ok(each.schedule(endpoints, |endpoint| (endpoint + stride % count) % count))
    }

    /// Each endpoint sends one flow and receives one. All pairings in which nobody sends to itself are equally likely.
    ///
    /// # Errors
    /// If there are fewer than two endpoints, or one is listed twice.
    pub fn random_bijection(endpoints: &[EndpointId], each: &Each) -> Result<Schedule, WorkloadError> {
        distinct("endpoints", endpoints, 2)?;
        let to = Random::new(each.seed, "random bijection", each.index).derangement(endpoints.len());
        Ok(each.schedule(endpoints, |endpoint| to[endpoint]))
    }

    /// Each endpoint sends to another one, drawn uniformly. Some receive several flows, some none.
    ///
    /// # Errors
    /// If there are fewer than two endpoints, or one is listed twice.
    pub fn random(endpoints: &[EndpointId], each: &Each) -> Result<Schedule, WorkloadError> {
        distinct("endpoints", endpoints, 2)?;
        let mut random = Random::new(each.seed, "random", each.index);
        let all = 0..endpoints.len();
        Ok(each.schedule(endpoints, |endpoint| other(&mut random, all.clone(), endpoint..endpoint + 1)))
    }

    /// Each endpoint sends to a random endpoint at its edge router, in its pod or beyond.
    ///
    /// # Errors
    /// If there are fewer than two endpoints, one is listed twice, groups do not fit, a group has no receivers, or a
    /// probability is invalid.
    pub fn staggered(
        endpoints: &[EndpointId],
        staggered: Staggered,
        each: &Each,
    ) -> Result<Schedule, WorkloadError> {
        let Staggered { endpoints_per_edge, endpoints_per_pod, edge, pod } = staggered;
        checked_share("share of flows to the same edge router", edge)?;
        checked_share("share of flows to the same pod", pod)?;
        checked_share("sum of the shares of edge router and pod", edge + pod)?;
        distinct("endpoints", endpoints, endpoints_per_pod.saturating_add(1))?;
        let least = |role, given: usize, least: usize| match given >= least {
            true => Ok(()),
            false => Err(WorkloadError::TooFew { role, given, least }),
        };
        least("endpoints of an edge router", endpoints_per_edge, 2)?;
        least("endpoints of a pod", endpoints_per_pod, endpoints_per_edge.saturating_add(1))?;
        let whole = |what: usize, of: usize| if of.is_multiple_of(what) { of } else { of + what - of % what };
        least("endpoints of a pod", endpoints_per_pod, whole(endpoints_per_edge, endpoints_per_pod))?;
        least("endpoints", endpoints.len(), whole(endpoints_per_pod, endpoints.len()))?;
        let mut random = Random::new(each.seed, "staggered", each.index);
        let group = |endpoint: usize, size: usize| endpoint / size * size..endpoint / size * size + size;
        Ok(each.schedule(endpoints, |endpoint| {
            let (own_edge, own_pod) =
                (group(endpoint, endpoints_per_edge), group(endpoint, endpoints_per_pod));
            match random.unit() {
                part if part < edge => other(&mut random, own_edge, endpoint..endpoint + 1),
                part if part < edge + pod => other(&mut random, own_pod, own_edge),
                _ => other(&mut random, 0..endpoints.len(), own_pod),
            }
        }))
    }

    /// Each of `senders` sends an unbounded flow to `receiver`. The first starts at `at`, each other `apart` later.
    ///
    /// # Errors
    /// If there are no senders, one is listed twice, or the receiver is among them.
    pub fn persistent(
        senders: &[EndpointId],
        receiver: EndpointId,
        at: Timestamp,
        apart: Nanos,
    ) -> Result<Schedule, WorkloadError> {
        distinct("senders", senders, 1)?;
        if senders.contains(&receiver) {
            return Err(WorkloadError::ToItself(receiver));
        }
        let flow = |(number, &source)| FlowStart {
            at: later(at, apart, number),
            source,
            destination: receiver,
            bytes: UNBOUNDED,
            dscp: 0,
        };
        Ok(Schedule::new(senders.iter().enumerate().map(flow).collect()))
    }
}

impl Each {
    /// One flow from each endpoint, to the endpoint with the index that `to` returns.
    fn schedule(&self, endpoints: &[EndpointId], mut to: impl FnMut(usize) -> usize) -> Schedule {
        let mut size_draws = Random::new(self.seed, "pairing sizes", self.index);
        let flow = |(number, &source)| {
            let (bytes, dscp) = self.sizes.draw(&mut size_draws);
            let at = later(self.at, self.apart, number);
            FlowStart { at, source, destination: endpoints[to(number)], bytes, dscp }
        };
        Schedule::new(endpoints.iter().enumerate().map(flow).collect())
    }
}

/// `at` plus `number` times `apart`.
fn later(at: Timestamp, apart: Nanos, number: usize) -> Timestamp {
    at + Nanos(apart.0.saturating_mul(number as u64))
}

/// A uniformly drawn index of `among` outside of `without`, which is part of it.
fn other(random: &mut Random, among: std::ops::Range<usize>, without: std::ops::Range<usize>) -> usize {
    let drawn = among.start + random.index(among.len() - without.len());
    if drawn >= without.start { drawn + without.len() } else { drawn }
}
