//! What the view shows, and what it asks for.
//!
//! The pipeline hands over a [`Snapshot`] now and then (four times a second reads well); the view sends a
//! [`Query`] whenever the user changes what the table shows. All times are packet times, never the wall
//! clock's; all lengths are bytes of the IP layer.

mod tasks_view;

use std::cmp::{Ordering, Reverse};
use std::net::IpAddr;

use thalweg_measure::detect::{Cheetah, CheetahEnd};
use thalweg_measure::filter::{Field, FlowFields, FlowFilter, Totals, key_address, key_number};
use thalweg_measure::meter::top::FlowRate;
use thalweg_wire::{BitRate, Bytes, FlowKey, Nanos, Progress, TcpFlags, Timestamp};

pub use tasks_view::{TaskRow, TasksView};

/// One live flow, both directions. Index 0 of a pair is from the initiator, index 1 to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// 5-tuple; the source is the initiator, the one that sent the first packet seen.
    pub key: FlowKey,
    /// First packet, either way.
    pub first: Timestamp,
    /// Latest packet, either way.
    pub last: Timestamp,
    /// Packets each way.
    pub packets: [u64; 2],
    /// Bytes each way.
    pub bytes: [u64; 2],
    /// Rate each way since the snapshot before.
    pub rate: [BitRate; 2],
    /// TCP flags seen each way, of all packets together.
    pub tcp_flags: [TcpFlags; 2],
    /// Which directions are cheetah flows now.
    pub cheetah: [bool; 2],
}

impl FlowRow {
    /// Both directions' rates together.
    pub fn total_rate(&self) -> BitRate {
        BitRate(self.rate[0].0.saturating_add(self.rate[1].0))
    }

    /// Both directions' bytes together.
    pub fn total_bytes(&self) -> Bytes {
        Bytes(self.bytes[0].saturating_add(self.bytes[1]))
    }

    /// Both directions' packets together.
    pub fn total_packets(&self) -> u64 {
        self.packets[0].saturating_add(self.packets[1])
    }

    /// Whether either direction is a cheetah flow now.
    pub fn is_cheetah(&self) -> bool {
        self.cheetah[0] || self.cheetah[1]
    }
}

/// One cheetah flow found: one direction of a flow, once for each time that it was found anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheetahRow {
    /// 5-tuple in the direction of the cheetah.
    pub key: FlowKey,
    /// First packet of the flow.
    pub first: Timestamp,
    /// Packet at which it was found.
    pub detected: Timestamp,
    /// Rate when it was found.
    pub rate: BitRate,
    /// Bytes so far, or in all once it has ended.
    pub bytes: Bytes,
    /// When it ceased to be a cheetah; `None` while it is one.
    pub ended: Option<Timestamp>,
}

impl CheetahRow {
    /// Time from the flow's first packet to its detection.
    pub fn delay(&self) -> Nanos {
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

/// As [`thalweg_measure::filter::METERED`] has them; the bit rate is that since the snapshot before.
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

/// As [`thalweg_measure::filter::CHEETAHS`] has them.
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

/// What a source is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceState {
    /// An interface, captured as its packets pass.
    #[default]
    Live,
    /// An interface that is down; packets flow again when it comes up.
    Down,
    /// A file, read as fast as it can be.
    Reading,
    /// A file, at the pace at which it was recorded.
    Replaying,
    /// Read to its end.
    Ended,
    /// It cannot go on, for this reason; what came before is measured.
    Failed(String),
}

/// One source of packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceRow {
    /// Interface or file name.
    pub name: String,
    /// What it is doing.
    pub state: SourceState,
    /// Packets that the kernel dropped for want of room.
    pub kernel_drops: u64,
    /// Times that the kernel stopped filling the ring because it was full.
    pub freezes: u64,
    /// How far a source of known length has come.
    pub progress: Option<Progress>,
}

/// How bad it is when a counter is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// As it should be: shown plainly.
    Note,
    /// Worth a look, such as malformed packets: amber.
    Warning,
    /// Something went by unmeasured, such as kernel drops: red.
    Loss,
}

/// A counter of the line under the panels. They are shown in the order given, those above zero first where
/// the line is too short for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// One or two words, such as `kernel drops`.
    pub label: &'static str,
    /// Its value.
    pub count: u64,
    /// How bad it is.
    pub severity: Severity,
}

/// Rates over one slice of packet time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSample {
    /// Bits a second.
    pub bit_rate: BitRate,
    /// Packets a second.
    pub packet_rate: f64,
}

