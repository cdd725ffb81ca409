//! What a switch is, how it is set, and whose it is.

use super::identity::DatapathId;

layout! {
    /// Who a switch is (section 7.3.1).
    #[derive(Copy)]
    pub struct SwitchFeatures {
        /// Its number.
        datapath_id: DatapathId,
        /// Packets that it can keep for the controller at once.
        n_buffers: u32,
        /// Its flow tables.
        n_tables: u8,
        /// 0 for the main connection, else which of the auxiliary ones this is (section 6.3.5).
        auxiliary_id: u8 [pad 2],
        /// What it can do. (The word after it is reserved.)
        capabilities: Capabilities [pad 4],
    }
}

flags! {
    /// What a switch can do (section 7.3.1).
    Capabilities(u32) {
        /// Statistics of flows.
        FLOW_STATS = 0;
        /// Statistics of tables.
        TABLE_STATS = 1;
        /// Statistics of ports.
        PORT_STATS = 2;
        /// Statistics of groups.
        GROUP_STATS = 3;
        /// It puts IP fragments together.
        IP_REASSEMBLY = 5;
        /// Statistics of queues.
        QUEUE_STATS = 6;
        /// It keeps ports from forwarding where there would be a loop.
        PORT_BLOCKED = 8;
    }
}

layout! {
    /// How a switch is set (section 7.3.2).
    #[derive(Copy)]
    pub struct SwitchConfig {
        /// What becomes of IP fragments.
        flags: FragmentHandling,
        /// Most bytes of a packet without an entry that go to the controller; `WHOLE_PACKET` for all.
        miss_send_len: u16,
    }
}

numbers! {
    /// What a switch does with IP fragments (section 7.3.2).
    FragmentHandling(u16) {
        /// Nothing special.
        NORMAL = 0, "normal";
        /// Drops them.
        DROP = 1, "drop";
        /// Puts them together.
        REASSEMBLE = 2, "reassemble";
    }

    /// What a controller may do (section 7.3.9).
    Role(u32) {
        /// As it is; of a request only.
        NO_CHANGE = 0, "no change";
        /// Everything, as may others.
        EQUAL = 1, "equal";
        /// Everything, and no other master may.
        MASTER = 2, "master";
        /// Look, but not change.
        SLAVE = 3, "slave";
    }
}

layout! {
    /// A role that is asked for or held (section 7.3.9).
    #[derive(Copy)]
    pub struct RoleClaim {
        /// The role.
        role: Role [pad 4],
        /// Grows with each election of a master, so that an old one is refused.
        generation_id: u64,
    }
}
