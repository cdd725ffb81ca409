//! Keys in readable form.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use thalweg_wire::{FlowKey, Protocol};

/// The meaning of a key's bytes under its definition (see [`super::KeyDefinition::name`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FlowName {
    /// One direction of a flow.
    Flow(FlowKey),
    /// A host.
    Address(IpAddr),
    /// A service at a port.
    Service {
        /// The host.
        address: IpAddr,
        /// The port; zero for protocols without ports.
        port: u16,
        /// The protocol above IP.
        protocol: Protocol,
    },
    /// A network.
    Prefix {
        /// The address, host bits zero.
        address: IpAddr,
        /// The number of common bits.
        length: u8,
    },
}

impl FlowName {
    /// Returns the address of a host, service or network; `None` for a flow.
    pub const fn address(&self) -> Option<IpAddr> {
        match *self {
            FlowName::Flow(_) => None,
            FlowName::Address(address)
            | FlowName::Service { address, .. }
            | FlowName::Prefix { address, .. } => Some(address),
        }
    }
}

/// Formats as `tcp 10.0.0.1:443 > 10.0.0.2:51000`, `10.0.0.1`, `udp [2001:db8::1]:53`, `esp 10.0.0.1`, `10.0.0.0/24`.
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
