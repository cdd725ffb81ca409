//! Interface properties (`struct ifinfomsg` and its attributes).

use super::message::{attributes, find, text, u16_at, u32_at, u64_at};

/// The length of `struct ifinfomsg` in bytes.
pub(super) const INTERFACE_LENGTH: usize = 16;

/// IFLA_XDP_ATTACHED of if_link.h: the mode of the attached program, 0 for none.
const IFLA_XDP_ATTACHED: u16 = 2;

/// IF_OPER_UP of linux/if.h.
const OPERATIONAL: u8 = 6;

/// An interface of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// The interface index.
    pub index: u32,
    /// The `ARPHRD_` type.
    pub hardware_type: u16,
    /// The name.
    pub name: String,
    /// The kind of a virtual interface: `veth`, `bridge`, `vlan`.
    pub kind: String,
    /// The bridge, bond or switch that it is a port of.
    pub master: Option<u32>,
    /// The lower interface in this namespace; for an end of a veth pair the other end.
    pub lower: Option<u32>,
    /// Whether an XDP program is attached.
    pub has_xdp: bool,
    /// Whether it is up and has a carrier.
    pub is_operational: bool,
    /// The traffic counters.
    pub traffic: Traffic,
}

/// Traffic counters of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Received frames.
    pub received_packets: u64,
    /// Received bytes.
    pub received_bytes: u64,
    /// Sent frames.
    pub sent_packets: u64,
    /// Sent bytes.
    pub sent_bytes: u64,
    /// Received frames with errors.
    pub received_errors: u64,
    /// Frames that could not be sent because of errors.
    pub sent_errors: u64,
    /// Received frames that were dropped for lack of room.
    pub received_dropped: u64,
    /// Frames that the driver dropped instead of sending them, for lack of room.
    pub sent_dropped: u64,
}

impl Interface {
    /// Parses the payload of a message.
    pub(super) fn read(message: &[u8]) -> Option<Interface> {
        let mut interface = Interface {
            hardware_type: u16_at(message, 2)?,
            index: u32_at(message, 4)?,
            ..Interface::default()
        };
        let mut is_in_other_namespace = false;
        for (kind, value) in attributes(message.get(INTERFACE_LENGTH..)?) {
            match kind {
                libc::IFLA_IFNAME => interface.name = text(value),
                libc::IFLA_MASTER => interface.master = u32_at(value, 0),
                libc::IFLA_LINK => interface.lower = u32_at(value, 0),
                // The index of the lower interface belongs to another namespace.
                libc::IFLA_LINK_NETNSID => is_in_other_namespace = true,
                libc::IFLA_OPERSTATE => interface.is_operational = value.first() == Some(&OPERATIONAL),
                libc::IFLA_STATS64 => interface.traffic = Traffic::read(value).unwrap_or_default(),
                libc::IFLA_LINKINFO => {
                    interface.kind = find(value, libc::IFLA_INFO_KIND).map_or_else(String::new, text);
                }
                libc::IFLA_XDP => {
                    let mode = find(value, IFLA_XDP_ATTACHED);
                    interface.has_xdp = mode.is_some_and(|value| value.first() != Some(&0));
                }
                _ => {}
            }
        }
        if is_in_other_namespace {
            interface.lower = None;
        }
        Some(interface)
    }

    /// Whether this interface is on top of `lower`, as a VLAN is. The ends of a veth pair report each other as lower
    /// interface, but neither is on top of the other.
    pub fn is_built_on(&self, lower: &Interface) -> bool {
        self.lower == Some(lower.index) && self.index != lower.index && self.kind != "veth"
    }
}

impl Traffic {
    /// Parses `struct rtnl_link_stats64`.
    fn read(statistics: &[u8]) -> Option<Traffic> {
        Some(Traffic {
            received_packets: u64_at(statistics, 0)?,
            sent_packets: u64_at(statistics, 8)?,
            received_bytes: u64_at(statistics, 16)?,
            sent_bytes: u64_at(statistics, 24)?,
            received_errors: u64_at(statistics, 32)?,
            sent_errors: u64_at(statistics, 40)?,
            received_dropped: u64_at(statistics, 48)?,
            sent_dropped: u64_at(statistics, 56)?,
        })
    }
}

/// Whether an entry of the address list is a configured address of the interface `index`, not an IPv6 link-local
/// address.
pub(super) fn is_address_of(message: &[u8], index: u32) -> bool {
    let &[family, _, _, scope, ..] = message else { return false };
    let is_link_local = i32::from(family) == libc::AF_INET6 && scope == libc::RT_SCOPE_LINK;
    u32_at(message, 4) == Some(index) && !is_link_local
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_parse_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Interface::read(&bytes);
            is_address_of(&bytes, 1);
        }
    }
}
