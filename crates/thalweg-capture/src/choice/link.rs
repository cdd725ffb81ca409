//! Properties of an interface that decide whether its packets may be taken, in the calling thread's network
//! namespace.

use std::io;

use thalweg_linux::netlink::{Interface, Netlink, NetlinkError};

/// Properties of an interface that decide whether its packets may be taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) is_ethernet: bool,
    /// Whether it has a configured address, other than its automatic IPv6 link-local address.
    pub(super) has_address: bool,
    /// The bridge, bond or switch that it is a port of.
    pub(super) master: Option<String>,
    /// An interface that is built on it: a VLAN, a MACVLAN.
    pub(super) upper: Option<String>,
    /// Whether it already has an XDP program.
    pub(super) has_xdp: bool,
}

/// Looks up the interface `name`; returns `None` if there is none.
pub(super) fn look_up(name: &str) -> io::Result<Option<Link>> {
    let kernel = |error: NetlinkError| error.source;
    let netlink = Netlink::open()?;
    let listed = netlink.interfaces().map_err(kernel)?;
    let Some(this) = listed.iter().find(|listed| listed.name == name) else { return Ok(None) };
    Ok(Some(Link {
        is_ethernet: this.hardware_type == libc::ARPHRD_ETHER,
        has_address: netlink.has_configured_address(this.index).map_err(kernel)?,
        master: this.master.map(|index| name_of(index, &listed)),
        upper: listed.iter().find(|other| other.is_built_on(this)).map(|other| other.name.clone()),
        has_xdp: this.has_xdp,
    }))
}

fn name_of(index: u32, listed: &[Interface]) -> String {
    let found = listed.iter().find(|listed| listed.index == index);
    found.map_or_else(|| format!("interface {index}"), |listed| listed.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_looked_up() {
        let link = look_up("lo").unwrap().unwrap();
        assert_eq!((link.is_ethernet, link.master, link.has_xdp), (false, None, false));
        assert_eq!(look_up("no-such-one").unwrap(), None);
    }
}
