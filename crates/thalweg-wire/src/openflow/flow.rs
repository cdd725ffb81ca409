//! Flow entries: how they are changed, and that they are no more.

use super::identity::{BufferId, GroupId, PortNumber, TableId};
use super::instruction::Instruction;
use super::match_field::Match;

layout! {
    /// A change to flow tables (section 7.3.4.1).
    pub struct FlowMod {
        /// A number of the controller's own, kept with the entry.
        cookie: u64,
        /// Of modify and delete: only entries whose cookie agrees in these bits.
        cookie_mask: u64,
        /// The table; of delete, [`TableId::ALL`] means each.
        table_id: TableId,
        /// What is done.
        command: FlowModCommand,
        /// Seconds without a packet after which the entry goes; 0 for never.
        idle_timeout: u16,
        /// Seconds after which it goes in any case; 0 for never.
        hard_timeout: u16,
        /// Where entries overlap, the greatest one counts.
        priority: u16,
        /// A packet that is sent on once the entry is there; else [`BufferId::NONE`].
        buffer_id: BufferId,
        /// Of delete: only entries that send there; else [`PortNumber::ANY`].
        out_port: PortNumber,
        /// Of delete: only entries that hand on to it; else [`GroupId::ANY`].
        out_group: GroupId,
        /// How.
        flags: FlowFlags [pad 2],
        /// Packets that it is about.
        matching: Match,
        /// What happens to them; of delete, none.
        instructions: Vec<Instruction>,
    }
}

/// Adds an entry for every packet, at the lowest priority, that drops it.
impl Default for FlowMod {
    fn default() -> FlowMod {
        FlowMod {
            cookie: 0,
            cookie_mask: 0,
            table_id: TableId(0),
            command: FlowModCommand::ADD,
            idle_timeout: 0,
            hard_timeout: 0,
            priority: 0,
            buffer_id: BufferId::NONE,
            out_port: PortNumber::ANY,
            out_group: GroupId::ANY,
            flags: FlowFlags::default(),
            matching: Match::any(),
            instructions: Vec::new(),
        }
    }
}

impl FlowMod {
    /// Deletes all entries, of every table, whose cookie agrees with `cookie` in the bits of `mask`.
    pub fn delete_by_cookie(cookie: u64, mask: u64) -> FlowMod {
        FlowMod {
            cookie,
            cookie_mask: mask,
            table_id: TableId::ALL,
            command: FlowModCommand::DELETE,
            ..FlowMod::default()
        }
    }
}

numbers! {
    /// What is done to flow entries (section 7.3.4.1).
    FlowModCommand(u8) {
        /// Adds an entry; one with the same match and priority is replaced, its counters too.
        ADD = 0, "add";
        /// Changes the instructions of all entries that the match takes in.
        MODIFY = 1, "modify";
        /// Changes the instructions of the entry with this match and priority.
        MODIFY_STRICT = 2, "modify strict";
        /// Deletes all entries that the match takes in.
        DELETE = 3, "delete";
        /// Deletes the entry with this match and priority.
        DELETE_STRICT = 4, "delete strict";
    }

    /// Why a flow entry is no more (section 7.4.2).
    FlowRemovedReason(u8) {
        /// No packet came for the idle timeout.
        IDLE_TIMEOUT = 0, "idle timeout";
        /// The hard timeout passed.
        HARD_TIMEOUT = 1, "hard timeout";
        /// A flow-mod deleted it.
        DELETE = 2, "deleted";
        /// Its group was deleted.
        GROUP_DELETE = 3, "group deleted";
    }
}

flags! {
    /// How a flow entry is kept (section 7.3.4.1).
    FlowFlags(u16) {
        /// The controller is told when it goes.
        SEND_FLOW_REMOVED = 0;
        /// It is refused if it overlaps with another of the same priority.
        CHECK_OVERLAP = 1;
        /// Counters begin anew.
        RESET_COUNTS = 2;
        /// Packets need not be counted.
        NO_PACKET_COUNTS = 3;
        /// Bytes need not be counted.
        NO_BYTE_COUNTS = 4;
    }
}

layout! {
    /// A flow entry that is no more (section 7.4.2).
    pub struct FlowRemoved {
        /// The controller's number for it.
        cookie: u64,
        /// Its priority.
        priority: u16,
        /// Why it went.
        reason: FlowRemovedReason,
        /// Its table.
        table_id: TableId,
        /// Seconds that it was there.
        duration_sec: u32,
        /// Nanoseconds beyond these.
        duration_nsec: u32,
        /// As in the flow-mod.
        idle_timeout: u16,
        /// As in the flow-mod.
        hard_timeout: u16,
        /// Packets that matched.
        packet_count: u64,
        /// Their bytes.
        byte_count: u64,
        /// What it matched.
        matching: Match,
    }
}
