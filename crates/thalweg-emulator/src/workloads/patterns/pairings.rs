//! One flow from each host (Planck, section 7.1; Hedera, Al-Fares et al., NSDI 2010, section 6.2): the patterns that
//! traffic engineering is tried on. Hosts are taken in the order in which they are given.

use thalweg_network::EndpointId;
use thalweg_wire::{Nanos, Timestamp};

use super::{Schedule, distinct};
use crate::workloads::random::Random;
use crate::workloads::sizes::FlowSizes;
use crate::workloads::{FlowStart, UNBOUNDED, WorkloadError, checked_share};

/// What each host's flow is like.
#[derive(Clone, Debug)]
pub struct Each {
    /// Sizes, drawn for each flow.
    pub sizes: FlowSizes,
    /// When the first flow begins.
    pub at: Timestamp,
    /// How much later each of the following flows begins; zero if all begin at once.
    pub apart: Nanos,
    /// Seed of the experiment.
    pub seed: u64,
    /// Number of this pattern among others of its kind in the experiment, so that they differ.
    pub index: u64,
}

/// Where flows stay, with which probability (Hedera's Staggered Prob).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Staggered {
    /// Hosts under one edge switch, which follow one another.
    pub hosts_per_edge: usize,
    /// Hosts in one pod, a multiple of those.
    pub hosts_per_pod: usize,
    /// Probability that a flow stays under its edge switch.
    pub edge: f64,
    /// Probability that it goes to another edge switch of its pod. What is left goes to other pods.
    pub pod: f64,
}

impl Schedule {
    /// Host i sends to host i + `stride`, counted round; with half of the hosts as stride all flows of a fat tree
    /// cross its core.
    ///
    /// # Errors
    /// Less than two hosts, one named twice, or a stride that leads back to where it began.
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
    /// Less than two hosts, or one named twice.
    pub fn random_bijection(hosts: &[EndpointId], each: &Each) -> Result<Schedule, WorkloadError> {
        distinct("hosts", hosts, 2)?;
        let to = Random::new(each.seed, "random bijection", each.index).derangement(hosts.len());
        Ok(each.schedule(hosts, |host| to[host]))
    }

    /// Each host sends to another drawn evenly; some receive several flows, some none.
    ///
    /// # Errors
    /// Less than two hosts, or one named twice.
    pub fn random(hosts: &[EndpointId], each: &Each) -> Result<Schedule, WorkloadError> {
        distinct("hosts", hosts, 2)?;
        let mut random = Random::new(each.seed, "random", each.index);
        Ok(each.schedule(hosts, |host| other(&mut random, 0..hosts.len(), host..host + 1)))
    }

    /// Each host sends to another under its edge switch, in its pod or beyond, by chance.
    ///
    /// # Errors
    /// Less than two hosts, or one named twice; groups that do not fit into one another, or leave nobody to send
    /// to; shares that are none.
    pub fn staggered(
        hosts: &[EndpointId],
        staggered: Staggered,
        each: &Each,
    ) -> Result<Schedule, WorkloadError> {
        let Staggered { hosts_per_edge, hosts_per_pod, edge, pod } = staggered;
        checked_share("flows that stay under their edge switch", edge)?;
        checked_share("flows that stay in their pod", pod)?;
        checked_share("flows that stay in their pod at all", edge + pod)?;
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

    /// Each of `senders` sends to `receiver` for ever; the first begins at `at`, each other `apart` later.
    ///
    /// # Errors
    /// No senders, one named twice, or the receiver among them.
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
    /// One flow from each host, to the one at the place that `to` gives for its own.
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

/// `at`, and `number` times `apart`.
fn later(at: Timestamp, apart: Nanos, number: usize) -> Timestamp {
    at + Nanos(apart.0.saturating_mul(number as u64))
}

/// One of `among`, drawn evenly, but none of `without`, which is part of it.
fn other(random: &mut Random, among: std::ops::Range<usize>, without: std::ops::Range<usize>) -> usize {
    let drawn = among.start + random.index(among.len() - without.len());
    if drawn >= without.start { drawn + without.len() } else { drawn }
}
