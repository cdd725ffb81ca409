//! The links that a rule selects.

use std::fmt;
use std::str::FromStr;

use thalweg_measure::collector::{LinkDirection, PortDirection};
use thalweg_network::topology::UnknownPort;
use thalweg_network::{Node, PortIndex, RouterId, Topology};
use thiserror::Error;

/// A selection of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkSelection {
    /// All links.
    All,
    /// Links between switches and hosts, in one direction or both.
    Hosts(Option<PortDirection>),
    /// Links between switches, in one direction or both.
    Switches(Option<PortDirection>),
    /// The direction from one node to its neighbour: `tor0 > h3`.
    From(String, String),
    /// The link at a port, in one direction or both: `tor0:p3`, `tor0:p3:out`, `tor0:Ethernet4`.
    Port(String, Option<PortDirection>),
}

/// An invalid link selection.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "invalid links {text:?}: expected all, hosts, switches, \"switches:out\", \"tor0 > h3\", \"tor0:p3\", \
     \"tor0:p3:out\" or \"tor0:Ethernet4:out\""
)]
pub struct ParseLinkSelectionError {
    /// The text.
    pub text: String,
}

/// Why a selection does not fit a network.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkSelectionError {
    /// The topology has no such node.
    #[error("no node {name:?} in the topology")]
    NoNode {
        /// Name of the node.
        name: String,
    },
    /// The two nodes are not neighbours.
    #[error("no link from {from:?} to {to:?}")]
    NoLink {
        /// First node.
        from: String,
        /// Second node.
        to: String,
    },
    /// The port does not exist.
    #[error(transparent)]
    Port(#[from] UnknownPort),
}

impl FromStr for LinkSelection {
    type Err = ParseLinkSelectionError;

    fn from_str(text: &str) -> Result<Self, ParseLinkSelectionError> {
        let invalid = || ParseLinkSelectionError { text: text.to_owned() };
        if text == "all" {
            return Ok(LinkSelection::All);
        }
        if let Some((from, to)) = text.split_once(" > ") {
            return Ok(LinkSelection::From(from.trim().to_owned(), to.trim().to_owned()));
        }
        let (rest, direction) = split_direction(text);
        match rest {
            "hosts" => return Ok(LinkSelection::Hosts(direction)),
            "switches" => return Ok(LinkSelection::Switches(direction)),
            _ => {}
        }
        match rest.rsplit_once(':') {
            Some((switch, port)) if !switch.is_empty() && !port.is_empty() => {
                Ok(LinkSelection::Port(rest.to_owned(), direction))
            }
            _ => Err(invalid()),
        }
    }
}

/// Splits a direction from the end of the name of a link.
pub(crate) fn split_direction(text: &str) -> (&str, Option<PortDirection>) {
    match text.rsplit_once(':') {
        Some((rest, "in")) => (rest, Some(PortDirection::Input)),
        Some((rest, "out")) => (rest, Some(PortDirection::Output)),
        _ => (text, None),
    }
}

/// In the format of `FromStr`.
impl fmt::Display for LinkSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkSelection::All => f.write_str("all"),
            LinkSelection::Hosts(direction) => write!(f, "hosts{}", suffix(*direction)),
            LinkSelection::Switches(direction) => write!(f, "switches{}", suffix(*direction)),
            LinkSelection::From(from, to) => write!(f, "{from} > {to}"),
            LinkSelection::Port(port, direction) => write!(f, "{port}{}", suffix(*direction)),
        }
    }
}

/// Returns the suffix that selects one direction.
fn suffix(direction: Option<PortDirection>) -> &'static str {
    match direction {
        None => "",
        Some(PortDirection::Input) => ":in",
        Some(PortDirection::Output) => ":out",
    }
}

impl LinkSelection {
    /// Checks that the nodes, links and ports of the selection are in the topology.
    ///
    /// # Errors
    /// If one is not.
    pub fn check(&self, topology: &Topology) -> Result<(), LinkSelectionError> {
        match self {
            LinkSelection::All | LinkSelection::Hosts(_) | LinkSelection::Switches(_) => Ok(()),
            LinkSelection::From(from, to) => neighbours(topology, from, to).map(drop),
            LinkSelection::Port(port, _) => Ok(topology.find_port(port).map(drop)?),
        }
    }

