//! Requests about the interfaces, addresses and routes of one network namespace (rtnetlink(7)); [`crate::tc`] has those
//! about queues.
//!
//! Messages are put together here, for there are few of them, and each call waits for the kernel's answer, which takes
//! microseconds: neither an event loop nor a library of all messages is worth its weight.

mod connection;
mod interface;
pub(crate) mod message;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use thalweg_wire::MacAddress;
use thiserror::Error;

use crate::namespace::{Namespace, NamespaceError};
use connection::{Connection, Refusal};
use interface::{INTERFACE_LENGTH, is_address_of};
pub use interface::{Interface, Traffic};
use message::{Answer, Request};

/// The loopback interface of every namespace.
const LOOPBACK: u32 = 1;

/// Bytes of `struct ifaddrmsg`.
const ADDRESS_LENGTH: usize = 8;

/// VETH_INFO_PEER of linux/veth.h.
const VETH_INFO_PEER: u16 = 1;

/// A netlink socket in a namespace. It may be used by several threads; each call waits for the kernel's answer.
#[derive(Debug)]
pub struct Netlink {
    connection: Connection,
}

/// An operation that the kernel refused.
#[derive(Debug, Error)]
#[error("cannot {operation}: {source}{}", message.as_ref().map_or_else(String::new, |text| format!(" ({text})")))]
pub struct NetlinkError {
    /// The operation, to be read after "cannot".
    pub operation: String,
    /// The kernel's error.
    pub source: io::Error,
    /// The kernel's explanation, if it gave one.
    pub message: Option<String>,
}

/// One end of a veth pair.
#[derive(Clone, Debug, Default)]
pub struct VethEnd<'a> {
    /// Its name.
    pub name: String,
    /// Its kernel number; 0 for any.
    pub interface: u32,
    /// A longer name, for people.
    pub alias: Option<String>,
    /// Its Ethernet address; a random one by default.
    pub mac: Option<MacAddress>,
    /// Most bytes of a packet.
    pub mtu: u32,
    /// Whether no more than one segment is sent at a time: queues hold what links carry then, not 64 KiB pieces.
    pub one_segment: bool,
    /// The namespace, if not that of the socket.
    pub namespace: Option<BorrowedFd<'a>>,
}

impl Netlink {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the kernel gives none.
    pub fn open() -> io::Result<Netlink> {
        Ok(Netlink { connection: Connection::open()? })
    }

    /// Opens a socket within `namespace`.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the kernel gives none.
    pub fn open_within(namespace: &Namespace) -> Result<Netlink, NamespaceError> {
        namespace
            .within(Netlink::open)?
            .map_err(|source| namespace.error("open a netlink socket in it", source))
    }

