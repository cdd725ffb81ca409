//! Which links of a switch a rule is about.

use std::fmt;
use std::str::FromStr;

use thalweg_measure::collector::{LinkDirection, PortDirection};
use thalweg_network::{Node, PortIndex, RouterId, Topology};
use thiserror::Error;

/// Some links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkSelection {
    /// All of them.
    All,
    /// Those between switches and hosts, in one direction or both.
    Hosts(Option<PortDirection>),
    /// Those between switches, in one direction or both.
    Switches(Option<PortDirection>),
    /// The direction from one node to its neighbour: `tor0 > h3`.
    From(String, String),
    /// A port's, in one direction or both: `tor0:p3`, `tor0:p3:out`.
    Port(String, PortIndex, Option<PortDirection>),
}

/// Text that names no links.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{text:?} names no links: expected all, hosts, switches, \"switches:out\", \"tor0 > h3\", \"tor0:p3\" or \
     \"tor0:p3:out\""
)]
pub struct ParseLinkSelectionError {
    /// What was given.
    pub text: String,
}

/// Why a selection makes no sense in a network.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkSelectionError {
    /// There is no such node.
    #[error("there is no {name:?} in the topology")]
    NoNode {
        /// Its name.
        name: String,
    },
    /// Two nodes are no neighbours.
    #[error("no link leads from {from:?} to {to:?}")]
    NoLink {
        /// One.
        from: String,
        /// The other.
        to: String,
    },
    /// A switch has no such port.
    #[error("{switch:?} has no port {port}: it has {ports}, counted from p0")]
    NoPort {
        /// The switch.
        switch: String,
        /// The port.
        port: PortIndex,
        /// Ports that it has.
        ports: usize,
    },
}

impl FromStr for LinkSelection {
    type Err = ParseLinkSelectionError;

    fn from_str(text: &str) -> Result<Self, ParseLinkSelectionError> {
        let wrong = || ParseLinkSelectionError { text: text.to_owned() };
        if text == "all" {
            return Ok(LinkSelection::All);
        }
        if let Some((from, to)) = text.split_once(" > ") {
            return Ok(LinkSelection::From(from.trim().to_owned(), to.trim().to_owned()));
        }
        let (rest, way) = match text.rsplit_once(':') {
            Some((rest, "in")) => (rest, Some(PortDirection::Input)),
            Some((rest, "out")) => (rest, Some(PortDirection::Output)),
            _ => (text, None),
        };
        match rest {
            "hosts" => return Ok(LinkSelection::Hosts(way)),
            "switches" => return Ok(LinkSelection::Switches(way)),
            _ => {}
        }
        let (switch, port) = rest.rsplit_once(":p").ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        Ok(LinkSelection::Port(switch.to_owned(), PortIndex(port), way))
    }
}

/// As it is read.
impl fmt::Display for LinkSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkSelection::All => f.write_str("all"),
            LinkSelection::Hosts(way) => write!(f, "hosts{}", suffix(*way)),
            LinkSelection::Switches(way) => write!(f, "switches{}", suffix(*way)),
            LinkSelection::From(from, to) => write!(f, "{from} > {to}"),
            LinkSelection::Port(switch, port, way) => write!(f, "{switch}:{port}{}", suffix(*way)),
        }
    }
}

/// What stands behind the name of links for one direction of them.
fn suffix(way: Option<PortDirection>) -> &'static str {
    match way {
        None => "",
        Some(PortDirection::Input) => ":in",
        Some(PortDirection::Output) => ":out",
    }
}

