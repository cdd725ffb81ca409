//! Parallel flowsets: flows between two hosts that start together (dissertation section 2.2, equations 2.1 to 2.3).
//!
//! Equation 2.2 wants the starts of a set within `tau` of each other, and the flows before and after it more than
//! `tau` away. A chain of small gaps that spans more than `tau` can satisfy only one of the two, whatever the cut:
//! [`Rule`] says which.

use thalweg_wire::flow_export::Address;

use super::flow::Flow;

/// Which flows are one set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// A set begins with the first flow that is in none yet, and has all flows that start at most `tau` after that.
    #[default]
    Span,
    /// A flow belongs to the set of the one before it if it starts at most `tau` after that one.
    Chain,
}

impl Rule {
    /// The rule of this name.
    pub fn named(name: &str) -> Option<Rule> {
        match name {
            "span" => Some(Rule::Span),
            "chain" => Some(Rule::Chain),
            _ => None,
        }
    }
}

/// A parallel flowset, or with `flows` of one a single flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Flowset {
    pub(super) source_address: Address,
    pub(super) destination_address: Address,
    pub(super) flow_start_us: i64,
    pub(super) flow_end_us: i64,
    pub(super) flows: i64,
    pub(super) octets: i64,
    pub(super) packets: i64,
    pub(super) source_as: u32,
    pub(super) destination_as: u32,
}

impl Flowset {
    /// Equation 2.3, but to the latest end of any flow and not to that of the last to start, which may end earlier.
    pub(super) fn duration_us(&self) -> i64 {
        self.flow_end_us - self.flow_start_us
    }

    /// Bits per second over the duration; none where that is 0.
    pub(super) fn rate_bps(&self) -> Option<f64> {
        let bits = self.octets.saturating_mul(8) as f64;
        (self.duration_us() > 0).then(|| bits * 1e6 / self.duration_us() as f64)
    }
}

/// Gathers the flows of a pair of hosts, and cuts them into sets when the next pair comes.
#[derive(Debug)]
pub(super) struct Flowsets {
    rule: Rule,
    tau_us: i64,
    /// The hash of the pair whose flows these are; two pairs may have one hash.
    pair_hash: u64,
    flows: Vec<Flow>,
    /// How many flows of a pair memory is meant to hold, and the most of those that were more.
    meant: usize,
    largest: usize,
}

impl Flowsets {
    pub(super) fn new(rule: Rule, tau_us: i64, meant: usize) -> Flowsets {
        Flowsets { rule, tau_us, pair_hash: 0, flows: Vec::new(), meant, largest: 0 }
    }

    /// Most flows of one pair that were held at once though memory was meant to hold fewer; 0 if it never came to that.
    pub(super) fn largest(&self) -> usize {
        self.largest
    }

    /// Takes a flow; those of one pair come one after another.
    #[inline]
    pub(super) fn push(&mut self, pair_hash: u64, flow: Flow, each: &mut impl FnMut(Flowset)) {
        if pair_hash != self.pair_hash {
            self.finish(each);
            self.pair_hash = pair_hash;
        }
        self.flows.push(flow);
    }

    /// Gives the sets of the last pair.
    pub(super) fn finish(&mut self, each: &mut impl FnMut(Flowset)) {
        if let [flow] = self.flows[..] {
            self.flows.clear();
            return each(alone(&flow));
        }
        if self.flows.len() > self.meant {
            self.largest = self.largest.max(self.flows.len());
        }
        if self.flows.len() > 1 {
            self.flows.sort_unstable_by_key(|flow| {
                let pair = (flow.source_address, flow.destination_address);
                let ports = (flow.source_port, flow.destination_port, flow.protocol);
                (pair, flow.flow_start_us, flow.flow_end_us, ports)
            });
        }
        let mut current: Option<(Flowset, i64)> = None;
        for flow in self.flows.drain(..) {
            // From where the gap counts: the start of the set's first flow, or of its last.
            match &mut current {
                Some((set, from)) if same_pair(set, &flow) && flow.flow_start_us - *from <= self.tau_us => {
                    join(set, &flow);
                    if self.rule == Rule::Chain {
                        *from = flow.flow_start_us;
                    }
                }
                _ => {
                    if let Some((set, _)) = current.replace((alone(&flow), flow.flow_start_us)) {
                        each(set);
                    }
                }
            }
        }
        if let Some((set, _)) = current {
            each(set);
        }
    }
}

fn same_pair(set: &Flowset, flow: &Flow) -> bool {
    (set.source_address, set.destination_address) == (flow.source_address, flow.destination_address)
}

fn alone(flow: &Flow) -> Flowset {
    Flowset {
        source_address: flow.source_address,
        destination_address: flow.destination_address,
        flow_start_us: flow.flow_start_us,
        flow_end_us: flow.flow_end_us,
        flows: 1,
        octets: flow.octets,
        packets: flow.packets,
        source_as: flow.source_as,
        destination_as: flow.destination_as,
    }
}

fn join(set: &mut Flowset, flow: &Flow) {
    set.flow_end_us = set.flow_end_us.max(flow.flow_end_us);
    set.flows += 1;
    set.octets = set.octets.saturating_add(flow.octets);
    set.packets = set.packets.saturating_add(flow.packets);
    set.source_as = set.source_as.max(flow.source_as);
    set.destination_as = set.destination_as.max(flow.destination_as);
}