    /// Returns the selected link directions at one switch, in the order of ports.
    ///
    /// # Errors
    /// If the selection names a node, link or port that is not in the topology.
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
            [PortDirection::Input, PortDirection::Output].map(|direction| LinkDirection { port, direction })
        };
        let of = |direction: Option<PortDirection>| {
            move |link: &LinkDirection| direction.is_none_or(|direction| link.direction == direction)
        };
        let leads_to_host = |port: &PortIndex| port.index() < topology.rack_size(router);
        Ok(match self {
            LinkSelection::All => all.flat_map(both).collect(),
            LinkSelection::Hosts(direction) => {
                all.filter(leads_to_host).flat_map(both).filter(of(*direction)).collect()
            }
            LinkSelection::Switches(direction) => {
                all.filter(|port| !leads_to_host(port)).flat_map(both).filter(of(*direction)).collect()
            }
            LinkSelection::From(from, to) => {
                let (from_node, to_node) = neighbours(topology, from, to)?;
                let here = Node::Router(router);
                // The link is an output at its first node and an input at its second.
                let (other, direction) = match () {
                    () if from_node == here => (to_node, PortDirection::Output),
                    () if to_node == here => (from_node, PortDirection::Input),
                    () => return Ok(Vec::new()),
                };
                let leads_to_other = |port: &PortIndex| topology.peer(router, *port).node == other;
                all.filter(leads_to_other).map(|port| LinkDirection { port, direction }).collect()
            }
            LinkSelection::Port(port, direction) => {
                let (named, port) = topology.find_port(port)?;
                let directions = both(port).into_iter().filter(of(*direction));
                directions.filter(|_| named == router).collect()
            }
        })
    }
}

fn node(topology: &Topology, name: &str) -> Result<Node, LinkSelectionError> {
    topology.node_named(name).ok_or_else(|| LinkSelectionError::NoNode { name: name.to_owned() })
}

/// Returns two nodes between which there is a link.
fn neighbours(topology: &Topology, from: &str, to: &str) -> Result<(Node, Node), LinkSelectionError> {
    let (one, other) = (node(topology, from)?, node(topology, to)?);
    let is_between = |ends: [Node; 2]| ends == [one, other] || ends == [other, one];
    match topology.links().iter().any(|link| is_between(link.ends.map(|end| end.node))) {
        true => Ok((one, other)),
        false => Err(LinkSelectionError::NoLink { from: from.to_owned(), to: to.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_network::topology::shapes::{Tiers, leaf_spine};
    use thalweg_network::{LinkSpec, TopologyBuilder};

    fn selected(text: &str, switch: &str) -> String {
        let topology = leaf_spine(2, 2, 3, Tiers::default()).unwrap();
        let Some(Node::Router(router)) = topology.node_named(switch) else { panic!("{switch}") };
        let selection: LinkSelection = text.parse().unwrap();
        assert_eq!(selection.to_string(), text);
        match selection.at(&topology, router) {
            Ok(sides) => {
                let direction =
                    |side: &LinkDirection| if side.direction == PortDirection::Input { "in" } else { "out" };
                let sides: Vec<_> =
                    sides.iter().map(|side| format!("{}{}", side.port, direction(side))).collect();
                sides.join(" ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn selections_match_classes_nodes_and_ports() {
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
        assert_eq!(selected(&format!("{host} > {leaf}"), spine), "", "a link of another switch");
        assert_eq!(selected(&format!("{leaf}:p3:out"), leaf), "p3out");
        assert_eq!(selected(&format!("{leaf}:p3"), leaf), "p3in p3out");
        assert_eq!(
            selected(&format!("{leaf}:p9"), spine),
            format!("no port p9 at {leaf:?}: it has 5 ports, counted from p0")
        );
        assert_eq!(
            selected(&format!("{spine} > {host}"), leaf),
            format!("no link from {spine:?} to {host:?}")
        );
        assert_eq!(selected("nobody > h0", leaf), "no node \"nobody\" in the topology");
    }

    #[test]
    fn ports_are_selected_by_the_names_that_the_switch_gives() {
        let mut builder = TopologyBuilder::new();
        let router = builder.add_router("tor0").unwrap();
        for (host, port) in [("h0", "Ethernet4"), ("h1", "Te1/1:2")] {
            let host = builder.add_endpoint(host, router, LinkSpec::default()).unwrap();
            builder.set_port_name(host, port).unwrap();
        }
        let topology = builder.build().unwrap();
        let select = |text: &str| text.parse::<LinkSelection>().unwrap().at(&topology, router);
        for (name, number) in [("tor0:Ethernet4", "tor0:p0"), ("tor0:Te1/1:2:out", "tor0:p1:out")] {
            assert_eq!(select(name), select(number));
            assert!(!select(name).unwrap().is_empty());
        }
        assert_eq!(
            select("tor0:Ethernet5:in").unwrap_err().to_string(),
            "no port Ethernet5 at \"tor0\": it has 2 ports, counted from p0, named Ethernet4, Te1/1:2"
        );
        for text in ["tor0:3", "tor0:px", "tor0:p3:both", "h0:p0"] {
            let selection: LinkSelection = text.parse().unwrap();
            assert!(selection.check(&topology).is_err(), "{text}");
        }
    }

    #[test]
    fn invalid_selections_are_refused() {
        for text in ["", "none", "tor0", ":p3", "tor0:", "in", "tor0:in", "a>b"] {
            assert!(text.parse::<LinkSelection>().is_err(), "{text}");
        }
    }
}
