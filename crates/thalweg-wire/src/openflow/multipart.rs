//! Questions whose answers may take several messages (section 7.3.5).

use super::codec::{Listed, Reader, Wire, Writer};
use super::error::DecodeError;
use super::flow::FlowFlags;
use super::group::{Bucket, GroupType};
use super::identity::{GroupId, PortNumber, QueueId, TableId};
use super::instruction::Instruction;
use super::match_field::Match;
use super::port::Port;
use super::text::Text;

/// Bit of the flags that says that more parts follow (OFPMPF_REQ_MORE and OFPMPF_REPLY_MORE).
const MORE: u16 = 1;

/// A part of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartRequest {
    /// Whether more parts follow under the same xid.
    pub more: bool,
    /// What is asked.
    pub request: Request,
}

/// The whole of a question.
impl From<Request> for MultipartRequest {
    fn from(request: Request) -> MultipartRequest {
        MultipartRequest { more: false, request }
    }
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartReply {
    /// Whether more parts follow under the same xid.
    pub more: bool,
    /// What is answered.
    pub reply: Reply,
}

tagged! {
    /// What is asked.
    pub enum Request(u16) {
        /// Who made the switch.
        0 Desc,
        /// Flow entries, one by one.
        1 Flow(filter: FlowFilter),
        /// Flow entries, added up.
        2 Aggregate(filter: FlowFilter),
        /// Flow tables.
        3 Table,
        /// What passed through ports.
        4 PortStats(filter: PortFilter),
        /// What passed through queues.
        5 Queue(filter: QueueFilter),
        /// Groups and their buckets.
        7 GroupDesc,
        /// Ports.
        13 PortDesc,
    }
}

tagged! {
    /// What is answered.
    pub enum Reply(u16) {
        /// Who made the switch.
        0 Desc(description: Box<SwitchDescription>),
        /// Flow entries, one by one.
        1 Flow(flows: Vec<FlowStats>),
        /// Flow entries, added up.
        2 Aggregate(aggregate: AggregateStats),
        /// Flow tables.
        3 Table(tables: Vec<TableStats>),
        /// What passed through ports.
        4 PortStats(ports: Vec<PortStats>),
        /// What passed through queues.
        5 Queue(queues: Vec<QueueStats>),
        /// Groups and their buckets.
        7 GroupDesc(groups: Vec<GroupDescription>),
        /// Ports.
        13 PortDesc(ports: Vec<Port>),
    }
}

/// Bytes of padding after type and flags.
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
    /// Who made a switch (section 7.3.5.1).
    pub struct SwitchDescription {
        /// Manufacturer.
        manufacturer: Text<256>,
        /// Hardware.
        hardware: Text<256>,
        /// Software.
        software: Text<256>,
        /// Serial number.
        serial_number: Text<32>,
        /// What people call it.
        datapath: Text<256>,
    }
}

layout! {
    /// Which flow entries (section 7.3.5.2).
    pub struct FlowFilter {
        /// In this table, or in all.
        table_id: TableId [pad 3],
        /// That send there, or [`PortNumber::ANY`].
        out_port: PortNumber,
        /// That hand on to it, or [`GroupId::ANY`].
        out_group: GroupId [pad 4],
        /// Whose cookie agrees with this one
        cookie: u64,
        /// in these bits.
        cookie_mask: u64,
        /// Whose match is this one or narrower.
        matching: Match,
    }
}

impl FlowFilter {
    /// Every entry of every table.
    pub fn all() -> FlowFilter {
        FlowFilter::by_cookie(0, 0)
    }

    /// Every entry whose cookie agrees with `cookie` in the bits of `mask`.
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
    /// A flow entry as it is installed (section 7.3.5.2).
    pub sized struct FlowStats {
        /// Its table.
        table_id: TableId [pad 1],
        /// Seconds that it has been there.
        duration_sec: u32,
        /// Nanoseconds beyond these.
        duration_nsec: u32,
        /// Its priority.
        priority: u16,
        /// Seconds without a packet after which it goes; 0 for never.
        idle_timeout: u16,
        /// Seconds after which it goes in any case; 0 for never.
        hard_timeout: u16,
        /// How it is kept.
        flags: FlowFlags [pad 4],
        /// The controller's number for it.
        cookie: u64,
        /// Packets that matched.
        packet_count: u64,
        /// Their bytes.
        byte_count: u64,
        /// Packets that it is about, the fields in the switch's own order ([`Match::sorted`] brings them into ours).
        matching: Match,
        /// What happens to them.
        instructions: Vec<Instruction>,
    }
}

layout! {
    /// Flow entries added up (section 7.3.5.3).
    #[derive(Copy)]
    pub struct AggregateStats {
        /// Packets that matched.
        packet_count: u64,
        /// Their bytes.
        byte_count: u64,
        /// Entries.
        flow_count: u32 [pad 4],
    }
}

layout! {
    /// A flow table (section 7.3.5.4).
    #[derive(Copy)]
    pub struct TableStats {
        /// Which.
        table_id: TableId [pad 3],
        /// Entries.
        active_count: u32,
        /// Packets that were looked up.
        lookup_count: u64,
        /// Packets that matched.
        matched_count: u64,
    }
}

layout! {
    /// Which ports (section 7.3.5.6).
    #[derive(Copy)]
    pub struct PortFilter {
        /// This one, or [`PortNumber::ANY`] for all.
        port_no: PortNumber [pad 4],
    }
}

layout! {
    /// What passed through a port (section 7.3.5.6). A counter that the switch does not keep is all ones.
    #[derive(Copy)]
    pub struct PortStats {
        /// Which.
        port_no: PortNumber [pad 4],
        /// Packets received.
        rx_packets: u64,
        /// Packets sent.
        tx_packets: u64,
        /// Bytes received.
        rx_bytes: u64,
        /// Bytes sent.
        tx_bytes: u64,
        /// Packets received and dropped.
        rx_dropped: u64,
        /// Packets to send and dropped.
        tx_dropped: u64,
        /// Errors in receiving, those below among them.
        rx_errors: u64,
        /// Errors in sending.
        tx_errors: u64,
        /// Frames that were not aligned.
        rx_frame_err: u64,
        /// Packets that overran the receiver.
        rx_over_err: u64,
        /// Frames with a wrong checksum.
        rx_crc_err: u64,
        /// Collisions.
        collisions: u64,
        /// Seconds that the port has been there.
        duration_sec: u32,
        /// Nanoseconds beyond these.
        duration_nsec: u32,
    }
}

layout! {
    /// Which queues (section 7.3.5.8).
    #[derive(Copy)]
    pub struct QueueFilter {
        /// Of this port, or [`PortNumber::ANY`] for all.
        port_no: PortNumber,
        /// This one, or [`QueueId::ALL`].
        queue_id: QueueId,
    }
}

layout! {
    /// What passed through a queue (section 7.3.5.8).
    #[derive(Copy)]
    pub struct QueueStats {
        /// Its port.
        port_no: PortNumber,
        /// Which.
        queue_id: QueueId,
        /// Bytes sent.
        tx_bytes: u64,
        /// Packets sent.
        tx_packets: u64,
        /// Packets dropped because it was full.
        tx_errors: u64,
        /// Seconds that it has been there.
        duration_sec: u32,
        /// Nanoseconds beyond these.
        duration_nsec: u32,
    }
}

layout! {
    /// A group as it is installed (section 7.3.5.10).
    pub sized struct GroupDescription {
        /// Which of its buckets a packet goes to.
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
