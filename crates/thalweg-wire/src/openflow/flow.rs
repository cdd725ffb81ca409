//! Changes and removals of flow entries.

use super::identity::{BufferId, GroupId, PortNumber, TableId};
use super::instruction::Instruction;
use super::match_field::Match;

layout! {
    /// A change to flow tables (section 7.3.4.1).
    pub struct FlowMod {
        /// A number that the controller assigns to the entry.
        cookie: u64,
        /// For modify and delete: restricts the command to entries whose cookie is equal in these bits.
        cookie_mask: u64,
        /// The table; [`TableId::ALL`] in a delete means all tables.
        table_id: TableId,
        /// The command.
        command: FlowModCommand,
        /// Seconds without a packet after which the entry is removed; 0 for never.
        idle_timeout: u16,
        /// Seconds after which it is removed regardless of packets; 0 for never.
        hard_timeout: u16,
        /// The priority; of several matching entries, the highest applies.
        priority: u16,
        /// A buffered packet to process after the change, or [`BufferId::NONE`].
        buffer_id: BufferId,
        /// For delete: restricts the command to entries with this output port, unless [`PortNumber::ANY`].
        out_port: PortNumber,
        /// For delete: restricts the command to entries that use this group, unless [`GroupId::ANY`].
        out_group: GroupId,
        /// The flags.
        flags: FlowFlags [pad 2],
        /// The match.
        matching: Match,
        /// The instructions; none for delete.
        instructions: Vec<Instruction>,
    }
}

/// Adds an entry of the lowest priority that drops every packet.
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
    /// Deletes the entries of all tables whose cookie equals `cookie` in the bits of `mask`.
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
    /// The command of a flow-mod (section 7.3.4.1).
    FlowModCommand(u8) {
        /// Adds an entry; an entry with the same match and priority is replaced, including its counters.
        ADD = 0, "add";
        /// Changes the instructions of all entries that the match includes.
        MODIFY = 1, "modify";
        /// Changes the instructions of the entry with this match and priority.
        MODIFY_STRICT = 2, "modify strict";
        /// Deletes all entries that the match includes.
        DELETE = 3, "delete";
        /// Deletes the entry with this match and priority.
        DELETE_STRICT = 4, "delete strict";
    }

    /// The reason for the removal of a flow entry (section 7.4.2).
    FlowRemovedReason(u8) {
        /// No packet matched for the idle timeout.
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
    /// Flags of a flow entry (section 7.3.4.1).
    FlowFlags(u16) {
        /// The switch reports the removal of the entry.
        SEND_FLOW_REMOVED = 0;
        /// The switch rejects the entry if it overlaps with another of the same priority.
        CHECK_OVERLAP = 1;
        /// The counters are reset.
        RESET_COUNTS = 2;
        /// Packets need not be counted.
        NO_PACKET_COUNTS = 3;
        /// Bytes need not be counted.
        NO_BYTE_COUNTS = 4;
    }
}

layout! {
    /// The removal of a flow entry (section 7.4.2).
    pub struct FlowRemoved {
        /// The number that the controller assigned.
        cookie: u64,
        /// Its priority.
        priority: u16,
        /// The reason for the removal.
        reason: FlowRemovedReason,
        /// Its table.
        table_id: TableId,
        /// The age of the entry: whole seconds.
        duration_sec: u32,
        /// The age of the entry: remaining nanoseconds.
        duration_nsec: u32,
        /// As in the flow-mod.
        idle_timeout: u16,
        /// As in the flow-mod.
        hard_timeout: u16,
        /// The number of packets that matched.
        packet_count: u64,
        /// The number of bytes of these packets.
        byte_count: u64,
        /// The match.
        matching: Match,
    }
}
