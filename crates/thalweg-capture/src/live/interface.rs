//! Properties of an interface. All are queried through the packet socket, so they refer to the network namespace in
//! which the socket was opened.

use std::io;

use thalweg_linux::netdevice::interface_names;
use thalweg_wire::LinkType;
use thalweg_wire::nearest::nearest;

use super::error::LiveError;
use super::socket::PacketSocket;

/// Device types of if_arp.h whose frames begin with an IP header, without a header of their own: the capture type is
/// then raw IP. Tunnels that do build a header build the outer IP header, which can be parsed too.
const RAW_IP: [u16; 8] = [
    libc::ARPHRD_NONE,
    libc::ARPHRD_PPP,
    libc::ARPHRD_TUNNEL,
    libc::ARPHRD_TUNNEL6,
    libc::ARPHRD_SIT,
    libc::ARPHRD_IPGRE,
    823, // ARPHRD_IP6GRE
    519, // ARPHRD_RAWIP: cellular modems
];

/// Whether the captured interface carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// It is up.
    Up,
    /// It was taken down (`ip link set NAME down`), or was never up; packets arrive again when it comes up.
    Down,
    /// It was deleted, or moved to another network namespace; what is left in the ring is still delivered.
    Gone,
}

/// Returns the index of the interface `name`.
pub(crate) fn index_of(socket: &PacketSocket, name: &str) -> Result<i32, LiveError> {
    socket.socket().interface_index(name).map_err(|source| match source.raw_os_error() {
        Some(libc::ENODEV) => no_such_interface(name),
        _ => LiveError::Kernel { interface: name.to_owned(), step: "look up the interface", source },
    })
}

fn no_such_interface(name: &str) -> LiveError {
    let existing = interface_names();
    let nearest = nearest(name, existing.iter().map(String::as_str)).map(str::to_owned);
    LiveError::NoSuchInterface { name: name.to_owned(), nearest, existing }
}

/// Returns the link type of the interface `name`.
pub(crate) fn link_type_of(socket: &PacketSocket, name: &str) -> Result<LinkType, LiveError> {
    let interface = || name.to_owned();
    match socket.socket().hardware_type(name) {
        Ok(hardware_type) => link_type_of_hardware(hardware_type)
            .ok_or_else(|| LiveError::UnsupportedLink { interface: interface(), hardware_type }),
        Err(source) => Err(LiveError::Kernel {
            interface: interface(),
            step: "read the interface's hardware type",
            source,
        }),
    }
}

/// Returns the link type of an `ARPHRD_` type; `None` if it is not supported.
pub(super) fn link_type_of_hardware(hardware_type: u16) -> Option<LinkType> {
    match hardware_type {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(LinkType::Ethernet),
        raw_ip if RAW_IP.contains(&raw_ip) => Some(LinkType::RawIp),
        _ => None,
    }
}

/// Whether the interface `name` is a loopback, whose outgoing frames come in again.
pub(crate) fn is_loopback(socket: &PacketSocket, name: &str) -> io::Result<bool> {
    Ok(socket.socket().interface_flags(name)? & libc::IFF_LOOPBACK != 0)
}

/// Returns the state of the interface that the socket is bound to, even if it was renamed.
pub(crate) fn state_of(socket: &PacketSocket) -> LinkState {
    // The kernel unbinds a socket (index -1) when its interface leaves the namespace.
    let Ok(index @ 1..) = socket.bound_index() else { return LinkState::Gone };
    match socket.socket().interface_name(index).and_then(|name| socket.socket().interface_flags(&name)) {
        Ok(flags) if flags & libc::IFF_UP != 0 => LinkState::Up,
        Ok(_) => LinkState::Down,
        Err(_) => LinkState::Gone,
    }
}

/// Joins a bound socket to the fanout group `id`, or to a new one; returns the group's id.
pub(crate) fn join_group(
    socket: &PacketSocket,
    name: &str,
    state: LinkState,
    id: Option<u16>,
) -> Result<u16, LiveError> {
    let joined = is_loopback(socket, name).and_then(|loopback| socket.join_fanout(id, loopback));
    joined.map_err(|source| match (source.raw_os_error(), state) {
        // Before Linux 6.13 only a socket on an interface that is up can join.
        (Some(libc::EINVAL), LinkState::Down) => LiveError::InterfaceDown { name: name.to_owned() },
        _ => LiveError::Kernel { interface: name.to_owned(), step: "join the fanout group", source },
    })
}
