//! Identifiers: numbers of their own types, with reserved values.

use std::fmt;

use super::codec::{Reader, Wire, Writer};
use super::error::DecodeError;

numbers! {
    /// A transaction id: a reply has the xid of its request (section 7.1.1).
    Xid(u32) {}

    /// A port of a switch. Physical and logical ports count from 1 (section 7.2.1).
    PortNumber(u32) {
        /// The highest number of a physical or logical port.
        MAX = 0xffff_ff00, "max";
        /// The ingress port of the packet; an output to its number would not send it.
        IN_PORT = 0xffff_fff8, "in_port";
        /// The flow tables; in a packet-out only.
        TABLE = 0xffff_fff9, "table";
        /// The forwarding of a switch without OpenFlow.
        NORMAL = 0xffff_fffa, "normal";
        /// The flooding of a switch without OpenFlow.
        FLOOD = 0xffff_fffb, "flood";
        /// All ports except the ingress port.
        ALL = 0xffff_fffc, "all";
        /// The controller: a packet-in as output, and the ingress port of a packet-out.
        CONTROLLER = 0xffff_fffd, "controller";
        /// The network stack of the switch.
        LOCAL = 0xffff_fffe, "local";
        /// Any, in requests.
        ANY = 0xffff_ffff, "any";
    }

    /// A flow table; the processing of a packet begins at table 0 (section 7.2.4).
    TableId(u8) {
        /// All tables, in requests and deletions.
        ALL = 0xff, "all";
    }

    /// A group (section 7.3.4.2).
    GroupId(u32) {
        /// The highest number of a group.
        MAX = 0xffff_ff00, "max";
        /// All groups, in deletions.
        ALL = 0xffff_fffc, "all";
        /// Any, in requests.
        ANY = 0xffff_ffff, "any";
    }

    /// A queue of a port (section 7.2.2).
    QueueId(u32) {
        /// All queues, in requests.
        ALL = 0xffff_ffff, "all";
    }

    /// A packet buffered by the switch (section 7.4.1).
    BufferId(u32) {
        /// No buffer: the packet is in the message.
        NONE = 0xffff_ffff, "none";
    }
}

/// The id of a switch, unique in a network; its lower 48 bits should be a MAC address (section 7.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct DatapathId(pub u64);

/// Formats the id as 16 hexadecimal digits.
impl fmt::Display for DatapathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:016x}", self.0))
    }
}

impl Wire for DatapathId {
    fn read(from: &mut Reader<'_>) -> Result<DatapathId, DecodeError> {
        u64::read(from).map(DatapathId)
    }

    fn write(&self, to: &mut Writer<'_>) {
        self.0.write(to);
    }
}