impl LinkSelection {
    /// The link directions at one switch that it selects, in the order of ports.
    ///
    /// # Errors
    /// If it names what is not in the topology.
    ///
    /// # Panics
    /// If there is no such switch.
    pub fn at(
        &self,
        topology: &Topology,
        router: RouterId,
    ) -> Result<Vec<LinkDirection>, LinkSelectionError> {
        let all = (0..topology.ports(router)).map(|port| PortIndex(port as u16));
        let both = |port| {
            [PortDirection::Input, PortDirection::Output].map(|way| LinkDirection { port, direction: way })
        };
        let of = |way: Option<PortDirection>| {
            move |side: &LinkDirection| way.is_none_or(|way| side.direction == way)
        };
        let is_rack = |port: &PortIndex| port.index() < topology.rack_size(router);
        Ok(match self {
            LinkSelection::All => all.flat_map(both).collect(),
            LinkSelection::Hosts(way) => all.filter(is_rack).flat_map(both).filter(of(*way)).collect(),
            LinkSelection::Switches(way) => {
                all.filter(|port| !is_rack(port)).flat_map(both).filter(of(*way)).collect()
            }
            LinkSelection::From(from, to) => {
                let (from_node, to_node) = (node(topology, from)?, node(topology, to)?);
                if !are_neighbours(topology, from_node, to_node) {
                    return Err(LinkSelectionError::NoLink { from: from.clone(), to: to.clone() });
                }
                let here = Node::Router(router);
                let side = |(other, way)| {
                    let leads = move |port: &PortIndex| topology.peer(router, *port).node == other;
                    all.clone().filter(leads).map(move |port| LinkDirection { port, direction: way })
                };
                let sides =
                    [(from_node, to_node, PortDirection::Output), (to_node, from_node, PortDirection::Input)];
                let sides = sides.into_iter().filter(|(at, _, _)| *at == here);
                sides.flat_map(|(_, other, way)| side((other, way))).collect()
            }
            LinkSelection::Port(switch, port, way) => {
                let node = node(topology, switch)?;
                let Node::Router(named) = node else {
                    return Err(LinkSelectionError::NoNode { name: switch.clone() });
                };
                let ports = topology.ports(named);
                if port.index() >= ports {
                    return Err(LinkSelectionError::NoPort { switch: switch.clone(), port: *port, ports });
                }
                let sides = both(*port).into_iter().filter(of(*way));
                sides.filter(|_| named == router).collect()
            }
        })
    }
}

fn node(topology: &Topology, name: &str) -> Result<Node, LinkSelectionError> {
    topology.node_named(name).ok_or_else(|| LinkSelectionError::NoNode { name: name.to_owned() })
}

fn are_neighbours(topology: &Topology, one: Node, other: Node) -> bool {
    topology.links().iter().any(|link| {
        let ends = link.ends.map(|end| end.node);
        ends == [one, other] || ends == [other, one]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_network::topology::shapes::{Tiers, leaf_spine};

    fn selected(text: &str, switch: &str) -> String {
        let topology = leaf_spine(2, 2, 3, Tiers::default()).unwrap();
        let Some(Node::Router(router)) = topology.node_named(switch) else { panic!("{switch}") };
        let selection: LinkSelection = text.parse().unwrap();
        assert_eq!(selection.to_string(), text);
        match selection.at(&topology, router) {
            Ok(sides) => {
                let way =
                    |side: &LinkDirection| if side.direction == PortDirection::Input { "in" } else { "out" };
                let sides: Vec<_> = sides.iter().map(|side| format!("{}{}", side.port, way(side))).collect();
                sides.join(" ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn classes_and_names_select_the_links_they_say() {
        let topology = leaf_spine(2, 2, 3, Tiers::default()).unwrap();
        let names: Vec<&str> = topology.routers().iter().map(|router| router.name.as_str()).collect();
        let (leaf, spine) = (names[0], names[2]);
        assert_eq!(selected("hosts", leaf), "p0in p0out p1in p1out p2in p2out");
        assert_eq!(selected("switches", leaf), "p3in p3out p4in p4out");
        assert_eq!(selected("hosts", spine), "");
        assert_eq!(selected("all", spine), "p0in p0out p1in p1out");
        let host = &topology.endpoints()[1].name;
        assert_eq!(selected(&format!("{leaf} > {host}"), leaf), "p1out");
        assert_eq!(selected(&format!("{host} > {leaf}"), leaf), "p1in");
        assert_eq!(selected(&format!("{host} > {leaf}"), spine), "", "not at that switch");
        assert_eq!(selected(&format!("{leaf}:p3:out"), leaf), "p3out");
        assert_eq!(selected(&format!("{leaf}:p3"), leaf), "p3in p3out");
        assert_eq!(
            selected(&format!("{leaf}:p9"), spine),
            format!("{leaf:?} has no port p9: it has 5, counted from p0")
        );
        assert_eq!(
            selected(&format!("{spine} > {host}"), leaf),
            format!("no link leads from {spine:?} to {host:?}")
        );
        assert_eq!(selected("nobody > h0", leaf), "there is no \"nobody\" in the topology");
    }

    #[test]
    fn text_that_names_no_links_is_refused() {
        for text in ["", "none", "tor0", "tor0:3", "tor0:px", "tor0:p3:both", "a>b"] {
            assert!(text.parse::<LinkSelection>().is_err(), "{text}");
        }
    }
}
