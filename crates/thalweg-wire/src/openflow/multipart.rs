//! Multipart requests and replies (section 7.3.5).

use super::codec::{Listed, Reader, Wire, Writer};
use super::error::DecodeError;
use super::flow::FlowFlags;
use super::group::{Bucket, GroupType};
use super::identity::{GroupId, PortNumber, QueueId, TableId};
use super::instruction::Instruction;
use super::match_field::Match;
use super::port::Port;
use super::text::Text;

/// The flag bit for further parts (OFPMPF_REQ_MORE and OFPMPF_REPLY_MORE).
const MORE: u16 = 1;

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartRequest {
    /// Whether more parts with the same xid follow.
    pub more: bool,
    /// A request.
    pub request: Request,
}

/// A request in one part.
impl From<Request> for MultipartRequest {
    fn from(request: Request) -> MultipartRequest {
        MultipartRequest { more: false, request }
    }
}

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartReply {
    /// Whether more parts with the same xid follow.
    pub more: bool,
    /// A reply.
    pub reply: Reply,
}

tagged! {
    /// A request.
    pub enum Request(u16) {
        /// The manufacturer and model of the switch.
        0 Desc,
        /// Flow entries.
        1 Flow(filter: FlowFilter),
        /// Totals of flow entries.
        2 Aggregate(filter: FlowFilter),
        /// Flow tables.
        3 Table,
        /// Counters of ports.
        4 PortStats(filter: PortFilter),
        /// Counters of queues.
        5 Queue(filter: QueueFilter),
        /// Groups and their buckets.
        7 GroupDesc,
        /// Ports.
        13 PortDesc,
    }
}

tagged! {
    /// A reply.
    pub enum Reply(u16) {
        /// The manufacturer and model of the switch.
        0 Desc(description: Box<SwitchDescription>),
        /// Flow entries.
        1 Flow(flows: Vec<FlowStats>),
        /// Totals of flow entries.
        2 Aggregate(aggregate: AggregateStats),
        /// Flow tables.
        3 Table(tables: Vec<TableStats>),
        /// Counters of ports.
        4 PortStats(ports: Vec<PortStats>),
        /// Counters of queues.
        5 Queue(queues: Vec<QueueStats>),
        /// Groups and their buckets.
        7 GroupDesc(groups: Vec<GroupDescription>),
        /// Ports.
        13 PortDesc(ports: Vec<Port>),
    }
}

/// The number of padding bytes after type and flags.
const PADDING: usize = 4;

macro_rules! multipart {
    ($($message:ident { $body:ident: $kind:ident })+) => { $(
        impl Wire for $message {
            fn read(from: &mut Reader<'_>) -> Result<$message, DecodeError> {
                let kind = u16::read(from)?;
                let more = u16::read(from)? & MORE != 0;
                from.skip(PADDING)?;
                Ok($message { more, $body: $kind::read_body(kind, from)? })
            }

            fn write(&self, to: &mut Writer<'_>) {
                self.$body.kind().write(to);
                (if self.more { MORE } else { 0 }).write(to);
                to.zeros(PADDING);
                self.$body.write_body(to);
            }
        }
    )+ };
}

multipart! {
    MultipartRequest { request: Request }
    MultipartReply { reply: Reply }
}

layout! {
    /// The description of a switch (section 7.3.5.1).
    pub struct SwitchDescription {
        /// Manufacturer.
        manufacturer: Text<256>,
        /// Hardware.
        hardware: Text<256>,
        /// Software.
        software: Text<256>,
        /// Serial number.
        serial_number: Text<32>,
        /// A readable description of the datapath.
        datapath: Text<256>,
    }
}

layout! {
    /// A filter of flow entries (section 7.3.5.2).
    pub struct FlowFilter {
        /// Selects this table, or all.
        table_id: TableId [pad 3],
        /// Selects entries with this output port, unless [`PortNumber::ANY`].
        out_port: PortNumber,
        /// Selects entries that use this group, unless [`GroupId::ANY`].
        out_group: GroupId [pad 4],
        /// Selects entries whose cookie equals this one
        cookie: u64,
        /// in these bits.
        cookie_mask: u64,
        /// Selects entries whose match is this one or narrower.
        matching: Match,
    }
}

impl FlowFilter {
    /// Selects all entries of all tables.
    pub fn all() -> FlowFilter {
        FlowFilter::by_cookie(0, 0)
    }