    /// All interfaces of the namespace.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn interfaces(&self) -> Result<Vec<Interface>, NetlinkError> {
        let request = Request::new(libc::RTM_GETLINK, &[0; INTERFACE_LENGTH]);
        let answers = self.list(request, || "list interfaces".to_owned())?;
        Ok(answers.iter().filter_map(|answer| Interface::read(&answer.payload)).collect())
    }

    /// The kernel number of an interface.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn interface(&self, name: &str) -> Result<u32, NetlinkError> {
        let mut request = Request::new(libc::RTM_GETLINK, &[0; INTERFACE_LENGTH]);
        request.text(libc::IFLA_IFNAME, name);
        let what = || format!("find {name}");
        let answers = self.ask(request, 0, what)?;
        let found = answers.iter().find_map(|answer| Interface::read(&answer.payload));
        let missing =
            || NetlinkError { operation: what(), source: io::ErrorKind::NotFound.into(), message: None };
        Ok(found.ok_or_else(missing)?.index)
    }

    /// Whether an interface has an address that somebody gave it, not only the IPv6 address that it gives itself.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn has_configured_address(&self, interface: u32) -> Result<bool, NetlinkError> {
        let request = Request::new(libc::RTM_GETADDR, &[0; ADDRESS_LENGTH]);
        let answers = self.list(request, || "list addresses".to_owned())?;
        Ok(answers.iter().any(|answer| is_address_of(&answer.payload, interface)))
    }

    /// Makes a veth pair; both ends are down.
    ///
    /// # Errors
    /// If a name or number is taken, or this process may not.
    pub fn add_veth(&self, end: &VethEnd<'_>, peer: &VethEnd<'_>) -> Result<(), NetlinkError> {
        let mut request = Request::new(libc::RTM_NEWLINK, &interface_header(end.interface, 0, 0));
        end.describe(&mut request);
        request.nested(libc::IFLA_LINKINFO, |request| {
            request.text(libc::IFLA_INFO_KIND, "veth");
            request.nested(libc::IFLA_INFO_DATA, |request| {
                request.nested(VETH_INFO_PEER, |request| {
                    request.fixed(&interface_header(peer.interface, 0, 0));
                    peer.describe(request);
                });
            });
        });
        self.create(request, || format!("make {} and {}", end.name, peer.name))
    }

    /// Sets an interface up, or down.
    ///
    /// # Errors
    /// If there is no such interface, or this process may not.
    pub fn set_up(&self, interface: u32, is_up: bool) -> Result<(), NetlinkError> {
        let up = libc::IFF_UP as u32;
        let header = interface_header(interface, if is_up { up } else { 0 }, up);
        let state = if is_up { "up" } else { "down" };
        let request = Request::new(libc::RTM_SETLINK, &header);
        self.ask(request, 0, || format!("set interface {interface} {state}")).map(drop)
    }

    /// Sets the loopback interface up.
    ///
    /// # Errors
    /// If this process may not.
    pub fn set_loopback_up(&self) -> Result<(), NetlinkError> {
        self.set_up(LOOPBACK, true)
    }

    /// Gives an interface an address of its own, and makes it the way to everybody.
    ///
    /// # Errors
    /// If it has the address already, is down, or this process may not.
    pub fn add_only_address(&self, interface: u32, ip: Ipv4Addr) -> Result<(), NetlinkError> {
        const INET: u8 = libc::AF_INET as u8;
        let [index_0, index_1, index_2, index_3] = interface.to_ne_bytes();
        // `struct ifaddrmsg`: family, length of the prefix, flags, scope, interface.
        let header = [INET, 32, 0, 0, index_0, index_1, index_2, index_3];
        let mut request = Request::new(libc::RTM_NEWADDR, &header);
        request.attribute(libc::IFA_LOCAL, &ip.octets());
        request.attribute(libc::IFA_ADDRESS, &ip.octets());
        self.create(request, || format!("give interface {interface} {ip}"))?;

        // `struct rtmsg`: family, lengths of both prefixes, type of service, table, protocol, scope, type, flags.
        let (table, protocol) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC);
        let (scope, kind) = (libc::RT_SCOPE_LINK, libc::RTN_UNICAST);
        let header = [INET, 0, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0];
        let mut request = Request::new(libc::RTM_NEWROUTE, &header);
        request.number(libc::RTA_OIF, interface);
        self.create(request, || format!("route by interface {interface}"))
    }

    /// Asks for something new.
    pub(crate) fn create(&self, request: Request, what: impl FnOnce() -> String) -> Result<(), NetlinkError> {
        self.ask(request, libc::NLM_F_CREATE | libc::NLM_F_EXCL, what).map(drop)
    }

    /// Asks about one thing or for a change, and waits for the answer.
    pub(crate) fn ask(
        &self,
        request: Request,
        flags: i32,
        what: impl FnOnce() -> String,
    ) -> Result<Vec<Answer>, NetlinkError> {
        self.connection.ask(request, flags).map_err(|refusal| refused(refusal, what()))
    }

    /// Asks for a whole list.
    pub(crate) fn list(
        &self,
        request: Request,
        what: impl FnOnce() -> String,
    ) -> Result<Vec<Answer>, NetlinkError> {
        self.connection.list(request).map_err(|refusal| refused(refusal, what()))
    }
}

fn refused(Refusal { source, message }: Refusal, operation: String) -> NetlinkError {
    NetlinkError { operation, source, message }
}

impl VethEnd<'_> {
    fn describe(&self, request: &mut Request) {
        request.text(libc::IFLA_IFNAME, &self.name);
        request.number(libc::IFLA_MTU, self.mtu);
        if let Some(alias) = &self.alias {
            request.attribute(libc::IFLA_IFALIAS, alias.as_bytes());
        }
        if let Some(mac) = self.mac {
            request.attribute(libc::IFLA_ADDRESS, &mac.0);
        }
        if self.one_segment {
            request.number(libc::IFLA_GSO_MAX_SEGS, 1);
        }
        if let Some(namespace) = self.namespace {
            request.number(libc::IFLA_NET_NS_FD, namespace.as_raw_fd() as u32);
        }
    }
}

/// `struct ifinfomsg`: family, hardware type, number, flags, and which flags are meant.
fn interface_header(interface: u32, flags: u32, changed: u32) -> [u8; INTERFACE_LENGTH] {
    let mut header = [0; INTERFACE_LENGTH];
    header[4..8].copy_from_slice(&interface.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&changed.to_ne_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_looked_up() {
        let netlink = Netlink::open().unwrap();
        assert_eq!(netlink.interface("lo").unwrap(), LOOPBACK);
        let interfaces = netlink.interfaces().unwrap();
        let loopback = interfaces.iter().find(|interface| interface.index == LOOPBACK).unwrap();
        assert_eq!((loopback.name.as_str(), loopback.hardware_type), ("lo", libc::ARPHRD_LOOPBACK));
    }

    #[test]
    fn a_refusal_says_what_was_asked_and_why_not() {
        let netlink = Netlink::open().unwrap();
        let error = netlink.interface("no-such-one").unwrap_err();
        assert_eq!(error.source.raw_os_error(), Some(libc::ENODEV), "{error}");
        assert!(error.to_string().starts_with("cannot find no-such-one: No such device"), "{error}");
        // The next answer is that to the next question.
        assert_eq!(netlink.interface("lo").unwrap(), LOOPBACK);
    }
}
