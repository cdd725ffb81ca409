//! Groups: sets of actions that flow entries share (section 7.3.4.2).

use super::action::Action;
use super::identity::{GroupId, PortNumber};

layout! {
    /// A change to groups.
    pub struct GroupMod {
        /// What is done.
        command: GroupModCommand,
        /// Which of its buckets a packet goes to.
        group_type: GroupType [pad 1],
        /// The group; of delete, [`GroupId::ALL`] means each.
        group_id: GroupId,
        /// Its buckets; of delete, none.
        buckets: Vec<Bucket>,
    }
}

layout! {
    /// One of a group's sets of actions.
    pub sized struct Bucket {
        /// Share of packets, of a group of type [`GroupType::SELECT`]; else 0.
        weight: u16,
        /// Of fast failover: the bucket is live while this port is; else [`PortNumber::ANY`].
        watch_port: PortNumber,
        /// Of fast failover: the bucket is live while this group is; else [`GroupId::ANY`].
        watch_group: GroupId [pad 4],
        /// What is done.
        actions: Vec<Action>,
    }
}

impl Bucket {
    /// A bucket that watches nothing and has no weight, as all but two types of groups want it.
    pub fn new(actions: Vec<Action>) -> Bucket {
        Bucket { weight: 0, watch_port: PortNumber::ANY, watch_group: GroupId::ANY, actions }
    }
}

numbers! {
    /// What is done to a group.
    GroupModCommand(u16) {
        /// Adds it; it must not be there.
        ADD = 0, "add";
        /// Changes type and buckets; it must be there.
        MODIFY = 1, "modify";
        /// Deletes it and all flow entries that hand on to it.
        DELETE = 2, "delete";
    }

    /// Which buckets of a group a packet goes to (section 5.6.1).
    GroupType(u8) {
        /// Every one.
        ALL = 0, "all";
        /// One, chosen by the switch by weight.
        SELECT = 1, "select";
        /// The only one.
        INDIRECT = 2, "indirect";
        /// The first that is live.
        FAST_FAILOVER = 3, "fast failover";
    }
}
