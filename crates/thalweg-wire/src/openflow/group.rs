//! Groups: sets of actions shared by flow entries (section 7.3.4.2).

use super::action::Action;
use super::identity::{GroupId, PortNumber};

layout! {
    /// A change of a group.
    pub struct GroupMod {
        /// The command.
        command: GroupModCommand,
        /// The type of the group.
        group_type: GroupType [pad 1],
        /// The group; [`GroupId::ALL`] in a delete means all groups.
        group_id: GroupId,
        /// Its buckets; none for delete.
        buckets: Vec<Bucket>,
    }
}

layout! {
    /// A set of actions of a group.
    pub sized struct Bucket {
        /// The relative share of packets in a group of type [`GroupType::SELECT`]; otherwise 0.
        weight: u16,
        /// For fast failover: the port on which the liveness of the bucket depends; otherwise [`PortNumber::ANY`].
        watch_port: PortNumber,
        /// For fast failover: the group on which the liveness of the bucket depends; otherwise [`GroupId::ANY`].
        watch_group: GroupId [pad 4],
        /// The actions.
        actions: Vec<Action>,
    }
}

impl Bucket {
    /// Creates a bucket without watched port, watched group and weight, as for types other than `SELECT` and failover.
    pub fn new(actions: Vec<Action>) -> Bucket {
        Bucket { weight: 0, watch_port: PortNumber::ANY, watch_group: GroupId::ANY, actions }
    }
}

numbers! {
    /// The command of a group-mod.
    GroupModCommand(u16) {
        /// Adds a group, which must not exist.
        ADD = 0, "add";
        /// Changes the type and buckets of an existing group.
        MODIFY = 1, "modify";
        /// Deletes a group and all flow entries that use it.
        DELETE = 2, "delete";
    }

    /// The type of a group: which buckets are applied to a packet (section 5.6.1).
    GroupType(u8) {
        /// All buckets.
        ALL = 0, "all";
        /// One bucket, selected by the switch by weight.
        SELECT = 1, "select";
        /// The only bucket.
        INDIRECT = 2, "indirect";
        /// The first live bucket.
        FAST_FAILOVER = 3, "fast failover";
    }
}
