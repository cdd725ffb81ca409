//! The state that the live view shows, and its query.
//!
//! The pipeline sends a [`Snapshot`] about four times per second. The view sends a [`Query`] whenever the user changes the
//! table. All times are packet times, never wall clock times. All lengths count bytes at the IP layer.

mod tasks_view;

use std::cmp::{Ordering, Reverse};
use std::net::IpAddr;

use thalweg_measure::detect::{Cheetah, CheetahEnd};
use thalweg_measure::filter::{Field, FlowFields, FlowFilter, Totals, key_address, key_number};
use thalweg_measure::meter::top::FlowRate;
use thalweg_wire::{BitRate, Bytes, FlowKey, Nanos, Progress, TcpFlags, Timestamp};

pub use tasks_view::{TaskRow, TasksView};

/// A live flow with both directions. Index 0 of a pair is from the initiator, index 1 to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// 5-tuple. The source is the initiator: the sender of the first packet seen.
    pub key: FlowKey,
    /// First packet in either direction.
    pub first: Timestamp,
    /// Latest packet in either direction.
    pub last: Timestamp,
    /// Packets per direction.
    pub packets: [u64; 2],
    /// Bytes per direction.
    pub bytes: [u64; 2],
    /// Rate per direction since the previous snapshot.
    pub rate: [BitRate; 2],
    /// Union of the TCP flags per direction.
    pub tcp_flags: [TcpFlags; 2],
    /// Whether each direction is currently a cheetah flow.
    pub cheetah: [bool; 2],
}

impl FlowRow {
    /// Returns the rate of both directions.
    pub fn total_rate(&self) -> BitRate {
        BitRate(self.rate[0].0.saturating_add(self.rate[1].0))
    }

    /// Returns the bytes of both directions.
    pub fn total_bytes(&self) -> Bytes {
        Bytes(self.bytes[0].saturating_add(self.bytes[1]))
    }

    /// Returns the packets of both directions.
    pub fn total_packets(&self) -> u64 {
        self.packets[0].saturating_add(self.packets[1])
    }

    /// Whether either direction is currently a cheetah flow.
    pub fn is_cheetah(&self) -> bool {
        self.cheetah[0] || self.cheetah[1]
    }
}

/// A detected cheetah flow: one direction of a flow. A flow that is detected again has a row for each detection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheetahRow {
    /// 5-tuple in the direction of the cheetah.
    pub key: FlowKey,
    /// First packet of the flow.
    pub first: Timestamp,
    /// Time of the packet at which it was detected.
    pub detected: Timestamp,
    /// Rate at detection.
    pub rate: BitRate,
    /// Bytes so far, or in total once it has ended.
    pub bytes: Bytes,
    /// When it ceased to be a cheetah flow; `None` while it is one.
    pub ended: Option<Timestamp>,
}

impl CheetahRow {
    /// Returns the time from the first packet of the flow to its detection.
    pub fn age(&self) -> Nanos {
        self.detected - self.first
    }
}

impl From<FlowRate> for FlowRow {
    fn from(FlowRate { flow, forward, reverse }: FlowRate) -> FlowRow {
        FlowRow {
            key: flow.key,
            first: flow.first,
            last: flow.last,
            packets: [flow.forward.packets, flow.reverse.packets],
            bytes: [flow.forward.bytes.0, flow.reverse.bytes.0],
            rate: [forward, reverse],
            tcp_flags: [flow.forward.tcp_flags, flow.reverse.tcp_flags],
            cheetah: [flow.forward.cheetah, flow.reverse.cheetah],
        }
    }
}

impl From<&(Cheetah, Option<CheetahEnd>)> for CheetahRow {
    fn from((cheetah, end): &(Cheetah, Option<CheetahEnd>)) -> CheetahRow {
        CheetahRow {
            key: cheetah.key,
            first: cheetah.first,
            detected: cheetah.detected,
            rate: cheetah.rate,
            bytes: end.map_or(cheetah.bytes, |end| end.bytes),
            ended: end.map(|end| end.last),
        }
    }
}

