//! The interfaces of this network namespace, and whether they can be captured.

use std::io;
use std::net::IpAddr;

use thalweg_linux::netdevice::{InterfaceAddress, interface_addresses};
use thalweg_linux::netlink::{Interface, Netlink, NetlinkError};
use thalweg_linux::privileges::can_capture;
use thalweg_linux::socket::Socket;
use thalweg_wire::{BitRate, LinkType};
use thiserror::Error;

use super::interface::link_type_of_hardware;

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureInterface {
    /// Index in this network namespace.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Kind of a virtual interface, such as `veth` or `bridge`; empty for others.
    pub kind: String,
    /// Whether it is up.
    pub state: InterfaceState,
    /// Addresses with the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
    /// MTU in bytes, if known.
    pub mtu: Option<u32>,
    /// Nominal speed, if known.
    pub speed: Option<BitRate>,
    /// Frames received since it exists.
    pub received_packets: u64,
    /// Frames sent.
    pub sent_packets: u64,
    /// Whether it can be captured.
    pub capture: Capturable,
}

/// State of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceState {
    /// It is up and has a carrier.
    Up,
    /// It is up and has no carrier.
    NoCarrier,
    /// It is down.
    Down,
}

impl InterfaceState {
    /// Returns the name in lists and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            InterfaceState::Up => "up",
            InterfaceState::NoCarrier => "no_carrier",
            InterfaceState::Down => "down",
        }
    }
}

/// Whether an interface can be captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capturable {
    /// Yes.
    Yes,
    /// With the capability CAP_NET_RAW, which this process lacks.
    NeedsPrivilege,
    /// No: frames of this `ARPHRD_` type are not supported.
    UnsupportedLink(u16),
}

/// The interfaces cannot be listed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ListError {
    /// The interfaces.
    #[error("cannot list the interfaces: {0}")]
    Interfaces(#[from] NetlinkError),
    /// Their addresses or properties.
    #[error("cannot read the addresses of interfaces: {0}")]
    Addresses(#[from] io::Error),
}

/// Lists the interfaces in the order of their indices. Needs no privileges.
///
/// # Errors
/// If the kernel refuses.
pub fn list_interfaces() -> Result<Vec<CaptureInterface>, ListError> {
    let addresses = interface_addresses()?;
    let (socket, may_capture) = (Socket::for_ioctls()?, can_capture());
    let describe = |interface| described(interface, &socket, &addresses, may_capture);
    let mut interfaces: Vec<_> = Netlink::open()?.interfaces()?.into_iter().map(describe).collect();
    interfaces.sort_by_key(|interface| interface.index);
    Ok(interfaces)
}

fn described(
    interface: Interface,
    socket: &Socket,
    addresses: &[InterfaceAddress],
    may_capture: bool,
) -> CaptureInterface {
    let Interface { index, name, kind, hardware_type, traffic, .. } = interface;
    let flags = socket.interface_flags(&name).unwrap_or(0);
    let own = addresses.iter().filter(|address| address.interface == name);
    CaptureInterface {
        index,
        state: match (flags & libc::IFF_UP != 0, flags & libc::IFF_RUNNING != 0) {
            (true, true) => InterfaceState::Up,
            (true, false) => InterfaceState::NoCarrier,
            (false, _) => InterfaceState::Down,
        },
        addresses: own.map(|address| (address.address, address.prefix_length)).collect(),
        mtu: socket.interface_mtu(&name).ok(),
        speed: socket.link_speed(&name).ok().flatten(),
        received_packets: traffic.received_packets,
        sent_packets: traffic.sent_packets,
        capture: match link_type_of_hardware(hardware_type) {
            Some(LinkType::Ethernet | LinkType::RawIp) if may_capture => Capturable::Yes,
            Some(_) => Capturable::NeedsPrivilege,
            None => Capturable::UnsupportedLink(hardware_type),
        },
        name,
        kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_listed_with_its_address() {
        let interfaces = list_interfaces().unwrap();
        let loopback = interfaces.iter().find(|interface| interface.name == "lo").unwrap();
        assert!(
            loopback.addresses.is_empty() || loopback.addresses.contains(&("127.0.0.1".parse().unwrap(), 8))
        );
        assert!(!matches!(loopback.capture, Capturable::UnsupportedLink(_)));
        assert_eq!(loopback.speed, None);
        assert!(interfaces.is_sorted_by_key(|interface| interface.index));
    }
}