/// Everything that the view shows, as of one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Packet time: the latest time stamp seen; zero before the first packet.
    pub now: Timestamp,
    /// Time stamp of the first packet.
    pub start: Timestamp,
    /// Packets measured.
    pub packets: u64,
    /// Bytes measured.
    pub bytes: Bytes,
    /// Packets a second, of the last whole slice.
    pub packet_rate: f64,
    /// Bits a second, of the last whole slice.
    pub bit_rate: BitRate,
    /// Rates by slice of packet time, oldest first; one a column of the sparklines, so 60 to 200 serve.
    pub history: Vec<RateSample>,
    /// Length of a slice of `history`.
    pub history_slice: Nanos,
    /// Flows in the table.
    pub flows_live: u64,
    /// Most flows that the table can hold.
    pub flow_capacity: u64,
    /// Flows that ended, evicted ones included.
    pub flows_ended: u64,
    /// Flows that ended because the table was full.
    pub evicted: u64,
    /// Cheetah flows now.
    pub cheetahs_live: u64,
    /// Cheetah flows found so far.
    pub cheetahs_total: u64,
    /// The latest cheetah flows that match the query's filter, newest first; the pipeline keeps as many as it likes.
    pub cheetahs: Vec<CheetahRow>,
    /// The first flows in the order of the query, at most [`Query::limit`].
    pub top: Vec<FlowRow>,
    /// Live flows that match the query's filter.
    pub matching: u64,
    /// The flow of [`Query::frozen`], if it is in the table.
    pub frozen: Option<FlowRow>,
    /// What was not measured, or was odd.
    pub counters: Vec<Counter>,
    /// Measurement tasks, if there are any.
    pub tasks: Option<TasksView>,
    /// Whether there is no flow table, and nothing known of flows and cheetahs.
    pub no_table: bool,
    /// Where the packets come from.
    pub sources: Vec<SourceRow>,
    /// Whether every source has ended: there will be no other snapshot. This one stays on the screen, so it
    /// best has the flows as they were before the table was emptied.
    pub ended: bool,
}

/// What the table is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// Current rate, both ways together.
    #[default]
    Rate,
    /// Bytes, both ways together.
    Bytes,
    /// Packets, both ways together.
    Packets,
    /// Time since the first packet.
    Age,
    /// Time of the latest packet.
    Last,
}

impl SortBy {
    /// In the order in which the sort key cycles through them.
    pub const ALL: [SortBy; 5] = [SortBy::Rate, SortBy::Bytes, SortBy::Packets, SortBy::Age, SortBy::Last];

    /// The one after this, the first after the last.
    #[must_use]
    pub fn next(self) -> SortBy {
        SortBy::ALL[(self as usize + 1) % SortBy::ALL.len()]
    }

    /// As the table's title has it.
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

/// Rows of the last snapshot, at most.
const LAST_ROWS: usize = 10_000;

/// Which flows the view wants to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// What to sort by.
    pub sort: SortBy,
    /// Largest, oldest or latest first.
    pub descending: bool,
    /// Which flows, and which cheetah flows.
    pub filter: FlowFilter,
    /// Most rows of [`Snapshot::top`].
    pub limit: usize,
    /// The flow to send as [`Snapshot::frozen`], whatever the filter; named in either direction.
    pub frozen: Option<FlowKey>,
}

impl Query {
    /// The same for the last snapshot, after which no other query is answered: the flows of every filter, many of them.
    #[must_use]
    pub fn last(self) -> Query {
        Query { filter: FlowFilter::default(), limit: self.limit.max(LAST_ROWS), ..self }
    }

    /// The order of rows that [`Snapshot::top`] is in: that of the sort key; among equals that of the flow
    /// keys, so that rows do not change places without a reason.
    pub fn compare(&self, a: &FlowRow, b: &FlowRow) -> Ordering {
        let order = self.sort.compare(a, b);
        let order = if self.descending { order.reverse() } else { order };
        order.then_with(|| a.key.cmp(&b.key))
    }

    /// Whether the filter lets a row through.
    pub fn matches(&self, row: &FlowRow) -> bool {
        self.filter.matches(row)
    }
}

/// The fastest 200 of all flows.
impl Default for Query {
    fn default() -> Self {
        Query {
            sort: SortBy::Rate,
            descending: true,
            filter: FlowFilter::default(),
            limit: 200,
            frozen: None,
        }
    }
}
