//! Parallel flowsets: flows between two hosts that start together (dissertation section 2.2, equations 2.1 to 2.3).
//!
//! Equation 2.2 requires that the flows of a set start within `tau` of each other, and those before and after it more
//! than `tau` away. A chain of small gaps that spans more than `tau` can meet only one of these conditions. [`Rule`]
//! selects which.

use thalweg_wire::flow_export::Address;

use super::flow::Flow;

/// How flows are grouped into sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// A set contains its first flow, and all flows that start at most `tau` after it.
    #[default]
    Span,
    /// A flow belongs to the set of its predecessor if it starts at most `tau` after it.
    Chain,
}

impl Rule {
    /// Returns the rule with this name.
    pub fn named(name: &str) -> Option<Rule> {
        match name {
            "span" => Some(Rule::Span),
            "chain" => Some(Rule::Chain),
            _ => None,
        }
    }
}

/// A parallel flowset; a single flow if `flows` is 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flowset {
    /// Source of all flows.
    pub source_address: Address,
    /// Destination of all flows.
    pub destination_address: Address,
    /// Time of the first packet, microseconds since 1970 (UTC).
    pub flow_start_us: i64,
    /// Time of the last packet.
    pub flow_end_us: i64,
    /// Number of flows.
    pub flows: i64,
    /// Bytes of the IP layer, scaled by the sampling interval.
    pub octets: i64,
    /// Packets, scaled by the sampling interval.
    pub packets: i64,
    /// Autonomous system of the source; 0 if unknown.
    pub source_as: u32,
    /// Autonomous system of the destination; 0 if unknown.
    pub destination_as: u32,
}

impl Flowset {
    /// Returns the duration of equation 2.3, but until the latest end of all flows. The flow that starts last may end earlier.
    pub fn duration_us(&self) -> i64 {
        self.flow_end_us - self.flow_start_us
    }

    /// Returns bits per second over the duration; `None` if the duration is 0.
    pub fn rate_bps(&self) -> Option<f64> {
        let bits = self.octets.saturating_mul(8) as f64;
        (self.duration_us() > 0).then(|| bits * 1e6 / self.duration_us() as f64)
    }
}

/// Collects the flows of a pair of hosts, and splits them into sets when the next pair starts.
#[derive(Debug)]
pub(super) struct FlowsetBuilder {
    rule: Rule,
    tau_us: i64,
    /// Hash of the pair of `flows`; several pairs may share it.
    pair_hash: u64,
    flows: Vec<Flow>,
    /// Maximum number of flows that fit the memory limit, and the largest number that exceeded it.
    max_flows: usize,
    largest: usize,
}

impl FlowsetBuilder {
    pub(super) fn new(rule: Rule, tau_us: i64, max_flows: usize) -> FlowsetBuilder {
        FlowsetBuilder { rule, tau_us, pair_hash: 0, flows: Vec::new(), max_flows, largest: 0 }
    }

    /// Returns the largest number of flows of one pair that exceeded the memory limit, or 0.
    pub(super) fn largest(&self) -> usize {
        self.largest
    }

    /// Adds a flow. The flows of a pair must be consecutive.
    #[inline]
    pub(super) fn push(&mut self, pair_hash: u64, flow: Flow, each: &mut impl FnMut(Flowset)) {
        if pair_hash != self.pair_hash {
            self.finish(each);
            self.pair_hash = pair_hash;
        }
        self.flows.push(flow);
    }

    /// Passes the sets of the last pair to `each`.
    pub(super) fn finish(&mut self, each: &mut impl FnMut(Flowset)) {
        if let [flow] = self.flows[..] {
            self.flows.clear();
            return each(set_of_flow(&flow));
        }
        if self.flows.len() > self.max_flows {
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
            // The time is the start of the set's first flow (span) or last flow (chain).
            match &mut current {
                Some((set, from)) if same_pair(set, &flow) && flow.flow_start_us - *from <= self.tau_us => {
                    add_to_set(set, &flow);
                    if self.rule == Rule::Chain {
                        *from = flow.flow_start_us;
                    }
                }
                _ => {
                    if let Some((set, _)) = current.replace((set_of_flow(&flow), flow.flow_start_us)) {
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

fn set_of_flow(flow: &Flow) -> Flowset {
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

fn add_to_set(set: &mut Flowset, flow: &Flow) {
    set.flow_end_us = set.flow_end_us.max(flow.flow_end_us);
    set.flows += 1;
    set.octets = set.octets.saturating_add(flow.octets);
    set.packets = set.packets.saturating_add(flow.packets);
    set.source_as = set.source_as.max(flow.source_as);
    set.destination_as = set.destination_as.max(flow.destination_as);
}
