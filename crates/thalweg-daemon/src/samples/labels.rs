//! Labels of packets: their input and output ports at a switch.

use std::fmt::Write;

use thalweg_measure::collector::PortDirection;
use thalweg_network::{Certainty, Inference, Node, PortIndex, RouterId, Versions};
use thalweg_wire::parse::Parser;
use thalweg_wire::{FlowKey, Frame};

/// Labels packets at one switch.
pub(super) struct Labels<'a> {
    switch: &'a str,
    /// `None` if the network or the switch is unknown.
    known: Option<(&'a Versions, RouterId)>,
    parser: Parser,
}

/// The port that labels a packet: the output port, because switches mirror what they send, or else the input port. `None` if both
/// are unknown.
pub(super) type PortLabel = Option<(PortIndex, PortDirection)>;

impl<'a> Labels<'a> {
    /// Creates labels for a switch.
    pub(super) fn new(switch: &'a str, network: Option<&'a Versions>) -> Labels<'a> {
        let known =
            network.and_then(|versions| match versions.newest().state.topology().node_named(switch) {
                Some(Node::Router(router)) => Some((versions, router)),
                _ => None,
            });
        Labels { switch, known, parser: Parser::default() }
    }

    /// Infers the ports of a packet at its time; `None` if the switch is unknown or the packet cannot be parsed.
    pub(super) fn infer(&self, frame: &Frame<'_>) -> Option<Inference> {
        let (versions, router) = self.known?;
        let packet = self.parser.parse(frame).ok()?;
        Some(versions.infer(router, &packet.ethernet, &packet.key, packet.time))
    }

    /// Whether a packet is one of this flow, of either direction.
    pub(super) fn is_of(&self, frame: &Frame<'_>, flow: &FlowKey) -> bool {
        self.parser.parse(frame).is_ok_and(|packet| packet.key == *flow || packet.key == flow.reversed())
    }

    /// Returns the name of a port in the API's format, `tor0:p3:out`; the switch if the port is unknown.
    pub(super) fn name(&self, port_label: PortLabel) -> String {
        match port_label {
            Some((port, PortDirection::Output)) => format!("{}:{port}:out", self.switch),
            Some((port, PortDirection::Input)) => format!("{}:{port}:in", self.switch),
            None => self.switch.to_owned(),
        }
    }

    /// Returns a description with the node at the other end of the link.
    pub(super) fn description(&self, port_label: PortLabel) -> String {
        match port_label {
            Some((port, PortDirection::Output)) => format!("sent by {} to {}", self.switch, self.peer(port)),
            Some((port, PortDirection::Input)) => {
                format!("sent to {} by {}, output port unknown", self.switch, self.peer(port))
            }
            None => format!("seen at {}, ports unknown", self.switch),
        }
    }

    /// Returns the comment of a packet: `in p1 (h0), out p3 (h3), version 2`.
    pub(super) fn comment(&self, inference: &Inference) -> String {
        let mut text = String::new();
        for (direction, port) in [("in", inference.ports.input), ("out", inference.ports.output)] {
            let _ = match port {
                Some(port) => write!(text, "{direction} {port} ({}), ", self.peer(port)),
                None => write!(text, "{direction} unknown, "),
            };
        }
        let _ = write!(text, "version {}", inference.version);
        if inference.certainty >= Certainty::Ambiguous {
            text.push_str(", ambiguous during a change");
        }
        text
    }

    /// Returns the name of the node at the other end of a port.
    fn peer(&self, port: PortIndex) -> String {
        let Some((versions, router)) = self.known else { return "?".to_owned() };
        let topology = versions.newest().state.topology();
        if port.index() >= topology.ports(router) {
            return "a removed port".to_owned();
        }
        topology.name(topology.peer(router, port).node).to_owned()
    }
}

/// Returns the port that labels a packet.
pub(super) fn port_of(inference: Option<&Inference>) -> PortLabel {
    let ports = inference?.ports;
    let output = ports.output.map(|port| (port, PortDirection::Output));
    output.or(ports.input.map(|port| (port, PortDirection::Input)))
}
