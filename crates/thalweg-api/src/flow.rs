//! Flows.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thalweg_wire::{FlowKey, Timestamp};

use super::{Answered, Moment, Rate};

/// Flows, and which collectors answered.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Flows {
    /// Who answered, and when.
    pub answered: Vec<Answered>,
    /// How many flows there were to choose from.
    pub total: u64,
    /// The fastest of them, the fastest first.
    pub flows: Vec<Flow>,
}

/// One direction of a flow, as one collector sees it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Flow {
    /// Who sends to whom.
    pub flow: FlowName,
    /// The same as text; it is the KEY of `/v1/flows/KEY`.
    pub key: String,
    /// The collector that sees it.
    pub collector: String,
    /// Rate on the wire, framing included, in bits per second; null before the first estimate. Zero while it is idle.
    pub rate_bps: Option<Rate>,
    /// What the rate was derived from.
    pub basis: Basis,
    /// The span that the rate covers; null before the first estimate.
    pub span: Option<Span>,
    /// The link by which it comes into the switch; null if that cannot be inferred.
    pub input: Option<String>,
    /// The link by which it leaves the switch; null if that cannot be inferred.
    pub output: Option<String>,
    /// First sample of the flow, either direction.
    pub first: Moment,
    /// Last sample of the flow, either direction.
    pub last: Moment,
    /// Samples of this direction.
    pub samples: u64,
    /// Bytes of those, of the IP layer.
    pub sampled_bytes: u64,
    /// Payload that was seen twice, so that at least this was sent again (TCP).
    pub repeated_bytes: u64,
    /// Samples that came after later ones and had not been seen before (TCP).
    pub reordered: u64,
    /// Whether it is a cheetah now.
    pub cheetah: bool,
}

/// How fast one direction of a flow is.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct FlowRate {
    /// Who sends to whom.
    pub flow: FlowName,
    /// The same as text.
    pub key: String,
    /// The destination MAC address of its last packet, which says which way it goes.
    pub destination_mac: String,
    /// The source MAC address of its last packet.
    pub source_mac: String,
    /// Rate on the wire, framing included, in bits per second.
    pub rate_bps: Rate,
    /// What the rate was derived from.
    pub basis: Basis,
    /// The span that the rate covers.
    pub span: Span,
}

/// A span of time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Span {
    /// Its first moment.
    pub start: Moment,
    /// The first moment after it.
    pub end: Moment,
}

/// One direction of a flow: packets from `src` to `dst`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct FlowName {
    /// Source address; IPv6 in its short form.
    #[schemars(with = "String")]
    pub src: IpAddr,
    /// Destination address.
    #[schemars(with = "String")]
    pub dst: IpAddr,
    /// Source port; of a ping, its identifier; of what has no ports, 0.
    pub src_port: u16,
    /// Destination port; likewise.
    pub dst_port: u16,
    /// IP protocol: 6 TCP, 17 UDP, 1 ICMP, 58 ICMPv6.
    pub protocol: u8,
}

/// What the rate of a flow was derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Nothing yet.
    Nothing,
    /// Its TCP sequence numbers.
    SequenceNumbers,
    /// Its samples, and the share of packets that the TCP flows beside it show was sampled.
    SamplingRatio,
    /// Its samples alone: it is at least as fast as they are.
    SamplesAlone,
}

impl From<(Timestamp, Timestamp)> for Span {
    fn from((start, end): (Timestamp, Timestamp)) -> Span {
        Span { start: start.into(), end: end.into() }
    }
}

impl From<&FlowKey> for FlowName {
    fn from(key: &FlowKey) -> FlowName {
        let (src_port, dst_port) = (key.src_port, key.dst_port);
        FlowName { src: key.src(), dst: key.dst(), src_port, dst_port, protocol: key.protocol.0 }
    }
}
