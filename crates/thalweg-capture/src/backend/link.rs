//! What the kernel says of an interface and of those around it (rtnetlink(7)), in the calling thread's network
//! namespace.
//!
//! Two lists are asked for, interfaces and addresses. Their messages are a header, the fixed part of the kind, and
//! attributes of a length and a type each, aligned to four bytes.

use std::io;

use thalweg_linux::socket::Socket;

/// Bytes of `struct nlmsghdr`.
const HEADER_LENGTH: usize = 16;
/// Bytes of `struct ifinfomsg`.
const INTERFACE_LENGTH: usize = 16;
/// Bytes of `struct ifaddrmsg`.
const ADDRESS_LENGTH: usize = 8;

/// Largest answer that the kernel sends at once (`NLMSG_GOODSIZE` is less).
const LARGEST_MESSAGE: usize = 64 << 10;

/// `IFLA_XDP_ATTACHED` of if_link.h: in which mode a program is attached, 0 for none.
const IFLA_XDP_ATTACHED: u16 = 2;

/// What speaks for or against taking an interface's packets away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) is_ethernet: bool,
    /// Whether it has an address that somebody gave it, not only the IPv6 address that it gives itself.
    pub(super) has_address: bool,
    /// The bridge, bond or switch that it is a port of.
    pub(super) master: Option<String>,
    /// An interface that is built on it: a VLAN, a MACVLAN.
    pub(super) upper: Option<String>,
    /// Whether it has an XDP program already.
    pub(super) has_xdp: bool,
}

/// One interface of the list.
#[derive(Clone, Debug, Default)]
struct Listed {
    index: u32,
    hardware_type: u16,
    name: String,
    kind: String,
    master: Option<u32>,
    /// The interface that it is built on, in this namespace.
    lower: Option<u32>,
    has_xdp: bool,
}

/// Looks the interface `name` up; `None` if there is none.
pub(super) fn look_up(name: &str) -> io::Result<Option<Link>> {
    let socket = Socket::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
    let listed: Vec<Listed> =
        dump(&socket, libc::RTM_GETLINK, INTERFACE_LENGTH)?.iter().filter_map(|m| Listed::read(m)).collect();
    let Some(this) = listed.iter().find(|listed| listed.name == name) else { return Ok(None) };
    let addresses = dump(&socket, libc::RTM_GETADDR, ADDRESS_LENGTH)?;
    Ok(Some(Link {
        is_ethernet: this.hardware_type == libc::ARPHRD_ETHER,
        has_address: addresses.iter().any(|address| is_address_of(address, this.index)),
        master: this.master.map(|index| name_of(index, &listed)),
        upper: listed.iter().find(|other| is_built_on(other, this)).map(|other| other.name.clone()),
        has_xdp: this.has_xdp,
    }))
}

fn name_of(index: u32, listed: &[Listed]) -> String {
    let found = listed.iter().find(|listed| listed.index == index);
    found.map_or_else(|| format!("interface {index}"), |listed| listed.name.clone())
}

/// Both ends of a veth pair name each other as the interface below; neither is.
fn is_built_on(upper: &Listed, lower: &Listed) -> bool {
    upper.lower == Some(lower.index) && upper.index != lower.index && upper.kind != "veth"
}

impl Listed {
    /// Reads what follows the header of a message.
    fn read(message: &[u8]) -> Option<Listed> {
        let mut listed =
            Listed { hardware_type: u16_at(message, 2)?, index: u32_at(message, 4)?, ..Listed::default() };
        let mut is_elsewhere = false;
        for (kind, value) in attributes(message.get(INTERFACE_LENGTH..)?) {
            match kind {
                libc::IFLA_IFNAME => listed.name = text(value),
                libc::IFLA_MASTER => listed.master = u32_at(value, 0),
                libc::IFLA_LINK => listed.lower = u32_at(value, 0),
                // Then the index is another namespace's.
                libc::IFLA_LINK_NETNSID => is_elsewhere = true,
                libc::IFLA_LINKINFO => {
                    let kind = attributes(value).find(|(kind, _)| *kind == libc::IFLA_INFO_KIND);
                    listed.kind = kind.map_or_else(String::new, |(_, value)| text(value));
                }
                libc::IFLA_XDP => {
                    let mode = attributes(value).find(|(kind, _)| *kind == IFLA_XDP_ATTACHED);
                    listed.has_xdp = mode.is_some_and(|(_, value)| value.first() != Some(&0));
                }
                _ => {}
            }
        }
        if is_elsewhere {
            listed.lower = None;
        }
        Some(listed)
    }
}

/// Whether an entry of the list of addresses is one of the interface `index` that it did not give itself.
fn is_address_of(message: &[u8], index: u32) -> bool {
    let &[family, _, _, scope, ..] = message else { return false };
    let is_own = i32::from(family) == libc::AF_INET6 && scope == libc::RT_SCOPE_LINK;
    u32_at(message, 4) == Some(index) && !is_own
}

/// All entries of a list, each without the header of its message; `fixed_length` bytes of the request are zero.
fn dump(socket: &Socket, kind: u16, fixed_length: usize) -> io::Result<Vec<Vec<u8>>> {
    let length = HEADER_LENGTH + fixed_length;
    let mut request = Vec::with_capacity(length);
    request.extend((length as u32).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    request.resize(length, 0);
    socket.send(&request)?;

    let mut entries = Vec::new();
    let mut room = vec![0; LARGEST_MESSAGE];
    loop {
        let length = socket.receive(&mut room, 0)?;
        let mut rest = &room[..length];
        while let (Some(length), Some(kind)) = (u32_at(rest, 0), u16_at(rest, 4)) {
            let message = rest.get(HEADER_LENGTH..length as usize).ok_or(io::ErrorKind::InvalidData)?;
            match i32::from(kind) {
                libc::NLMSG_DONE => return Ok(entries),
                libc::NLMSG_ERROR => {
                    let error = u32_at(message, 0).map_or(libc::EIO, |negative| -(negative as i32));
                    return Err(io::Error::from_raw_os_error(error));
                }
                _ => entries.push(message.to_vec()),
            }
            rest = rest.get(aligned(length as usize)..).unwrap_or_default();
        }
    }
}

/// The attributes in `bytes`, as type and value, up to the first that is not whole.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)?;
        let value = rest.get(4..length)?;
        rest = rest.get(aligned(length)..).unwrap_or_default();
        // The upper two bits are flags.
        Some((kind & 0x3fff, value))
    })
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_loopback_interface_is_looked_up() {
        let link = look_up("lo").unwrap().unwrap();
        assert_eq!((link.is_ethernet, link.master, link.has_xdp), (false, None, false));
        assert_eq!(look_up("no-such-one").unwrap(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Listed::read(&bytes);
            is_address_of(&bytes, 1);
            prop_assert!(attributes(&bytes).all(|(_, value)| value.len() <= bytes.len()));
        }
    }
}
