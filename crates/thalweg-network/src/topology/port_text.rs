//! Ports as users write them: `tor0:p3` by number, `tor0:Ethernet4` by the name that the switch gives.

use thiserror::Error;

use super::{Node, Topology};
use crate::identity::{LinkId, PortIndex, RouterId};

/// Maximum number of names in an error.
const MAX_NAMES: usize = 8;

/// Why a text is not a port of a topology.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownPort {
    /// It has no colon.
    #[error("invalid port {text:?}: expected SWITCH:PORT, as in \"tor0:p3\" or \"tor0:Ethernet4\"")]
    Format {
        /// The text.
        text: String,
    },
    /// The topology has no such node.
    #[error("no node {name:?} in the topology")]
    Node {
        /// The name before the port.
        name: String,
    },
    /// The node is a host.
    #[error("{name:?} is a host: expected a switch before the port")]
    Host {
        /// Its name.
        name: String,
    },
    /// The switch has no such port.
    #[error("no port {port} at {switch:?}: {known}")]
    Port {
        /// The switch.
        switch: String,
        /// The text after the name of the switch.
        port: String,
        /// The ports that it has.
        known: String,
    },
}

impl Topology {
    /// Finds a port written as `SWITCH:pNUMBER` or `SWITCH:NAME`. Names of switches and ports may contain colons.
    ///
    /// # Errors
    /// If there is no such switch or port.
    pub fn find_port(&self, text: &str) -> Result<(RouterId, PortIndex), UnknownPort> {
        self.find_port_by(text, |name| self.node_named(name))
    }

    /// Like [`find_port`](Self::find_port), with a faster search for names of nodes.
    pub(crate) fn find_port_by(
        &self,
        text: &str,
        node: impl Fn(&str) -> Option<Node>,
    ) -> Result<(RouterId, PortIndex), UnknownPort> {
        let splits = || text.match_indices(':').rev().map(|(at, _)| (&text[..at], &text[at + 1..]));
        let found = splits().find_map(|(switch, port)| match node(switch) {
            Some(Node::Router(router)) => Some((router, self.port_at(router, port)?)),
            _ => None,
        });
        if let Some(port) = found {
            return Ok(port);
        }
        let error = splits().find_map(|(name, port)| match node(name)? {
            Node::Router(router) => Some(UnknownPort::Port {
                switch: name.to_owned(),
                port: port.to_owned(),
                known: self.describe_ports(router),
            }),
            Node::Endpoint(_) => Some(UnknownPort::Host { name: name.to_owned() }),
        });
        Err(error.unwrap_or_else(|| match text.rsplit_once(':') {
            Some((name, _)) => UnknownPort::Node { name: name.to_owned() },
            None => UnknownPort::Format { text: text.to_owned() },
        }))
    }

    /// Returns the link at a port written as for [`find_port`](Self::find_port).
    ///
    /// # Errors
    /// As for [`find_port`](Self::find_port).
    pub fn find_link_at(&self, text: &str) -> Result<LinkId, UnknownPort> {
        self.find_port(text).map(|(router, port)| self.link_at(router, port))
    }

    /// Returns the port with this number, as in `p3`, or name.
    fn port_at(&self, router: RouterId, text: &str) -> Option<PortIndex> {
        let digits = text.strip_prefix('p').unwrap_or_default();
        // Without a sign or leading zeros.
        let number = digits.parse().ok().filter(|number: &u16| number.to_string() == digits);
        let number = number.map(PortIndex).filter(|port| port.index() < self.ports(router));
        number.or_else(|| self.port_named(router, text))
    }

    /// Describes the ports of a router: `it has 5 ports, counted from p0, named Ethernet1, Ethernet2 and 3 more`.
    pub fn describe_ports(&self, router: RouterId) -> String {
        let all = (0..self.ports(router) as u16).map(PortIndex);
        let names: Vec<&str> = all.filter_map(|port| self.port_name(router, port)).collect();
        let mut text = format!("it has {} ports, counted from p0", self.ports(router));
        if !names.is_empty() {
            text += ", named ";
            text += &names[..names.len().min(MAX_NAMES)].join(", ");
        }
        if names.len() > MAX_NAMES {
            text += &format!(" and {} more", names.len() - MAX_NAMES);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkSpec, TopologyBuilder};

    fn topology() -> Topology {
        let mut builder = TopologyBuilder::new();
        for (name, ports) in [("tor0", ["Ethernet1", "Te1:1"]), ("a:b", ["swp1", "p"])] {
            let router = builder.add_router(name).unwrap();
            for port in ports {
                let host = format!("h{port}");
                let host = builder.add_endpoint(host, router, LinkSpec::default()).unwrap();
                builder.set_port_name(host, port).unwrap();
            }
        }
        builder.build().unwrap()
    }

    #[test]
    fn a_port_is_found_by_number_and_by_name() {
        let topology = topology();
        for (text, router, port) in [
            ("tor0:p0", 0, 0),
            ("tor0:p1", 0, 1),
            ("tor0:Ethernet1", 0, 0),
            ("tor0:Te1:1", 0, 1),
            ("a:b:swp1", 1, 0),
            ("a:b:p", 1, 1),
            ("a:b:p1", 1, 1),
        ] {
            assert_eq!(topology.find_port(text), Ok((RouterId(router), PortIndex(port))), "{text}");
        }
        assert_eq!(topology.find_link_at("tor0:Te1:1"), topology.find_link_at("tor0:p1"));
    }

    #[test]
    fn an_unknown_port_is_reported_with_the_known_ones() {
        let topology = topology();
        let error = |text: &str| topology.find_port(text).unwrap_err().to_string();
        assert_eq!(
            error("tor0:Ethernet9"),
            "no port Ethernet9 at \"tor0\": it has 2 ports, counted from p0, named Ethernet1, Te1:1"
        );
        assert_eq!(
            error("tor0:p2"),
            "no port p2 at \"tor0\": it has 2 ports, counted from p0, named Ethernet1, Te1:1"
        );
        assert_eq!(error("tor9:p2"), "no node \"tor9\" in the topology");
        assert_eq!(error("hswp1:p0"), "\"hswp1\" is a host: expected a switch before the port");
        assert!(error("tor0").starts_with("invalid port \"tor0\": expected SWITCH:PORT"));
        assert!(error("tor0:p+1").starts_with("no port p+1 at"));
    }

    #[test]
    fn the_error_about_a_large_switch_is_short() {
        let mut builder = TopologyBuilder::new();
        let router = builder.add_router("tor0").unwrap();
        for number in 0..100 {
            let host = builder.add_endpoint(format!("h{number}"), router, LinkSpec::default()).unwrap();
            builder.set_port_name(host, &format!("e{number}")).unwrap();
        }
        let error = builder.build().unwrap().find_port("tor0:x").unwrap_err().to_string();
        assert!(error.ends_with("named e0, e1, e2, e3, e4, e5, e6, e7 and 92 more"), "{error}");
    }
}
