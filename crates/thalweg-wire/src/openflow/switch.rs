//! Features, configuration and controller roles of a switch.

use super::identity::DatapathId;

layout! {
    /// The features of a switch (section 7.3.1).
    #[derive(Copy)]
    pub struct SwitchFeatures {
        /// The datapath id.
        datapath_id: DatapathId,
        /// The maximum number of buffered packets.
        n_buffers: u32,
        /// The number of flow tables.
        n_tables: u8,
        /// 0 for the main connection, otherwise the number of the auxiliary connection (section 6.3.5).
        auxiliary_id: u8 [pad 2],
        /// The capabilities. (The word after it is reserved.)
        capabilities: Capabilities [pad 4],
    }
}

flags! {
    /// The capabilities of a switch (section 7.3.1).
    Capabilities(u32) {
        /// Statistics of flows.
        FLOW_STATS = 0;
        /// Statistics of tables.
        TABLE_STATS = 1;
        /// Statistics of ports.
        PORT_STATS = 2;
        /// Statistics of groups.
        GROUP_STATS = 3;
        /// Reassembly of IP fragments.
        IP_REASSEMBLY = 5;
        /// Statistics of queues.
        QUEUE_STATS = 6;
        /// Blocking of ports to prevent loops.
        PORT_BLOCKED = 8;
    }
}

layout! {
    /// The configuration of a switch (section 7.3.2).
    #[derive(Copy)]
    pub struct SwitchConfig {
        /// The handling of IP fragments.
        flags: FragmentHandling,
        /// The maximum number of bytes of a table-miss packet sent to the controller; `WHOLE_PACKET` for all.
        miss_send_len: u16,
    }
}

numbers! {
    /// The handling of IP fragments (section 7.3.2).
    FragmentHandling(u16) {
        /// No special handling.
        NORMAL = 0, "normal";
        /// Fragments are dropped.
        DROP = 1, "drop";
        /// Fragments are reassembled.
        REASSEMBLE = 2, "reassemble";
    }

    /// The role of a controller (section 7.3.9).
    Role(u32) {
        /// No change; in a request only.
        NO_CHANGE = 0, "no change";
        /// Full access, shared with other controllers.
        EQUAL = 1, "equal";
        /// Full access, as the only master.
        MASTER = 2, "master";
        /// Read-only access.
        SLAVE = 3, "slave";
    }
}

layout! {
    /// A requested or assigned role (section 7.3.9).
    #[derive(Copy)]
    pub struct RoleRequest {
        /// The role.
        role: Role [pad 4],
        /// A number that increases with each election of a master, so that the switch rejects an outdated one.
        generation_id: u64,
    }
}
