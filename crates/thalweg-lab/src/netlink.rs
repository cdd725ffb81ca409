//! Requests to the kernel about the interfaces and queues of one namespace.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use futures_util::StreamExt as _;
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use rtnetlink::packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State,
};
use rtnetlink::packet_route::tc::{TcAttribute, TcMessage};
use rtnetlink::packet_route::{RouteNetlinkMessage, address, route};
use rtnetlink::{Error, Handle, new_connection};
use thalweg_linux::Namespace;
use thalweg_network::MacAddress;
use tokio::runtime::{Builder, Runtime};

use crate::error::LabError;

/// The loopback interface of every namespace.
const LOOPBACK: u32 = 1;

/// A netlink socket in a namespace. Every call waits for the kernel's answer; not to be used by asynchronous code.
pub(crate) struct Netlink {
    runtime: Runtime,
    handle: Handle,
}

/// Frames that an interface has received and sent, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) received_packets: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
}

/// One end of a veth pair.
#[derive(Default)]
pub(crate) struct VethEnd<'a> {
    pub(crate) name: String,
    /// Its kernel number; 0 for any.
    pub(crate) interface: u32,
    pub(crate) alias: Option<String>,
    pub(crate) mac: Option<MacAddress>,
    pub(crate) mtu: u32,
    /// Whether no more than one segment is sent at a time: queues hold what links carry then, not 64 KiB pieces.
    pub(crate) one_segment: bool,
    /// The namespace, if not that of the socket.
    pub(crate) namespace: Option<BorrowedFd<'a>>,
}

impl Netlink {
    /// Opens a socket within `namespace`.
    pub(crate) fn open(namespace: &Namespace) -> Result<Netlink, LabError> {
        let open = || -> std::io::Result<Netlink> {
            let runtime = Builder::new_current_thread().enable_io().build()?;
            let guard = runtime.enter();
            let (connection, handle, _) = new_connection()?;
            drop(guard);
            runtime.spawn(connection);
            Ok(Netlink { runtime, handle })
        };
        namespace.within(open)?.map_err(|source| {
            let name = namespace.name().to_owned();
            LabError::Namespace { name, what: "open a netlink socket in it", source }
        })
    }

    /// Makes a veth pair; both ends are down.
    pub(crate) fn add_veth(&self, end: &VethEnd<'_>, peer: &VethEnd<'_>) -> Result<(), LabError> {
        let mut message = end.message();
        let data = InfoData::Veth(InfoVeth::Peer(peer.message()));
        let info = vec![LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(data)];
        message.attributes.push(LinkAttribute::LinkInfo(info));
        let request = RouteNetlinkMessage::NewLink(message);
        self.change(request, NLM_F_CREATE | NLM_F_EXCL, || format!("make {} and {}", end.name, peer.name))
    }

