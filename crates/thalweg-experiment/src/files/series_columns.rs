//! The columns of time series.

use super::columns::Values::{Count, Name, Number, OptionalCount, Ratio};
use super::columns::{Column, Row, column};
use crate::results::series_rows::{ClassSeriesRow, FlowSeriesRow, QueueSeriesRow};

impl Row for FlowSeriesRow {
    const FILE: &'static str = "flow_series";
    const ABOUT: &'static str = "\
With `[flow_series]`: one row per sampled flow and sample, and a last one when the sender of the flow knows that all has arrived, in the order of time. Sums over \
the rows of a completed flow are its values in `flows`. Columns without another note are of the time since the flow's previous row.";
    const COLUMNS: &'static [Column<FlowSeriesRow>] = &[
        column("time_ns", "ns", "time of the sample", Count(|r| r.time_ns)),
        column(
            "interval_ns",
            "ns",
            "time since the previous row of the flow, or since its start",
            Count(|r| r.interval_ns),
        ),
        column("flow", "", "flow number, in the order of start", Count(|r| r.flow.into())),
        column(
            "workload",
            "",
            "`[[workload]]` of the flow, from 1 in the order of the file",
            Number(|r| r.workload),
        ),
        column("src", "", "endpoint that sends the flow", Name(|r| &r.src)),
        column("dst", "", "endpoint that receives the flow", Name(|r| &r.dst)),
        column("dscp", "", "differentiated services code point, 0 to 63", Number(|r| r.dscp.into())),
        column(
            "cwnd_packets",
            "segments",
            "congestion window at the time of the sample, in full-size segments",
            Ratio(|r| r.cwnd_packets),
        ),
        column("cwnd_bytes", "B", "the same in bytes of payload", Count(|r| r.cwnd_bytes)),
        column(
            "ssthresh_bytes",
            "B",
            "slow start threshold at the time of the sample; empty before the first congestion event",
            OptionalCount(|r| r.ssthresh_bytes),
        ),
        column(
            "srtt_ns",
            "ns",
            "smoothed round-trip time (RFC 6298) at the time of the sample; empty before the first measurement, and with `pfabric`",
            OptionalCount(|r| r.srtt_ns),
        ),
        column(
            "rtt_ns",
            "ns",
            "latest measured round-trip time; empty likewise",
            OptionalCount(|r| r.rtt_ns),
        ),
        column(
            "in_flight_bytes",
            "B",
            "payload in flight at the time of the sample, as the sender estimates (`pipe` of RFC 6675), in full-size segments",
            Count(|r| r.in_flight_bytes),
        ),
        column(
            "sent_packets",
            "segments",
            "segments sent, including retransmissions",
            Count(|r| r.sent_packets),
        ),
        column("retransmissions", "segments", "retransmitted segments", Count(|r| r.retransmissions)),
        column("timeouts", "", "number of retransmission timeouts", Count(|r| r.timeouts)),
        column("acked_bytes", "B", "payload bytes newly acknowledged", Count(|r| r.acked_bytes)),
        column(
            "received_packets",
            "packets",
            "data packets that reached the receiver, including needless retransmissions",
            Count(|r| r.received_packets),
        ),
        column(
            "received_bytes",
            "B",
            "bytes of these packets, framing included",
            Count(|r| r.received_bytes),
        ),
        column(
            "marked_packets",
            "packets",
            "packets among them with an ECN mark",
            Count(|r| r.marked_packets),
        ),
        column(
            "delivered_bytes",
            "B",
            "payload bytes delivered to the application, in order",
            Count(|r| r.delivered_bytes),
        ),
        column("goodput_bps", "bit/s", "`delivered_bytes` per second", Ratio(FlowSeriesRow::goodput_bps)),
        column(
            "throughput_bps",
            "bit/s",
            "`received_bytes` per second",
            Ratio(FlowSeriesRow::throughput_bps),
        ),
        column(
            "queueing_delay_mean_ns",
            "ns",
            "mean queueing delay of the received packets: time from the sender's network interface to the receiver, minus that over the \
             idle path; empty without packets",
            OptionalCount(|r| r.queueing_delay_mean_ns),
        ),
        column(
            "queueing_delay_max_ns",
            "ns",
            "longest queueing delay of the received packets; empty without packets",
            OptionalCount(|r| r.queueing_delay_max_ns),
        ),
    ];
}

