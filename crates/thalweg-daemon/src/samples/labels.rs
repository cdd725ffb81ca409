//! By which ports of its switch a packet came and went, and what that is called.

use std::fmt::Write;

use thalweg_measure::collector::PortDirection;
use thalweg_network::{Certainty, Inference, Node, PortIndex, RouterId, Versions};
use thalweg_wire::Frame;
use thalweg_wire::parse::Parser;

/// What is known of packets at one switch.
pub(super) struct Labels<'a> {
    switch: &'a str,
    /// `None` if nothing is known of the network, or of this switch.
    known: Option<(&'a Versions, RouterId)>,
    parser: Parser,
}

/// The port under which a packet is filed: that by which it left, as switches mirror what they send; if that is not known,
/// that by which it came; `None` if neither is.
pub(super) type Place = Option<(PortIndex, PortDirection)>;

impl<'a> Labels<'a> {
    /// At the switch of this name.
    pub(super) fn new(switch: &'a str, network: Option<&'a Versions>) -> Labels<'a> {
        let known =
            network.and_then(|versions| match versions.newest().state.topology().node_named(switch) {
                Some(Node::Router(router)) => Some((versions, router)),
                _ => None,
            });
        Labels { switch, known, parser: Parser::default() }
    }

    /// Infers the ports of a packet, as they were at its time; `None` if its headers do not tell.
    pub(super) fn infer(&self, frame: &Frame<'_>) -> Option<Inference> {
        let (versions, router) = self.known?;
        let packet = self.parser.parse(frame).ok()?;
        Some(versions.infer(router, &packet.ethernet, &packet.key, packet.time))
    }

    /// `tor0:p3:out`, as the API calls links; the switch alone if no port is known.
    pub(super) fn name(&self, place: Place) -> String {
        match place {
            Some((port, PortDirection::Output)) => format!("{}:{port}:out", self.switch),
            Some((port, PortDirection::Input)) => format!("{}:{port}:in", self.switch),
            None => self.switch.to_owned(),
        }
    }

    /// What is at the other end, and how fast the link is.
    pub(super) fn description(&self, place: Place) -> String {
        match place {
            Some((port, PortDirection::Output)) => format!("sent by {} to {}", self.switch, self.peer(port)),
            Some((port, PortDirection::Input)) => {
                format!("sent to {} by {}; where it went is not known", self.switch, self.peer(port))
            }
            None => format!("seen at {}; its ports are not known", self.switch),
        }
    }

    /// `in p1 (h0), out p3 (h3), version 2`: in a packet's comment.
    pub(super) fn comment(&self, inference: &Inference) -> String {
        let mut text = String::new();
        for (way, port) in [("in", inference.ports.input), ("out", inference.ports.output)] {
            let _ = match port {
                Some(port) => write!(text, "{way} {port} ({}), ", self.peer(port)),
                None => write!(text, "{way} unknown, "),
            };
        }
        let _ = write!(text, "version {}", inference.version);
        if inference.certainty >= Certainty::Ambiguous {
            text.push_str(", about a change");
        }
        text
    }

    /// Name of the node at the other end of a port, and the link's rate.
    fn peer(&self, port: PortIndex) -> String {
        let Some((versions, router)) = self.known else { return "?".to_owned() };
        let topology = versions.newest().state.topology();
        if port.index() >= topology.ports(router) {
            return "a port that is no more".to_owned();
        }
        topology.name(topology.peer(router, port).node).to_owned()
    }
}

/// Where a packet is filed.
pub(super) fn place_of(inference: Option<&Inference>) -> Place {
    let ports = inference?.ports;
    let output = ports.output.map(|port| (port, PortDirection::Output));
    output.or(ports.input.map(|port| (port, PortDirection::Input)))
}
