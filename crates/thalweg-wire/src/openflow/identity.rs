//! Names of what a switch consists of: numbers, each of its own type, some of them reserved.

use std::fmt;

use super::codec::{Reader, Wire, Writer};
use super::error::DecodeError;

numbers! {
    /// Names a message; who answers repeats it (section 7.1.1).
    Xid(u32) {}

    /// A port of a switch. Ports that packets can come in by count from 1 (section 7.2.1).
    PortNumber(u32) {
        /// Greatest number of a port that packets can come in by.
        MAX = 0xffff_ff00, "max";
        /// Out by the port that the packet came in by, which a plain output never does.
        IN_PORT = 0xffff_fff8, "in_port";
        /// Through the flow tables; of a packet-out only.
        TABLE = 0xffff_fff9, "table";
        /// As a switch without OpenFlow would do.
        NORMAL = 0xffff_fffa, "normal";
        /// As such a switch floods.
        FLOOD = 0xffff_fffb, "flood";
        /// All ports but the one that the packet came in by.
        ALL = 0xffff_fffc, "all";
        /// The controller, as a packet-in; from the controller, where it stands for a port of arrival.
        CONTROLLER = 0xffff_fffd, "controller";
        /// The switch's own network stack.
        LOCAL = 0xffff_fffe, "local";
        /// No restriction, in requests.
        ANY = 0xffff_ffff, "any";
    }

    /// A flow table; packets begin at 0 (section 7.2.4).
    TableId(u8) {
        /// Every table, in requests and when flows are deleted.
        ALL = 0xff, "all";
    }

    /// A group (section 7.3.4.2).
    GroupId(u32) {
        /// Greatest number of a group.
        MAX = 0xffff_ff00, "max";
        /// Every group, when groups are deleted.
        ALL = 0xffff_fffc, "all";
        /// No restriction, in requests.
        ANY = 0xffff_ffff, "any";
    }

    /// A queue of a port (section 7.2.2).
    QueueId(u32) {
        /// Every queue, in requests.
        ALL = 0xffff_ffff, "all";
    }

    /// A packet that the switch keeps until it is told where to send it (section 7.4.1).
    BufferId(u32) {
        /// None: the packet is in the message.
        NONE = 0xffff_ffff, "none";
    }
}

/// A switch, by a number that is unique in a network: its lower 48 bits are meant to be a MAC address (section 7.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct DatapathId(pub u64);

/// 16 hexadecimal digits.
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
