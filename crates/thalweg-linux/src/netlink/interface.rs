//! What the kernel says of an interface (`struct ifinfomsg` and its attributes).

use super::message::{attributes, find, text, u16_at, u32_at, u64_at};

/// Bytes of `struct ifinfomsg`.
pub(super) const INTERFACE_LENGTH: usize = 16;

/// IFLA_XDP_ATTACHED of if_link.h: in which mode a program is attached, 0 for none.
const IFLA_XDP_ATTACHED: u16 = 2;

/// IF_OPER_UP of linux/if.h.
const OPERATIONAL: u8 = 6;

/// One interface of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its kernel number.
    pub index: u32,
    /// Its `ARPHRD_` type.
    pub hardware_type: u16,
    /// Its name.
    pub name: String,
    /// What it is, if it is virtual: `veth`, `bridge`, `vlan`.
    pub kind: String,
    /// The bridge, bond or switch that it is a port of.
    pub master: Option<u32>,
    /// The interface that it is built on, in this namespace; for one end of a veth pair the other.
    pub lower: Option<u32>,
    /// Whether it has an XDP program.
    pub has_xdp: bool,
    /// Whether it is up and has a carrier.
    pub is_operational: bool,
    /// What has passed it.
    pub traffic: Traffic,
}

/// Frames that an interface has received and sent, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames received.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames sent.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
}

impl Interface {
    /// Reads what follows the header of a message.
    pub(super) fn read(message: &[u8]) -> Option<Interface> {
        let mut interface = Interface {
            hardware_type: u16_at(message, 2)?,
            index: u32_at(message, 4)?,
            ..Interface::default()
        };
        let mut is_elsewhere = false;
        for (kind, value) in attributes(message.get(INTERFACE_LENGTH..)?) {
            match kind {
                libc::IFLA_IFNAME => interface.name = text(value),
                libc::IFLA_MASTER => interface.master = u32_at(value, 0),
                libc::IFLA_LINK => interface.lower = u32_at(value, 0),
                // Then the index is another namespace's.
                libc::IFLA_LINK_NETNSID => is_elsewhere = true,
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
        if is_elsewhere {
            interface.lower = None;
        }
        Some(interface)
    }

    /// Whether this interface is built on `lower`, as a VLAN is. Both ends of a veth pair name each other as the
    /// interface below; neither is.
    pub fn is_built_on(&self, lower: &Interface) -> bool {
        self.lower == Some(lower.index) && self.index != lower.index && self.kind != "veth"
    }
}

impl Traffic {
    /// Reads `struct rtnl_link_stats64`.
    fn read(statistics: &[u8]) -> Option<Traffic> {
        Some(Traffic {
            received_packets: u64_at(statistics, 0)?,
            sent_packets: u64_at(statistics, 8)?,
            received_bytes: u64_at(statistics, 16)?,
            sent_bytes: u64_at(statistics, 24)?,
        })
    }
}

/// Whether an entry of the list of addresses is one of the interface `index` that it did not give itself.
pub(super) fn is_address_of(message: &[u8], index: u32) -> bool {
    let &[family, _, _, scope, ..] = message else { return false };
    let is_own = i32::from(family) == libc::AF_INET6 && scope == libc::RT_SCOPE_LINK;
    u32_at(message, 4) == Some(index) && !is_own
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Interface::read(&bytes);
            is_address_of(&bytes, 1);
        }
    }
}