/// Values of the fields of [`thalweg_measure::filter::METERED`]. The bit rate is that since the previous snapshot.
impl FlowFields for FlowRow {
    fn number(&self, field: Field) -> Option<u64> {
        let [tcp_flags, reverse_tcp_flags] = self.tcp_flags;
        match field {
            Field::TcpFlags => Some((tcp_flags | reverse_tcp_flags).0.into()),
            Field::InBytes => Some(self.bytes[0]),
            Field::InPackets => Some(self.packets[0]),
            Field::OutBytes => Some(self.bytes[1]),
            Field::OutPackets => Some(self.packets[1]),
            Field::Flows => Some(1),
            Field::BitRate => Some(self.total_rate().0),
            Field::Cheetah => Some(self.is_cheetah().into()),
            _ => {
                let (bytes, packets) = (self.total_bytes(), self.total_packets());
                let totals = Totals { bytes, packets, duration: self.last - self.first };
                key_number(&self.key, field).or_else(|| totals.number(field))
            }
        }
    }

    fn address(&self, field: Field) -> Option<IpAddr> {
        key_address(&self.key, field)
    }
}

/// Values of the fields of [`thalweg_measure::filter::CHEETAHS`].
impl FlowFields for CheetahRow {
    fn number(&self, field: Field) -> Option<u64> {
        match field {
            Field::Bytes => Some(self.bytes.0),
            Field::Flows | Field::Cheetah => Some(1),
            Field::Duration => Some((self.ended.unwrap_or(self.detected) - self.first).0 / 1_000_000),
            Field::BitRate => Some(self.rate.0),
            _ => key_number(&self.key, field),
        }
    }

    fn address(&self, field: Field) -> Option<IpAddr> {
        key_address(&self.key, field)
    }
}

/// State of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceState {
    /// An interface, captured live.
    #[default]
    Live,
    /// An interface that is down. Capture continues when it comes up.
    Down,
    /// A file, read as fast as possible.
    Reading,
    /// A file, read at replay pace.
    Replaying,
    /// Read to its end.
    Ended,
    /// Failed with this error. Everything before is measured.
    Failed(String),
}

/// A source of packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceRow {
    /// Interface or file name.
    pub name: String,
    /// State of the source.
    pub state: SourceState,
    /// Packets that the kernel dropped because the ring was full.
    pub kernel_drops: u64,
    /// Times that the kernel stopped filling the ring because it was full.
    pub freezes: u64,
    /// Progress, if the length of the source is known.
    pub progress: Option<Progress>,
}

/// Severity of a counter above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Normal; shown without emphasis.
    Note,
    /// Unusual, such as malformed packets; shown in amber.
    Warning,
    /// Unmeasured packets, such as kernel drops; shown in red.
    Loss,
}

/// A counter in the line below the panels. Counters are shown in the given order; if the line is too short, those above
/// zero first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Label of one or two words, such as `kernel drops`.
    pub label: &'static str,
    /// Value of the counter.
    pub count: u64,
    /// Severity if the value is above zero.
    pub severity: Severity,
}

/// Rates over one slice of packet time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSample {
    /// Bits per second.
    pub bit_rate: BitRate,
    /// Packets per second.
    pub packet_rate: f64,
}