    /// The kernel number of an interface.
    pub(crate) fn interface(&self, name: &str) -> Result<u32, LabError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        let answers = self.ask(RouteNetlinkMessage::GetLink(message), 0, || format!("find {name}"))?;
        let mut numbers = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewLink(link) => Some(link.header.index),
            _ => None,
        });
        let missing = || LabError::Netlink { what: format!("find {name}"), source: Error::RequestFailed };
        numbers.next().ok_or_else(missing)
    }

    /// Sets an interface up, or down.
    pub(crate) fn set_up(&self, interface: u32, is_up: bool) -> Result<(), LabError> {
        let mut message = LinkMessage::default();
        message.header.index = interface;
        message.header.flags = if is_up { LinkFlags::Up } else { LinkFlags::empty() };
        message.header.change_mask = LinkFlags::Up;
        let state = if is_up { "up" } else { "down" };
        self.change(RouteNetlinkMessage::SetLink(message), 0, || format!("set interface {interface} {state}"))
    }

    /// The kernel numbers of the interfaces that are up and have a carrier.
    pub(crate) fn interfaces_up(&self) -> Result<Vec<u32>, LabError> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let answers = self.ask(request, NLM_F_DUMP, || "list interfaces".to_owned())?;
        let up = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewLink(link) => {
                let is_up = link.attributes.contains(&LinkAttribute::OperState(State::Up));
                is_up.then_some(link.header.index)
            }
            _ => None,
        });
        Ok(up.collect())
    }

    /// What interfaces have received and sent, by their kernel numbers.
    pub(crate) fn traffic(&self) -> Result<BTreeMap<u32, Traffic>, LabError> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let answers = self.ask(request, NLM_F_DUMP, || "list interfaces".to_owned())?;
        let of_link = |answer| match answer {
            RouteNetlinkMessage::NewLink(link) => {
                let found = link.attributes.iter().find_map(|attribute| match attribute {
                    LinkAttribute::Stats64(stats) => Some(*stats),
                    _ => None,
                })?;
                let traffic = Traffic {
                    received_packets: found.rx_packets,
                    received_bytes: found.rx_bytes,
                    sent_packets: found.tx_packets,
                    sent_bytes: found.tx_bytes,
                };
                Some((link.header.index, traffic))
            }
            _ => None,
        };
        Ok(answers.into_iter().filter_map(of_link).collect())
    }

    /// Sets the loopback interface up.
    pub(crate) fn set_loopback_up(&self) -> Result<(), LabError> {
        self.set_up(LOOPBACK, true)
    }

    /// Gives an interface an address of its own, and makes it the way to everybody.
    pub(crate) fn add_only_address(&self, interface: u32, ip: Ipv4Addr) -> Result<(), LabError> {
        let mut message = address::AddressMessage::default();
        message.header.family = rtnetlink::packet_route::AddressFamily::Inet;
        message.header.index = interface;
        message.header.prefix_len = 32;
        message.attributes.push(address::AddressAttribute::Local(ip.into()));
        message.attributes.push(address::AddressAttribute::Address(ip.into()));
        let request = RouteNetlinkMessage::NewAddress(message);
        self.change(request, NLM_F_CREATE | NLM_F_EXCL, || format!("give interface {interface} {ip}"))?;

        let mut message = route::RouteMessage::default();
        message.header.address_family = rtnetlink::packet_route::AddressFamily::Inet;
        message.header.table = route::RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = route::RouteProtocol::Static;
        message.header.scope = route::RouteScope::Link;
        message.header.kind = route::RouteType::Unicast;
        message.attributes.push(route::RouteAttribute::Oif(interface));
        let request = RouteNetlinkMessage::NewRoute(message);
        self.change(request, NLM_F_CREATE | NLM_F_EXCL, || format!("route by interface {interface}"))
    }

    /// Puts a queueing discipline in place, in place of what is there.
    pub(crate) fn set_queue(&self, message: TcMessage) -> Result<(), LabError> {
        let what = format!("put a queue at interface {}", message.header.index);
        let request = RouteNetlinkMessage::NewQueueDiscipline(message);
        self.change(request, NLM_F_CREATE | NLM_F_REPLACE, || what)
    }

    /// Adds a filter.
    pub(crate) fn add_filter(&self, message: TcMessage) -> Result<(), LabError> {
        let what = format!("put a program at interface {}", message.header.index);
        let request = RouteNetlinkMessage::NewTrafficFilter(message);
        self.change(request, NLM_F_CREATE | NLM_F_EXCL, || what)
    }

    /// All queueing disciplines.
    pub(crate) fn queues(&self) -> Result<Vec<TcMessage>, LabError> {
        let request = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        let answers = self.ask(request, NLM_F_DUMP, || "list queues".to_owned())?;
        Ok(answers
            .into_iter()
            .filter_map(|answer| match answer {
                RouteNetlinkMessage::NewQueueDiscipline(message) => Some(message),
                _ => None,
            })
            .collect())
    }

    /// All filters where `place` says.
    pub(crate) fn filters(&self, place: TcMessage) -> Result<Vec<Vec<TcAttribute>>, LabError> {
        let what = format!("list programs at interface {}", place.header.index);
        let answers = self.ask(RouteNetlinkMessage::GetTrafficFilter(place), NLM_F_DUMP, || what)?;
        Ok(answers
            .into_iter()
            .filter_map(|answer| match answer {
                RouteNetlinkMessage::NewTrafficFilter(message) => Some(message.attributes),
                _ => None,
            })
            .collect())
    }

    /// Asks for a change, and waits until it is done.
    fn change(
        &self,
        request: RouteNetlinkMessage,
        flags: u16,
        what: impl FnOnce() -> String,
    ) -> Result<(), LabError> {
        self.ask(request, NLM_F_ACK | flags, what).map(drop)
    }

    /// Asks, and waits for all of the answer.
    fn ask(
        &self,
        request: RouteNetlinkMessage,
        flags: u16,
        what: impl FnOnce() -> String,
    ) -> Result<Vec<RouteNetlinkMessage>, LabError> {
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | flags;
        let exchange = async {
            let mut answers = self.handle.clone().request(message)?;
            let mut payloads = Vec::new();
            while let Some(answer) = answers.next().await {
                match answer.payload {
                    NetlinkPayload::InnerMessage(message) => payloads.push(message),
                    // An error of code zero is an acknowledgement.
                    NetlinkPayload::Error(error) if error.code.is_some() => {
                        return Err(Error::NetlinkError(error));
                    }
                    _ => {}
                }
            }
            Ok(payloads)
        };
        self.runtime.block_on(exchange).map_err(|source| LabError::Netlink { what: what(), source })
    }
}

impl VethEnd<'_> {
    fn message(&self) -> LinkMessage {
        let mut message = LinkMessage::default();
        message.header.index = self.interface;
        let attributes = &mut message.attributes;
        attributes.push(LinkAttribute::IfName(self.name.clone()));
        attributes.push(LinkAttribute::Mtu(self.mtu));
        attributes.extend(self.alias.clone().map(LinkAttribute::IfAlias));
        attributes.extend(self.mac.map(|mac| LinkAttribute::Address(mac.0.to_vec())));
        attributes.extend(self.one_segment.then_some(LinkAttribute::GsoMaxSegs(1)));
        attributes.extend(self.namespace.map(|file| LinkAttribute::NetNsFd(file.as_raw_fd())));
        message
    }
}
