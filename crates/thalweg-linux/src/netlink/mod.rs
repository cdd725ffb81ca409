//! Interfaces, addresses and routes of a network namespace (rtnetlink(7)); [`crate::tc`] has queues and filters.
//!
//! This crate needs few messages, so it encodes them itself instead of using a netlink library. Each call blocks until
//! the kernel responds, which takes microseconds, so it needs no event loop.

pub(crate) mod connection;
mod interface;
pub(crate) mod message;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use thalweg_wire::MacAddress;
use thiserror::Error;

use crate::namespace::{Namespace, NamespaceError};
use connection::{Connection, RequestError};
use interface::{INTERFACE_LENGTH, is_address_of};
pub use interface::{Interface, Traffic};
use message::{Request, Response};

/// The loopback interface of every namespace.
const LOOPBACK: u32 = 1;

/// The address families, in the byte that headers have for them.
const INET: u8 = libc::AF_INET as u8;
const INET6: u8 = libc::AF_INET6 as u8;

/// The length of `struct ifaddrmsg` in bytes.
const ADDRESS_LENGTH: usize = 8;

/// VETH_INFO_PEER of linux/veth.h.
const VETH_INFO_PEER: u16 = 1;

/// A netlink socket in a namespace, which several threads may share. Each call blocks until the kernel responds.
#[derive(Debug)]
pub struct Netlink {
    connection: Connection,
}

/// A failed operation.
#[derive(Debug, Error)]
#[error("cannot {operation}: {source}{}", message.as_ref().map_or_else(String::new, |text| format!(" ({text})")))]
pub struct NetlinkError {
    /// The operation, to follow the word "cannot".
    pub operation: String,
    /// The error of the kernel.
    pub source: io::Error,
    /// The explanation of the kernel, if any.
    pub message: Option<String>,
}

/// One end of a veth pair.
#[derive(Clone, Debug, Default)]
pub struct VethEnd<'a> {
    /// The name.
    pub name: String,
    /// The interface index; 0 for any.
    pub interface: u32,
    /// The alias, a longer name.
    pub alias: Option<String>,
    /// The MAC address; random by default.
    pub mac: Option<MacAddress>,
    /// The MTU in bytes.
    pub mtu: u32,
    /// Whether to disable segmentation offload, so that queues hold packets and not pieces of 64 KiB.
    pub one_segment: bool,
    /// The namespace; by default that of the socket.
    pub namespace: Option<BorrowedFd<'a>>,
}

impl Netlink {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn open() -> io::Result<Netlink> {
        Ok(Netlink { connection: Connection::open(libc::NETLINK_ROUTE)? })
    }

    /// Opens a socket inside `namespace`.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the kernel returns an error.
    pub fn open_within(namespace: &Namespace) -> Result<Netlink, NamespaceError> {
        namespace
            .within(Netlink::open)?
            .map_err(|source| namespace.error("open a netlink socket in it", source))
    }

