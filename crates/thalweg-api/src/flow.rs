//! Flows.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thalweg_wire::{FlowKey, Timestamp};

use super::{CollectorResponse, Rate, UtcTime};

/// The fastest flows.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Flows {
    /// Which collectors responded, and when.
    pub responses: Vec<CollectorResponse>,
    /// Number of all matching flows.
    pub total: u64,
    /// The fastest of these flows, the fastest first.
    pub flows: Vec<Flow>,
}

/// One direction of a flow, as one collector sees it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Flow {
    /// Addresses, ports and protocol.
    pub flow: FlowName,
    /// The same as text, for `/v1/flows/{key}`.
    pub key: String,
    /// The collector that sees the flow.
    pub collector: String,
    /// The rate and its bounds.
    #[serde(flatten)]
    pub rate: Rate,
    /// What the rate was derived from.
    pub basis: Basis,
    /// The period that the rate covers; null before the first estimate.
    pub span: Option<Span>,
    /// The link on which the flow enters the switch; null if unknown.
    pub input: Option<String>,
    /// The link on which the flow leaves the switch; null if unknown.
    pub output: Option<String>,
    /// First sample of the flow in either direction.
    pub flow_start: UtcTime,
    /// Latest sample of the flow in either direction.
    pub flow_end: UtcTime,
    /// Samples of this direction.
    pub samples: u64,
    /// Bytes of these samples, at the IP layer.
    pub sampled_bytes: u64,
    /// TCP payload bytes seen more than once: a lower bound of the retransmitted bytes.
    pub repeated_bytes: u64,
    /// Samples that arrived after later ones and were not retransmissions (TCP).
    pub reordered: u64,
    /// Whether the flow is a cheetah now.
    pub cheetah: bool,
    /// Whether this direction of the flow is redirected to the scavenger queue now.
    pub redirected: bool,
}

/// The rate of one direction of a flow.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct FlowRate {
    /// Addresses, ports and protocol.
    pub flow: FlowName,
    /// The same as text.
    pub key: String,
    /// Destination MAC address of the latest packet. It selects the path.
    pub dst_mac: String,
    /// Source MAC address of the latest packet.
    pub src_mac: String,
    /// The rate and its bounds.
    #[serde(flatten)]
    pub rate: Rate,
    /// What the rate was derived from.
    pub basis: Basis,
    /// The period that the rate covers.
    pub span: Span,
}

/// A period of time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Span {
    /// Start of the period.
    pub start: UtcTime,
    /// End of the period, exclusive.
    pub end: UtcTime,
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
    /// Source port; for ICMP echo its identifier; 0 for protocols without ports.
    pub src_port: u16,
    /// Destination port, likewise.
    pub dst_port: u16,
    /// IP protocol number: 6 TCP, 17 UDP, 1 ICMP, 58 ICMPv6.
    pub protocol: u8,
}

/// What the rate of a flow was derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// No estimate yet.
    Nothing,
    /// TCP sequence numbers.
    SequenceNumbers,
    /// Identifications of IPv4 headers, by which the sender counts the packets of the flow.
    Identification,
    /// Samples of the flow, scaled by the sampling ratio that concurrent TCP flows reveal.
    SamplingRatio,
    /// Samples of the flow only: the rate is a lower bound.
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
