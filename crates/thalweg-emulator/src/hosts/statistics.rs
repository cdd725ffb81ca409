//! Statistics: completed flows, active flows, and totals.

use thalweg_network::EndpointId;
use thalweg_wire::{Nanos, Timestamp};

use super::connection::Connection;
use crate::outcome::Reason;

/// A completed flow: its sender has the last acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedFlow {
    /// The flow number.
    pub flow: u32,
    /// The sender.
    pub source: EndpointId,
    /// The receiver.
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
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Data segments that arrived marked.
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

    /// The flow completion time: from the start until the receiver has all bytes.
    pub fn completion_time(&self) -> Nanos {
        self.end.since(self.start)
    }
}

/// An active flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStatus {
    /// The flow number.
    pub flow: u32,
    /// The sender.
    pub source: EndpointId,
    /// The receiver.
    pub destination: EndpointId,
    /// Bytes of payload; `u64::MAX` for an unbounded flow.
    pub bytes: u64,
    /// Differentiated services code point.
    pub dscp: u8,
    /// When its first byte might be sent.
    pub start: Timestamp,
    /// Bytes that its receiver has handed to the application.
    pub delivered: u64,
    /// Bytes acknowledged cumulatively.
    pub acknowledged: u64,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Maximum segment size in bytes.
    pub mss: u64,
    /// Bytes in flight, as its sender estimates (`pipe` of RFC 6675), in whole segments.
    pub in_flight: u64,
    /// Segments handed to the network interface, including retransmissions, without probes of pFabric.
    pub segments_sent: u64,
    /// Slow start threshold in bytes; `u64::MAX` before the first congestion event.
    pub ssthresh: u64,
    /// Smoothed round-trip time; `None` before the first measurement, and with pFabric.
    pub srtt: Option<Nanos>,
    /// Whether its sender is in recovery, or probes (pFabric).
    pub is_recovering: bool,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Data segments that arrived marked.
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
            dscp: connection.dscp,
            start: connection.start,
            delivered: connection.receiver.delivered(),
            acknowledged: connection.sender.acknowledged(),
            cwnd: window.cwnd,
            mss: window.mss,
            in_flight: connection.sender.in_flight(),
            segments_sent: connection.sender.segments_sent(),
            ssthresh: window.ssthresh,
            srtt: connection.sender.srtt(),
            is_recovering: connection.sender.is_recovering(),
            retransmissions: events.retransmissions,
            timeouts: events.timeouts,
            marks: connection.marks,
        }
    }
}

/// Counters of all flows since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Flows started.
    pub flows_started: u64,
    /// Flows completed.
    pub flows_completed: u64,
    /// Flows refused: no bytes, no such host, source and destination equal, or too many active flows.
    pub flows_refused: u64,
    /// Data segments handed to network interfaces, including retransmissions.
    pub data_sent: u64,
    /// Retransmissions among them.
    pub retransmissions: u64,
    /// Acknowledgements handed to network interfaces.
    pub acks_sent: u64,
    /// Expiries of retransmission timers.
    pub timeouts: u64,
    /// Data segments that arrived marked.
    pub marks: u64,
    /// Data segments that arrived although their bytes had arrived before: needless retransmissions.
    pub spurious: u64,
    /// Segments that arrived after their flow had ended.
    pub late: u64,
    /// Bytes delivered to applications in order.
    pub bytes_delivered: u64,
    /// Packets handed to network interfaces: data and acknowledgements.
    pub injected: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Packets dropped, by [`Reason`].
    pub dropped: [u64; Reason::ALL.len()],
}

impl Totals {
    /// Packets dropped for any reason.
    pub fn all_dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Packets in the network.
    pub fn in_flight(&self) -> u64 {
        self.injected - self.delivered - self.all_dropped()
    }
}
