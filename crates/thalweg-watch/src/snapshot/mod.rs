//! The state that the live view shows, and its query.
//!
//! The pipeline sends a [`Snapshot`] about four times per second. The view sends a [`Query`] whenever the user changes the
//! table. All times are packet times, never wall clock times. All lengths count bytes at the IP layer.

mod flow_row;
mod query;
mod tasks_view;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use thalweg_measure::detect::{Cheetah, CheetahEnd};
use thalweg_measure::filter::{Field, FlowFields, key_address, key_number};
use thalweg_wire::{BitRate, Bytes, FlowKey, Nanos, Progress, Timestamp, VlanTags};

pub use flow_row::FlowRow;
pub use query::{Query, SortBy, groups_of};
pub use tasks_view::{TaskRow, TasksView};

use crate::flow_capture::FlowCaptureStatus;
use crate::groups::GroupList;

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

impl Snapshot {
    /// Returns the addresses of all rows, most important first.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let keys = self.pinned.iter().chain(&self.top).map(|row| row.key);
        let keys = keys.chain(self.cheetahs.iter().map(|row| row.key));
        let groups = self.hosts.rows.iter().chain(&self.pairs.rows);
        let groups = groups.flat_map(|row| row.group.addresses());
        groups.chain(keys.flat_map(|key| [key.src(), key.dst()]))
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
    /// Frames longer than the link allows, merged from several by GRO or TSO.
    pub merged: u64,
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
    /// Hosts, in the order of the query; empty unless the query is for them, or the snapshot the last one.
    pub hosts: GroupList,
    /// Pairs of hosts, likewise.
    pub pairs: GroupList,
    /// The latest file with packets of a flow.
    pub capture: Option<FlowCaptureStatus>,
    /// VLAN tags of the frames, for capture filters; `None` if flows may be inside tunnels.
    pub tags: Option<VlanTags>,
    /// Names of addresses, as far as they are known.
    pub names: HashMap<IpAddr, Arc<str>>,
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
