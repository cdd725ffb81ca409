//! A flow as a line of JSON, as `thalweg watch --json --flows` and the daemon write it.

use serde::Serialize;
use thalweg_api::{FlowName, UtcTime};
use thalweg_measure::meter::record::FlowRecord;
use thalweg_wire::TcpFlags;

use crate::survey::FlowContext;

/// A flow that has ended.
#[derive(Debug, Serialize)]
pub struct FlowLine {
    flow: FlowName,
    flow_start: UtcTime,
    flow_end: UtcTime,
    packets: u64,
    bytes: u64,
    reverse_packets: u64,
    reverse_bytes: u64,
    tcp_flags: u8,
    reverse_tcp_flags: u8,
    cheetah: bool,
    reverse_cheetah: bool,
    end_reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    capture_filter: Option<String>,
}

impl FlowLine {
    /// Creates a line with the filter that makes tcpdump select the packets of the flow.
    pub fn with_capture_filter(record: &FlowRecord, context: &FlowContext) -> FlowLine {
        let capture_filter = context.tags().map(|tags| record.key.capture_filter(tags));
        FlowLine { capture_filter, ..FlowLine::from(record) }
    }
}

impl From<&FlowRecord> for FlowLine {
    fn from(record: &FlowRecord) -> FlowLine {
        let TcpFlags(tcp_flags) = record.forward.tcp_flags;
        let TcpFlags(reverse_tcp_flags) = record.reverse.tcp_flags;
        FlowLine {
            flow: FlowName::from(&record.key),
            flow_start: record.first.into(),
            flow_end: record.last.into(),
            packets: record.forward.packets,
            bytes: record.forward.bytes.0,
            reverse_packets: record.reverse.packets,
            reverse_bytes: record.reverse.bytes.0,
            tcp_flags,
            reverse_tcp_flags,
            cheetah: record.forward.cheetah,
            reverse_cheetah: record.reverse.cheetah,
            end_reason: record.end_reason.name(),
            capture_filter: None,
        }
    }
}