    /// Returns all interfaces of the namespace.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn interfaces(&self) -> Result<Vec<Interface>, NetlinkError> {
        let request = Request::new(libc::RTM_GETLINK, &[0; INTERFACE_LENGTH]);
        let responses = self.list(request, || "list interfaces".to_owned())?;
        Ok(responses.iter().filter_map(|response| Interface::read(&response.payload)).collect())
    }

    /// Returns the index of an interface.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn interface(&self, name: &str) -> Result<u32, NetlinkError> {
        let mut request = Request::new(libc::RTM_GETLINK, &[0; INTERFACE_LENGTH]);
        request.text(libc::IFLA_IFNAME, name);
        let operation = || format!("find {name}");
        let responses = self.request(request, 0, operation)?;
        let found = responses.iter().find_map(|response| Interface::read(&response.payload));
        let missing =
            || NetlinkError { operation: operation(), source: io::ErrorKind::NotFound.into(), message: None };
        Ok(found.ok_or_else(missing)?.index)
    }

    /// Whether an interface has a configured address, not only its IPv6 link-local address.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn has_configured_address(&self, interface: u32) -> Result<bool, NetlinkError> {
        let request = Request::new(libc::RTM_GETADDR, &[0; ADDRESS_LENGTH]);
        let responses = self.list(request, || "list addresses".to_owned())?;
        Ok(responses.iter().any(|response| is_address_of(&response.payload, interface)))
    }

    /// Creates a veth pair; both ends are down.
    ///
    /// # Errors
    /// If a name or index is in use, or this process lacks the privilege.
    pub fn add_veth(&self, end: &VethEnd<'_>, peer: &VethEnd<'_>) -> Result<(), NetlinkError> {
        let mut request = Request::new(libc::RTM_NEWLINK, &interface_header(end.interface, 0, 0));
        end.write_attributes(&mut request);
        request.nested(libc::IFLA_LINKINFO, |request| {
            request.text(libc::IFLA_INFO_KIND, "veth");
            request.nested(libc::IFLA_INFO_DATA, |request| {
                request.nested(VETH_INFO_PEER, |request| {
                    request.fixed(&interface_header(peer.interface, 0, 0));
                    peer.write_attributes(request);
                });
            });
        });
        self.create(request, || format!("create {} and {}", end.name, peer.name))
    }

    /// Creates a bridge, which is down. It runs no spanning tree protocol, so its ports forward as soon as they are up.
    ///
    /// # Errors
    /// If the name is in use, the kernel has no bridges, or this process lacks the privilege.
    pub fn add_bridge(&self, name: &str) -> Result<(), NetlinkError> {
        let mut request = Request::new(libc::RTM_NEWLINK, &interface_header(0, 0, 0));
        request.text(libc::IFLA_IFNAME, name);
        request.nested(libc::IFLA_LINKINFO, |request| request.text(libc::IFLA_INFO_KIND, "bridge"));
        self.create(request, || format!("create the bridge {name}"))
    }

    /// Makes an interface a port of a bridge.
    ///
    /// # Errors
    /// If one of them does not exist, the bridge has 1,023 ports, or this process lacks the privilege.
    pub fn add_to_bridge(&self, interface: u32, bridge: u32) -> Result<(), NetlinkError> {
        let mut request = Request::new(libc::RTM_SETLINK, &interface_header(interface, 0, 0));
        request.number(libc::IFLA_MASTER, bridge);
        self.request(request, 0, || format!("add interface {interface} to bridge {bridge}")).map(drop)
    }

    /// Sets an interface up or down.
    ///
    /// # Errors
    /// If the interface does not exist, or this process lacks the privilege.
    pub fn set_up(&self, interface: u32, is_up: bool) -> Result<(), NetlinkError> {
        let up = libc::IFF_UP as u32;
        let header = interface_header(interface, if is_up { up } else { 0 }, up);
        let state = if is_up { "up" } else { "down" };
        let request = Request::new(libc::RTM_SETLINK, &header);
        self.request(request, 0, || format!("set interface {interface} {state}")).map(drop)
    }

    /// Sets the number of packets that the interface's queue holds.
    ///
    /// # Errors
    /// If the interface does not exist, or this process lacks the privilege.
    pub fn set_queue_length(&self, interface: u32, packets: u32) -> Result<(), NetlinkError> {
        let mut request = Request::new(libc::RTM_SETLINK, &interface_header(interface, 0, 0));
        request.number(libc::IFLA_TXQLEN, packets);
        self.request(request, 0, || format!("set the queue length of interface {interface}")).map(drop)
    }

    /// Returns the traffic counters of an interface.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn traffic(&self, interface: u32) -> Result<Traffic, NetlinkError> {
        let request = Request::new(libc::RTM_GETLINK, &interface_header(interface, 0, 0));
        let operation = || format!("read the counters of interface {interface}");
        let responses = self.request(request, 0, operation)?;
        let found = responses.iter().find_map(|response| Interface::read(&response.payload));
        let missing =
            || NetlinkError { operation: operation(), source: io::ErrorKind::NotFound.into(), message: None };
        Ok(found.ok_or_else(missing)?.traffic)
    }

    /// Sets the loopback interface up.
    ///
    /// # Errors
    /// If this process lacks the privilege.
    pub fn set_loopback_up(&self) -> Result<(), NetlinkError> {
        self.set_up(LOOPBACK, true)
    }

    /// Adds an address to an interface, and a default route by the interface.
    ///
    /// # Errors
    /// If the interface has the address already or is down, or this process lacks the privilege.
    pub fn add_address_and_default_route(&self, interface: u32, ip: Ipv4Addr) -> Result<(), NetlinkError> {
        self.add_address(interface, ip)?;
        self.add_route(interface, None)
    }

    /// Adds an address with a prefix of 32 bits to an interface.
    ///
    /// # Errors
    /// If the interface has the address already, or this process lacks the privilege.
    pub fn add_address(&self, interface: u32, ip: Ipv4Addr) -> Result<(), NetlinkError> {
        let [index_0, index_1, index_2, index_3] = interface.to_ne_bytes();
        // `struct ifaddrmsg`: family, length of the prefix, flags, scope, interface.
        let header = [INET, 32, 0, 0, index_0, index_1, index_2, index_3];
        let mut request = Request::new(libc::RTM_NEWADDR, &header);
        request.attribute(libc::IFA_LOCAL, &ip.octets());
        request.attribute(libc::IFA_ADDRESS, &ip.octets());
        self.create(request, || format!("add {ip} to interface {interface}"))
    }

    /// Adds a route by an interface to a neighbour with this address; `None` for a default route.
    ///
    /// # Errors
    /// If the route exists, the interface is down, or this process lacks the privilege.
    pub fn add_route(&self, interface: u32, to: Option<Ipv4Addr>) -> Result<(), NetlinkError> {
        // `struct rtmsg`: family, lengths of both prefixes, type of service, table, protocol, scope, type, flags.
        let (table, protocol) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC);
        let (scope, kind) = (libc::RT_SCOPE_LINK, libc::RTN_UNICAST);
        let length = if to.is_some() { 32 } else { 0 };
        let header = [INET, length, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0];
        let mut request = Request::new(libc::RTM_NEWROUTE, &header);
        if let Some(to) = to {
            request.attribute(libc::RTA_DST, &to.octets());
        }
        request.number(libc::RTA_OIF, interface);
        self.create(request, || format!("add a route by interface {interface}"))
    }

    /// Adds an IPv6 address with a prefix of 128 bits to an interface, and a default route by the interface. The address can be used
    /// at once: the kernel does not look for duplicates first.
    ///
    /// # Errors
    /// If the interface has the address already or is down, the MTU is below 1,280, or this process lacks the privilege.
    pub fn add_ipv6_address_and_default_route(
        &self,
        interface: u32,
        ip: Ipv6Addr,
    ) -> Result<(), NetlinkError> {
        let [index_0, index_1, index_2, index_3] = interface.to_ne_bytes();
        // As for IPv4; without duplicate address detection.
        let header = [INET6, 128, libc::IFA_F_NODAD as u8, 0, index_0, index_1, index_2, index_3];
        let mut request = Request::new(libc::RTM_NEWADDR, &header);
        request.attribute(libc::IFA_ADDRESS, &ip.octets());
        self.create(request, || format!("add {ip} to interface {interface}"))?;
        let (table, protocol) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC);
        let (scope, kind) = (libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST);
        let mut request =
            Request::new(libc::RTM_NEWROUTE, &[INET6, 0, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0]);
        request.number(libc::RTA_OIF, interface);
        self.create(request, || format!("add an IPv6 route by interface {interface}"))
    }

    /// Sends a request to create an object.
    pub(crate) fn create(
        &self,
        request: Request,
        operation: impl FnOnce() -> String,
    ) -> Result<(), NetlinkError> {
        self.request(request, libc::NLM_F_CREATE | libc::NLM_F_EXCL, operation).map(drop)
    }

    /// Sends a request, and waits for the responses.
    pub(crate) fn request(
        &self,
        request: Request,
        flags: i32,
        operation: impl FnOnce() -> String,
    ) -> Result<Vec<Response>, NetlinkError> {
        self.connection.request(request, flags).map_err(|error| netlink_error(error, operation()))
    }

    /// Requests a complete list.
    pub(crate) fn list(
        &self,
        request: Request,
        operation: impl FnOnce() -> String,
    ) -> Result<Vec<Response>, NetlinkError> {
        self.connection.list(request).map_err(|error| netlink_error(error, operation()))
    }
}

