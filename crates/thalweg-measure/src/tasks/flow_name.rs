//! What a key names, as people write it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use thalweg_wire::{FlowKey, Protocol};

/// What the bytes of a key say under its definition (see [`super::KeyDefinition::name`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FlowName {
    /// One direction of a flow.
    Flow(FlowKey),
    /// A host.
    Address(IpAddr),
    /// What listens at a port.
    Service {
        /// Its host.
        address: IpAddr,
        /// The port; zero where the protocol has none.
        port: u16,
        /// The protocol above IP.
        protocol: Protocol,
    },
    /// A network.
    Prefix {
        /// Its address, host bits zero.
        address: IpAddr,
        /// Bits that all of its addresses share.
        length: u8,
    },
}

impl FlowName {
    /// The address that it is about, if it is about one: of a host, a service, a network.
    pub const fn address(&self) -> Option<IpAddr> {
        match *self {
            FlowName::Flow(_) => None,
            FlowName::Address(address)
            | FlowName::Service { address, .. }
            | FlowName::Prefix { address, .. } => Some(address),
        }
    }
}

/// `tcp 10.0.0.1:443 > 10.0.0.2:51000`, `10.0.0.1`, `udp [2001:db8::1]:53`, `esp 10.0.0.1`, `10.0.0.0/24`.
impl fmt::Display for FlowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            FlowName::Flow(key) => key.to_string(),
            FlowName::Address(address) => address.to_string(),
            FlowName::Service { address, port, protocol } if protocol.has_ports() || port != 0 => {
                format!("{protocol} {}", SocketAddr::new(address, port))
            }
            FlowName::Service { address, protocol, .. } => format!("{protocol} {address}"),
            FlowName::Prefix { address, length } => format!("{address}/{length}"),
        };
        f.pad(&text)
    }
}
