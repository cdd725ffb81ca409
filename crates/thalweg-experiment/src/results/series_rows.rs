//! The rows of time series.

use std::sync::Arc;

/// A flow at one time, and what it did since its previous row.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSeriesRow {
    /// The time, in nanoseconds of emulated time.
    pub time_ns: u64,
    /// The time since the previous row of the flow, or since its start.
    pub interval_ns: u64,
    /// The flow number, in the order of starts.
    pub flow: u32,
    /// The workload, from 1 in the order of the file.
    pub workload: u16,
    /// The sending endpoint.
    pub src: Arc<str>,
    /// The receiving endpoint.
    pub dst: Arc<str>,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Congestion window in segments.
    pub cwnd_packets: f64,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow start threshold; `None` before the first congestion event.
    pub ssthresh_bytes: Option<u64>,
    /// Smoothed round-trip time; `None` before the first measurement, and with transports that measure none.
    pub srtt_ns: Option<u64>,
    /// The latest measurement of the round-trip time.
    pub rtt_ns: Option<u64>,
    /// Bytes in flight, as the sender estimates.
    pub in_flight_bytes: u64,
    /// Segments sent in the interval, including retransmissions.
    pub sent_packets: u64,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Payload bytes newly acknowledged.
    pub acked_bytes: u64,
    /// Data packets that arrived, including needless retransmissions.
    pub received_packets: u64,
    /// Their bytes, framing included.
    pub received_bytes: u64,
    /// Packets among them with an ECN mark.
    pub marked_packets: u64,
    /// Payload bytes that the receiver handed to the application.
    pub delivered_bytes: u64,
    /// Mean queueing delay of the packets that arrived; `None` if none did.
    pub queueing_delay_mean_ns: Option<u64>,
    /// The longest queueing delay of them.
    pub queueing_delay_max_ns: Option<u64>,
}

impl FlowSeriesRow {
    /// Payload delivered to the application, in bits per second.
    pub fn goodput_bps(&self) -> f64 {
        rate(self.delivered_bytes, self.interval_ns)
    }

    /// Packets that arrived, framing included, in bits per second.
    pub fn throughput_bps(&self) -> f64 {
        rate(self.received_bytes, self.interval_ns)
    }
}

/// The queue of an output port over an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSeriesRow {
    /// The end of the interval, in nanoseconds of emulated time.
    pub time_ns: u64,
    /// The length of the interval.
    pub interval_ns: u64,
    /// The router.
    pub router: Arc<str>,
    /// The port, from 0.
    pub port: u16,
    /// The node that the port leads to.
    pub to: Arc<str>,
    /// Packets in the queue at the end.
    pub packets: u32,
    /// Mean packets in the queue.
    pub packets_mean: f64,
    /// The most packets in the queue.
    pub packets_max: u32,
    /// Bytes in the queue at the end, framing included.
    pub bytes: u64,
    /// Mean bytes in the queue.
    pub bytes_mean: f64,
    /// The most bytes in the queue.
    pub bytes_max: u64,
    /// Packets sent in the interval.
    pub sent_packets: u64,
    /// Their bytes, framing included.
    pub sent_bytes: u64,
    /// Bytes sent divided by the capacity of the link.
    pub utilisation: f64,
    /// Packets marked at the port.
    pub marked_packets: u64,
    /// Packets dropped at the port.
    pub dropped_packets: u64,
}

/// A class of a port's scheduler over an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassSeriesRow {
    /// The end of the interval, in nanoseconds of emulated time.
    pub time_ns: u64,
    /// The length of the interval.
    pub interval_ns: u64,
    /// The router.
    pub router: Arc<str>,
    /// The port, from 0.
    pub port: u16,
    /// The node that the port leads to.
    pub to: Arc<str>,
    /// The number of the class, as the scheme knows it; `None` for packets that were dropped and in no queue.
    pub class: Option<u16>,
    /// Packets in the queue at the end.
    pub packets: u32,
    /// Mean packets in the queue.
    pub packets_mean: f64,
    /// The most packets in the queue.
    pub packets_max: u32,
    /// Bytes in the queue at the end, framing included.
    pub bytes: u64,
    /// Mean bytes in the queue.
    pub bytes_mean: f64,
    /// The most bytes in the queue.
    pub bytes_max: u64,
    /// Packets sent in the interval.
    pub sent_packets: u64,
    /// Their bytes, framing included.
    pub sent_bytes: u64,
    /// Packets marked.
    pub marked_packets: u64,
    /// Packets dropped.
    pub dropped_packets: u64,
}

fn rate(bytes: u64, interval_ns: u64) -> f64 {
    super::per_second(bytes, interval_ns as f64 / 1e9)
}