    /// Selects the entries whose cookie equals `cookie` in the bits of `mask`.
    pub fn by_cookie(cookie: u64, mask: u64) -> FlowFilter {
        FlowFilter {
            table_id: TableId::ALL,
            out_port: PortNumber::ANY,
            out_group: GroupId::ANY,
            cookie,
            cookie_mask: mask,
            matching: Match::any(),
        }
    }
}

layout! {
    /// An installed flow entry (section 7.3.5.2).
    pub sized struct FlowStats {
        /// Its table.
        table_id: TableId [pad 1],
        /// The age: whole seconds.
        duration_sec: u32,
        /// The age: remaining nanoseconds.
        duration_nsec: u32,
        /// Its priority.
        priority: u16,
        /// Seconds without a packet after which it is removed; 0 for never.
        idle_timeout: u16,
        /// Seconds after which it is removed regardless of packets; 0 for never.
        hard_timeout: u16,
        /// The flags.
        flags: FlowFlags [pad 4],
        /// The number that the controller assigned.
        cookie: u64,
        /// The number of packets that matched.
        packet_count: u64,
        /// The number of bytes of these packets.
        byte_count: u64,
        /// The match, with the fields in the order of the switch ([`Match::sorted`] gives a defined order).
        matching: Match,
        /// The instructions.
        instructions: Vec<Instruction>,
    }
}

layout! {
    /// Totals of flow entries (section 7.3.5.3).
    #[derive(Copy)]
    pub struct AggregateStats {
        /// The number of packets that matched.
        packet_count: u64,
        /// The number of bytes of these packets.
        byte_count: u64,
        /// The number of entries.
        flow_count: u32 [pad 4],
    }
}

layout! {
    /// A flow table (section 7.3.5.4).
    #[derive(Copy)]
    pub struct TableStats {
        /// The number.
        table_id: TableId [pad 3],
        /// The number of entries.
        active_count: u32,
        /// The number of packets looked up.
        lookup_count: u64,
        /// The number of packets that matched.
        matched_count: u64,
    }
}

layout! {
    /// A filter of ports (section 7.3.5.6).
    #[derive(Copy)]
    pub struct PortFilter {
        /// The port, or [`PortNumber::ANY`] for all.
        port_no: PortNumber [pad 4],
    }
}

layout! {
    /// The counters of a port (section 7.3.5.6). An unsupported counter has all bits set.
    #[derive(Copy)]
    pub struct PortStats {
        /// The number.
        port_no: PortNumber [pad 4],
        /// Packets received.
        rx_packets: u64,
        /// Packets sent.
        tx_packets: u64,
        /// Bytes received.
        rx_bytes: u64,
        /// Bytes sent.
        tx_bytes: u64,
        /// Incoming packets dropped.
        rx_dropped: u64,
        /// Outgoing packets dropped.
        tx_dropped: u64,
        /// Receive errors, including those below.
        rx_errors: u64,
        /// Transmit errors.
        tx_errors: u64,
        /// Frames with alignment errors.
        rx_frame_err: u64,
        /// Packets with receiver overrun.
        rx_over_err: u64,
        /// Frames with a wrong checksum.
        rx_crc_err: u64,
        /// Collisions.
        collisions: u64,
        /// The age of the port: whole seconds.
        duration_sec: u32,
        /// The age: remaining nanoseconds.
        duration_nsec: u32,
    }
}

layout! {
    /// A filter of queues (section 7.3.5.8).
    #[derive(Copy)]
    pub struct QueueFilter {
        /// The port, or [`PortNumber::ANY`] for all.
        port_no: PortNumber,
        /// The queue, or [`QueueId::ALL`].
        queue_id: QueueId,
    }
}

layout! {
    /// The counters of a queue (section 7.3.5.8).
    #[derive(Copy)]
    pub struct QueueStats {
        /// Its port.
        port_no: PortNumber,
        /// The number.
        queue_id: QueueId,
        /// Bytes sent.
        tx_bytes: u64,
        /// Packets sent.
        tx_packets: u64,
        /// Packets dropped because the queue was full.
        tx_errors: u64,
        /// The age: whole seconds.
        duration_sec: u32,
        /// The age: remaining nanoseconds.
        duration_nsec: u32,
    }
}

layout! {
    /// An installed group (section 7.3.5.10).
    pub sized struct GroupDescription {
        /// The type of the group.
        group_type: GroupType [pad 1],
        /// The group.
        group_id: GroupId,
        /// Its buckets.
        buckets: Vec<Bucket>,
    }
}

impl Listed for TableStats {}
impl Listed for PortStats {}
impl Listed for QueueStats {}
