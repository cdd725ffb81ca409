//! The columns of each file: name, unit, meaning, type, and how to read the value from a row. Parquet, CSV and the
//! reference page derive from these tables.

use crate::results::{DropRow, FlowRow, LinkRow, QueueRow};

/// A row of a file.
pub trait Row: Sized + 'static {
    /// The name of the file without its extension.
    const FILE: &'static str;
    /// What a row is, and the order of rows.
    const ABOUT: &'static str;
    /// The columns in order.
    const COLUMNS: &'static [Column<Self>];
}

/// One column of a file of rows `R`.
#[derive(Debug)]
pub struct Column<R> {
    /// The name, in lower case with `_` between words. A unit comes last.
    pub name: &'static str,
    /// The unit, or empty.
    pub unit: &'static str,
    /// The meaning of a value.
    pub about: &'static str,
    /// The type, and how to read the value from a row.
    pub values: Values<R>,
}

/// The type of a column and how to read its value from a row.
///
/// Counts are signed 64-bit numbers, so that negative differences do not wrap around in pandas or SQL. Compression
/// makes up for the width.
#[derive(Debug)]
pub enum Values<R> {
    /// UTF-8 text that repeats in many rows.
    Name(fn(&R) -> &str),
    /// A number that identifies something.
    Number(fn(&R) -> u16),
    /// Nanoseconds, bytes, packets. Values above `i64::MAX` (292 years of nanoseconds) are written as that.
    Count(fn(&R) -> u64),
    /// The same, or nothing.
    OptionalCount(fn(&R) -> Option<u64>),
    /// A ratio.
    Ratio(fn(&R) -> f64),
}

impl<R> Values<R> {
    /// The name of the type in Arrow, pandas and Polars.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Values::Name(_) => "string",
            Values::Number(_) => "uint16",
            Values::Count(_) => "int64",
            Values::OptionalCount(_) => "int64 or empty",
            Values::Ratio(_) => "double",
        }
    }
}

/// A count as written.
pub(super) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) const fn column<R>(
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    values: Values<R>,
) -> Column<R> {
    Column { name, unit, about, values }
}

use Values::{Count, Name, Number, Ratio};

impl Row for FlowRow {
    const FILE: &'static str = "flows";
    const ABOUT: &'static str = "One row per completed flow, in the order of completion.";
    const COLUMNS: &'static [Column<FlowRow>] = &[
        column("flow", "", "flow number, in the order of start", Count(|r| r.flow.into())),
        column("src", "", "endpoint that sent the flow", Name(|r| &r.src)),
        column("dst", "", "endpoint that received the flow", Name(|r| &r.dst)),
        column("bytes", "B", "payload bytes", Count(|r| r.bytes)),
        column("dscp", "", "differentiated services code point, 0 to 63", Number(|r| r.dscp.into())),
        column("start_ns", "ns", "start of the flow", Count(|r| r.start_ns)),
        column(
            "fct_ns",
            "ns",
            "flow completion time: from the start until the receiver has all bytes",
            Count(|r| r.fct_ns),
        ),
        column(
            "slowdown",
            "",
            "`fct_ns` divided by the completion time of the same flow in an idle network; NaN if that is unknown",
            Ratio(|r| r.slowdown),
        ),
        column("retransmissions", "segments", "retransmitted segments", Count(|r| r.retransmissions.into())),
        column("timeouts", "", "number of retransmission timeouts", Count(|r| r.timeouts.into())),
        column("marks", "segments", "segments that arrived with an ECN mark", Count(|r| r.marks.into())),
    ];
}

impl Row for QueueRow {
    const FILE: &'static str = "queues";
    const ABOUT: &'static str = "One row per output port and queue sample, in the order of time.";
    const COLUMNS: &'static [Column<QueueRow>] = &[
        column("time_ns", "ns", "time of the sample", Count(|r| r.time_ns)),
        column("router", "", "router of the port", Name(|r| &r.router)),
        column("port", "", "port number, from 0", Number(|r| r.port)),
        column("to", "", "router or endpoint at the other end", Name(|r| &r.to)),
        column("packets", "packets", "packets in the queue", Count(|r| r.packets.into())),
        column("bytes", "B", "bytes in the queue, framing included", Count(|r| r.bytes)),
    ];
}

impl Row for LinkRow {
    const FILE: &'static str = "links";
    const ABOUT: &'static str = "One row per link direction and interval, in the order of time.";
    const COLUMNS: &'static [Column<LinkRow>] = &[
        column("time_ns", "ns", "start of the interval", Count(|r| r.time_ns)),
        column("interval_ns", "ns", "length of the interval", Count(|r| r.interval_ns)),
        column("from", "", "sender", Name(|r| &r.from)),
        column("to", "", "receiver", Name(|r| &r.to)),
        column("packets", "packets", "packets sent", Count(|r| r.packets)),
        column("bytes", "B", "bytes sent, framing included", Count(|r| r.bytes)),
        column(
            "utilisation",
            "",
            "share of the link's capacity that was used, 0 to 1",
            Ratio(|r| r.utilisation),
        ),
        column(
            "marked_packets",
            "packets",
            "packets marked at the sending port",
            Count(|r| r.marked_packets),
        ),
        column(
            "dropped_packets",
            "packets",
            "packets dropped at the sending port",
            Count(|r| r.dropped_packets),
        ),
    ];
}

impl Row for DropRow {
    const FILE: &'static str = "drops";
    const ABOUT: &'static str = "One row per place and reason of drops since the start.";
    const COLUMNS: &'static [Column<DropRow>] = &[
        column(
            "place",
            "",
            "output port (`tor0 > h3`), router, or network interface of an endpoint",
            Name(|r| &r.place),
        ),
        column("reason", "", "reason of the drops", Name(|r| r.reason)),
        column("packets", "packets", "packets dropped", Count(|r| r.packets)),
    ];
}