fn netlink_error(RequestError { source, message }: RequestError, operation: String) -> NetlinkError {
    NetlinkError { operation, source, message }
}

impl VethEnd<'_> {
    fn write_attributes(&self, request: &mut Request) {
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

/// Encodes `struct ifinfomsg`: family, hardware type, index, flags, and the mask of changed flags.
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
    fn the_loopback_interface_is_found() {
        let netlink = Netlink::open().unwrap();
        assert_eq!(netlink.interface("lo").unwrap(), LOOPBACK);
        let interfaces = netlink.interfaces().unwrap();
        let loopback = interfaces.iter().find(|interface| interface.index == LOOPBACK).unwrap();
        assert_eq!((loopback.name.as_str(), loopback.hardware_type), ("lo", libc::ARPHRD_LOOPBACK));
    }

    #[test]
    fn an_error_names_the_operation_and_the_cause() {
        let netlink = Netlink::open().unwrap();
        let error = netlink.interface("no-such-one").unwrap_err();
        assert_eq!(error.source.raw_os_error(), Some(libc::ENODEV), "{error}");
        assert!(error.to_string().starts_with("cannot find no-such-one: No such device"), "{error}");
        // The socket remains usable.
        assert_eq!(netlink.interface("lo").unwrap(), LOOPBACK);
    }
}