impl Row for QueueSeriesRow {
    const FILE: &'static str = "queue_series";
    const ABOUT: &'static str = "\
With `[queue_series]`: one row per output port and interval, in the order of time. Means and maxima are over one look per timeslot.";
    const COLUMNS: &'static [Column<QueueSeriesRow>] = &[
        column("time_ns", "ns", "end of the interval", Count(|r| r.time_ns)),
        column("interval_ns", "ns", "length of the interval", Count(|r| r.interval_ns)),
        column("router", "", "router of the port", Name(|r| &r.router)),
        column("port", "", "port number, from 0", Number(|r| r.port)),
        column("to", "", "router or endpoint at the other end", Name(|r| &r.to)),
        column("packets", "packets", "packets in the queue at the end", Count(|r| r.packets.into())),
        column("packets_mean", "packets", "mean packets in the queue", Ratio(|r| r.packets_mean)),
        column("packets_max", "packets", "most packets in the queue", Count(|r| r.packets_max.into())),
        column("bytes", "B", "bytes in the queue at the end, framing included", Count(|r| r.bytes)),
        column("bytes_mean", "B", "mean bytes in the queue", Ratio(|r| r.bytes_mean)),
        column("bytes_max", "B", "most bytes in the queue", Count(|r| r.bytes_max)),
        column("sent_packets", "packets", "packets sent", Count(|r| r.sent_packets)),
        column("sent_bytes", "B", "bytes sent, framing included", Count(|r| r.sent_bytes)),
        column(
            "utilisation",
            "",
            "share of the link's capacity that was used, 0 to 1",
            Ratio(|r| r.utilisation),
        ),
        column("marked_packets", "packets", "packets marked at the port", Count(|r| r.marked_packets)),
        column("dropped_packets", "packets", "packets dropped at the port", Count(|r| r.dropped_packets)),
    ];
}

impl Row for ClassSeriesRow {
    const FILE: &'static str = "class_series";
    const ABOUT: &'static str = "\
With `classes` in `[queue_series]`: one row per output port, class and interval, in the order of time, from the first packet of the class on. A class is a queue of \
the port: with `priority` the DSCP (or the last queue), with `scavenger` 0 for the primary and 1 for the scavenger queue, with `drr` and `fq_codel` the queue to which a hash assigns the \
flow. Sums over the classes of a port are its values in `queue_series`; maxima are not sums.";
    const COLUMNS: &'static [Column<ClassSeriesRow>] = &[
        column("time_ns", "ns", "end of the interval", Count(|r| r.time_ns)),
        column("interval_ns", "ns", "length of the interval", Count(|r| r.interval_ns)),
        column("router", "", "router of the port", Name(|r| &r.router)),
        column("port", "", "port number, from 0", Number(|r| r.port)),
        column("to", "", "router or endpoint at the other end", Name(|r| &r.to)),
        column(
            "class",
            "",
            "number of the class; empty in a row for packets that were dropped and in no queue: lost on the link, or routed to a link \
             that was down",
            OptionalCount(|r| r.class.map(u64::from)),
        ),
        column(
            "packets",
            "packets",
            "packets of the class in the queue at the end",
            Count(|r| r.packets.into()),
        ),
        column("packets_mean", "packets", "mean packets in the queue", Ratio(|r| r.packets_mean)),
        column("packets_max", "packets", "most packets in the queue", Count(|r| r.packets_max.into())),
        column("bytes", "B", "bytes in the queue at the end, framing included", Count(|r| r.bytes)),
        column("bytes_mean", "B", "mean bytes in the queue", Ratio(|r| r.bytes_mean)),
        column("bytes_max", "B", "most bytes in the queue", Count(|r| r.bytes_max)),
        column("sent_packets", "packets", "packets sent", Count(|r| r.sent_packets)),
        column("sent_bytes", "B", "bytes sent, framing included", Count(|r| r.sent_bytes)),
        column("marked_packets", "packets", "packets marked", Count(|r| r.marked_packets)),
        column("dropped_packets", "packets", "packets dropped", Count(|r| r.dropped_packets)),
    ];
}
