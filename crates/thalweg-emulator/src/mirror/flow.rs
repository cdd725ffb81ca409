//! Finds the emulated flow of a 5-tuple that a consumer has read from a monitor port.

use std::net::IpAddr;

use thalweg_network::Topology;
use thalweg_network::routing::flow_ports;
use thalweg_wire::{FlowKey, Protocol};
use thiserror::Error;

use crate::redirection::FlowDirection;

/// Why no emulated flow has a 5-tuple.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownFlow {
    /// No endpoint has this address.
    #[error("no host of the emulated network has the address {0}")]
    Address(IpAddr),
    /// These ports encode no flow.
    #[error("no flow of the emulated network has the ports {0} and {1}")]
    Ports(u16, u16),
    /// Packets of this flow have another protocol.
    #[error("the flow with these ports is not {0} in the emulated network")]
    Protocol(Protocol),
}

/// Returns the direction of a flow whose packets have this 5-tuple at monitor ports. Whether there is such a flow, and whether its
/// packets are TCP or UDP, is not checked.
///
/// # Errors
/// If no flow can have this 5-tuple.
pub fn flow_of(topology: &Topology, key: &FlowKey) -> Result<FlowDirection, UnknownFlow> {
    // Frames of monitor ports are IPv4.
    let endpoint = |address: IpAddr| {
        let endpoint = topology.endpoint_with_ip(address).filter(|_| address.is_ipv4());
        endpoint.ok_or(UnknownFlow::Address(address))
    };
    let (source, destination) = (endpoint(key.src())?, endpoint(key.dst())?);
    let flow = flow_ports::flow(key.src_port, key.dst_port);
    let (low, high) = flow_ports::ports(flow);
    let is_forth = (key.src_port, key.dst_port) == (low, high);
    // Acknowledgements have the ports swapped.
    let is_back = (key.src_port, key.dst_port) == (high, low) && key.protocol == Protocol::TCP;
    match key.protocol {
        Protocol::TCP | Protocol::UDP if is_forth || is_back => {
            Ok(FlowDirection { source, destination, flow })
        }
        Protocol::TCP | Protocol::UDP => Err(UnknownFlow::Ports(key.src_port, key.dst_port)),
        other => Err(UnknownFlow::Protocol(other)),
    }
}
