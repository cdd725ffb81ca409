//! What hosts have seen: flows that ended, flows under way, and totals.

use thalweg_network::EndpointId;
use thalweg_wire::{Nanos, Timestamp};

use super::connection::Connection;
use crate::outcome::Reason;

/// A flow that has ended: its sender knows that all has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedFlow {
    /// Its number.
    pub flow: u32,
    /// Who sent.
    pub source: EndpointId,
    /// Who received.
    pub destination: EndpointId,
    /// Bytes of payload.
    pub bytes: u64,
    /// Differentiated services code point.
    pub dscp: u8,
    /// When its first byte might be sent.
    pub start: Timestamp,
    /// When its receiver had all bytes. `end - start` is the flow completion time.
    pub end: Timestamp,
    /// When its sender had the last acknowledgement.
    pub acknowledged: Timestamp,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Data segments that arrived with a mark.
    pub marks: u64,
}

impl CompletedFlow {
    pub(super) fn of(connection: &Connection, now: Timestamp) -> CompletedFlow {
        let events = connection.sender.events();
        CompletedFlow {
            flow: connection.flow,
            source: connection.source,
            destination: connection.destination,
            bytes: connection.bytes,
            dscp: connection.dscp,
            start: connection.start,
            end: connection.end,
            acknowledged: now,
            retransmissions: events.retransmissions,
            timeouts: events.timeouts,
            marks: connection.marks,
        }
    }

    /// Flow completion time: from the start until the receiver has all.
    pub fn completion_time(&self) -> Nanos {
        self.end.since(self.start)
    }
}

/// A flow under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStatus {
    /// Its number.
    pub flow: u32,
    /// Who sends.
    pub source: EndpointId,
    /// Who receives.
    pub destination: EndpointId,
    /// Bytes of payload; `u64::MAX` for an unbounded flow.
    pub bytes: u64,
    /// When its first byte might be sent.
    pub start: Timestamp,
    /// Bytes that its receiver has handed to the application, in order.
    pub delivered: u64,
    /// Bytes that its sender knows to have arrived, by acknowledgement number.
    pub acknowledged: u64,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `u64::MAX` before the first congestion.
    pub ssthresh: u64,
    /// Smoothed round-trip time; `None` before the first measurement, and of pFabric.
    pub srtt: Option<Nanos>,
    /// Whether its sender repairs losses, or probes (pFabric).
    pub is_recovering: bool,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Data segments that arrived with a mark.
    pub marks: u64,
}

impl FlowStatus {
    pub(super) fn of(connection: &Connection) -> FlowStatus {
        let (events, window) = (connection.sender.events(), connection.sender.window());
        FlowStatus {
            flow: connection.flow,
            source: connection.source,
            destination: connection.destination,
            bytes: connection.bytes,
            start: connection.start,
            delivered: connection.receiver.delivered(),
            acknowledged: connection.sender.acknowledged(),
            cwnd: window.cwnd,
            ssthresh: window.ssthresh,
            srtt: connection.sender.srtt(),
            is_recovering: connection.sender.is_recovering(),
            retransmissions: events.retransmissions,
            timeouts: events.timeouts,
            marks: connection.marks,
        }
    }
}

/// Counts over all flows since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Flows that began.
    pub flows_started: u64,
    /// Flows that ended.
    pub flows_completed: u64,
    /// Flows that did not begin: no bytes, no such host, source and destination the same, or too many under way.
    pub flows_refused: u64,
    /// Data segments handed to network interfaces, repeated ones included.
    pub data_sent: u64,
    /// Data segments among them that were sent again.
    pub retransmissions: u64,
    /// Acknowledgements handed to network interfaces.
    pub acks_sent: u64,
    /// Expiries of retransmission timers.
    pub timeouts: u64,
    /// Data segments that arrived with a mark.
    pub marks: u64,
    /// Data segments that arrived though their bytes had arrived before: sent again without need.
    pub spurious: u64,
    /// Segments that arrived for a flow that had ended.
    pub late: u64,
    /// Bytes that arrived for the first time, in order: what applications got.
    pub bytes_delivered: u64,
    /// Packets handed to network interfaces: data and acknowledgements.
    pub injected: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Packets that were dropped, by [`Reason`].
    pub dropped: [u64; Reason::ALL.len()],
}

impl Totals {
    /// Packets that were dropped, for whatever reason.
    pub fn all_dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Packets in the network.
    pub fn in_flight(&self) -> u64 {
        self.injected - self.delivered - self.all_dropped()
    }
}
