//! One flow from each host (Planck, section 7.1; Hedera, Al-Fares et al., NSDI 2010, section 6.2): the patterns for
//! traffic engineering. Hosts are in the given order.

use thalweg_network::EndpointId;
use thalweg_wire::{Nanos, Timestamp};

use super::{Schedule, distinct};
use crate::workloads::random::Random;
use crate::workloads::sizes::FlowSizes;
use crate::workloads::{FlowStart, UNBOUNDED, WorkloadError, checked_share};

/// Options of each host's flow.
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
    /// Consecutive hosts per edge switch.
    pub hosts_per_edge: usize,
    /// Hosts per pod, a multiple of that.
    pub hosts_per_pod: usize,
    /// The probability that a flow stays at its edge switch.
    pub edge: f64,
    /// The probability that it goes to another edge switch of its pod. The rest goes to other pods.
    pub pod: f64,
}

impl Schedule {
    /// Host i sends to host i + `stride`, modulo the number of hosts. With half of the hosts as stride, all flows of a
    /// fat tree cross its core.
    ///
    /// # Errors
    /// If there are fewer than two hosts, one is listed twice, or hosts would send to themselves.
    pub fn stride(hosts: &[EndpointId], stride: usize, each: &Each) -> Result<Schedule, WorkloadError> {
        distinct("hosts", hosts, 2)?;
        let endpoints = hosts.len();
        if stride.is_multiple_of(endpoints) {
            return Err(WorkloadError::Stride { stride, endpoints });
        }
        Ok(each.schedule(hosts, |host| (host + stride % endpoints) % endpoints))
    }

    /// Each host sends one flow and receives one. All pairings in which nobody sends to itself are equally likely.
    ///
    /// # Errors
    /// If there are fewer than two hosts, or one is listed twice.
    pub fn random_bijection(hosts: &[EndpointId], each: &Each) -> Result<Schedule, WorkloadError> {
        distinct("hosts", hosts, 2)?;
        let to = Random::new(each.seed, "random bijection", each.index).derangement(hosts.len());
        Ok(each.schedule(hosts, |host| to[host]))
    }

    /// Each host sends to another one, drawn uniformly. Some receive several flows, some none.
    ///
    /// # Errors
    /// If there are fewer than two hosts, or one is listed twice.
    pub fn random(hosts: &[EndpointId], each: &Each) -> Result<Schedule, WorkloadError> {
        distinct("hosts", hosts, 2)?;
        let mut random = Random::new(each.seed, "random", each.index);
        Ok(each.schedule(hosts, |host| other(&mut random, 0..hosts.len(), host..host + 1)))
    }

    /// Each host sends to a random host at its edge switch, in its pod or beyond.
    ///
    /// # Errors
    /// If there are fewer than two hosts, one is listed twice, groups do not fit, a group has no receivers, or a
    /// probability is invalid.
    pub fn staggered(
        hosts: &[EndpointId],
        staggered: Staggered,
        each: &Each,
    ) -> Result<Schedule, WorkloadError> {
        let Staggered { hosts_per_edge, hosts_per_pod, edge, pod } = staggered;
        checked_share("share of flows to the same edge switch", edge)?;
        checked_share("share of flows to the same pod", pod)?;
        checked_share("sum of the shares of edge switch and pod", edge + pod)?;
        distinct("hosts", hosts, hosts_per_pod.saturating_add(1))?;
        let least = |role, given: usize, least: usize| match given >= least {
            true => Ok(()),
            false => Err(WorkloadError::TooFew { role, given, least }),
        };
        least("hosts of an edge switch", hosts_per_edge, 2)?;
        least("hosts of a pod", hosts_per_pod, hosts_per_edge.saturating_add(1))?;
        let whole = |what: usize, of: usize| if of.is_multiple_of(what) { of } else { of + what - of % what };
        least("hosts of a pod", hosts_per_pod, whole(hosts_per_edge, hosts_per_pod))?;
        least("hosts", hosts.len(), whole(hosts_per_pod, hosts.len()))?;
        let mut random = Random::new(each.seed, "staggered", each.index);
        let group = |host: usize, size: usize| host / size * size..host / size * size + size;
        Ok(each.schedule(hosts, |host| {
            let (own_edge, own_pod) = (group(host, hosts_per_edge), group(host, hosts_per_pod));
            match random.unit() {
                part if part < edge => other(&mut random, own_edge, host..host + 1),
                part if part < edge + pod => other(&mut random, own_pod, own_edge),
                _ => other(&mut random, 0..hosts.len(), own_pod),
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
    /// One flow from each host, to the host with the index that `to` returns.
    fn schedule(&self, hosts: &[EndpointId], mut to: impl FnMut(usize) -> usize) -> Schedule {
        let mut size_draws = Random::new(self.seed, "pairing sizes", self.index);
        let flow = |(number, &source)| {
            let (bytes, dscp) = self.sizes.draw(&mut size_draws);
            let at = later(self.at, self.apart, number);
            FlowStart { at, source, destination: hosts[to(number)], bytes, dscp }
        };
        Schedule::new(hosts.iter().enumerate().map(flow).collect())
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