/// The state that the live view shows, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Packet time: the latest timestamp; zero before the first packet.
    pub now: Timestamp,
    /// Timestamp of the first packet.
    pub start: Timestamp,
    /// Packets measured.
    pub packets: u64,
    /// Bytes measured.
    pub bytes: Bytes,
    /// Packets per second in the last complete slice.
    pub packet_rate: f64,
    /// Bits per second in the last complete slice.
    pub bit_rate: BitRate,
    /// Rates per slice of packet time, oldest first. Sparklines show one slice per column.
    pub history: Vec<RateSample>,
    /// Length of a slice of `history`.
    pub history_slice: Nanos,
    /// Flows in the table.
    pub flows_live: u64,
    /// Capacity of the flow table.
    pub flow_capacity: u64,
    /// Ended flows, including evicted ones.
    pub flows_ended: u64,
    /// Flows evicted because the table was full.
    pub evicted: u64,
    /// Current cheetah flows.
    pub cheetahs_live: u64,
    /// Cheetah flows detected so far.
    pub cheetahs_total: u64,
    /// The latest cheetah flows that match the query's filter, newest first.
    pub cheetahs: Vec<CheetahRow>,
    /// The first flows in the order of the query, at most [`Query::limit`].
    pub top: Vec<FlowRow>,
    /// Live flows that match the query's filter.
    pub matching: u64,
    /// The flow of [`Query::pinned`], if it is in the table.
    pub pinned: Option<FlowRow>,
    /// Counters of unmeasured and unusual packets.
    pub counters: Vec<Counter>,
    /// Measurement tasks, if any.
    pub tasks: Option<TasksView>,
    /// Whether the run has no flow table, and therefore no flows and cheetah flows.
    pub no_table: bool,
    /// Sources of packets.
    pub sources: Vec<SourceRow>,
    /// Whether every source has ended. This is then the last snapshot and stays on the screen, so it should contain the
    /// flows as they were before the table was emptied.
    pub ended: bool,
}

/// Sort key of the flow table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// Current rate of both directions.
    #[default]
    Rate,
    /// Bytes of both directions.
    Bytes,
    /// Packets of both directions.
    Packets,
    /// Time since the first packet.
    Age,
    /// Time of the latest packet.
    Last,
}

impl SortBy {
    /// All sort keys, in the order in which the `s` key cycles through them.
    pub const ALL: [SortBy; 5] = [SortBy::Rate, SortBy::Bytes, SortBy::Packets, SortBy::Age, SortBy::Last];

    /// Returns the next sort key; the first after the last.
    #[must_use]
    pub fn next(self) -> SortBy {
        SortBy::ALL[(self as usize + 1) % SortBy::ALL.len()]
    }

    /// Returns the name in the title of the table.
    pub fn label(self) -> &'static str {
        match self {
            SortBy::Rate => "rate",
            SortBy::Bytes => "bytes",
            SortBy::Packets => "packets",
            SortBy::Age => "age",
            SortBy::Last => "last packet",
        }
    }

    fn compare(self, a: &FlowRow, b: &FlowRow) -> Ordering {
        match self {
            SortBy::Rate => a.total_rate().cmp(&b.total_rate()),
            SortBy::Bytes => a.total_bytes().cmp(&b.total_bytes()),
            SortBy::Packets => a.total_packets().cmp(&b.total_packets()),
            SortBy::Age => Reverse(a.first).cmp(&Reverse(b.first)),
            SortBy::Last => a.last.cmp(&b.last),
        }
    }
}

/// Maximum rows of the last snapshot.
const LAST_ROWS: usize = 10_000;

/// The query of the live view: which flows to send, in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Sort key.
    pub sort: SortBy,
    /// Whether the largest, oldest or latest come first.
    pub descending: bool,
    /// Filter of flows and cheetah flows.
    pub filter: FlowFilter,
    /// Maximum rows of [`Snapshot::top`].
    pub limit: usize,
    /// The flow to send as [`Snapshot::pinned`], regardless of the filter; in either direction.
    pub pinned: Option<FlowKey>,
}

impl Query {
    /// Returns the query for the last snapshot: no filter and many rows, because no query is answered after it.
    #[must_use]
    pub fn last(self) -> Query {
        Query { filter: FlowFilter::default(), limit: self.limit.max(LAST_ROWS), ..self }
    }

    /// Compares rows by the sort key, then by flow key, so that equal rows keep their places. [`Snapshot::top`] has this
    /// order.
    pub fn compare(&self, a: &FlowRow, b: &FlowRow) -> Ordering {
        let order = self.sort.compare(a, b);
        let order = if self.descending { order.reverse() } else { order };
        order.then_with(|| a.key.cmp(&b.key))
    }

    /// Whether a row matches the filter.
    pub fn matches(&self, row: &FlowRow) -> bool {
        self.filter.matches(row)
    }
}

/// The 200 fastest flows.
impl Default for Query {
    fn default() -> Self {
        Query {
            sort: SortBy::Rate,
            descending: true,
            filter: FlowFilter::default(),
            limit: 200,
            pinned: None,
        }
    }
}
