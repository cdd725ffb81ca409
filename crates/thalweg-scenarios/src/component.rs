//! The parts of a lab that can fail, as people name them.

use thalweg_lab::{DEFAULT_ADDRESSES, Lab, LabError, TableError, shortest_path_tables};
use thalweg_network::{LinkId, Node, PortIndex, RouterId, Topology};
use thiserror::Error;

/// A part of a lab that can fail, and be repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A link, both directions at once.
    Link(LinkId),
    /// A switch, with all of its links.
    Switch(RouterId),
}

/// There is no such part.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "the lab has no {text:?}: expected a switch (leaf0), a host for its link (h0), a link by its ends (leaf0-spine1) \
     or by a port (leaf0:p2)"
)]
pub struct UnknownPart {
    text: String,
}

/// Why a part could not be repaired whole.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RepairError {
    /// Its links.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The entries of its table.
    #[error("its table is empty: {0}")]
    Table(#[from] TableError),
}

impl Part {
    /// The part of this name: a switch's, a host's for its link, `leaf0-spine1` or `leaf0:p2` for a link. Of several links
    /// between the same two the first.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(topology: &Topology, text: &str) -> Result<Part, UnknownPart> {
        let of_node = match topology.node_named(text) {
            Some(Node::Router(router)) => Some(Part::Switch(router)),
            Some(Node::Endpoint(endpoint)) => Some(Part::Link(topology.endpoint_link(endpoint))),
            None => None,
        };
        let link = || by_port(topology, text).or_else(|| by_ends(topology, text)).map(Part::Link);
        of_node.or_else(link).ok_or_else(|| UnknownPart { text: text.to_owned() })
    }

    /// Has it fail.
    ///
    /// # Errors
    /// If the lab is gone.
    pub fn fail(self, lab: &Lab) -> Result<(), LabError> {
        match self {
            Part::Link(link) => lab.set_link(link, false),
            Part::Switch(router) => lab.fail_switch(router),
        }
    }

    /// Repairs it. A switch has the entries then that all switches had when the lab came up, unless it is to be `empty`.
    ///
    /// # Errors
    /// If the lab is gone.
    pub fn repair(self, lab: &Lab, empty: bool) -> Result<(), RepairError> {
        match self {
            Part::Link(link) => lab.set_link(link, true)?,
            Part::Switch(router) => {
                lab.repair_switch(router)?;
                if !empty {
                    let first =
                        shortest_path_tables(lab.topology(), DEFAULT_ADDRESSES).map_err(LabError::from)?;
                    lab.tables()?.install_at(router, &first)?;
                }
            }
        }
        Ok(())
    }
}

/// `leaf0:p2`
fn by_port(topology: &Topology, text: &str) -> Option<LinkId> {
    let (router, port) = text.rsplit_once(":p")?;
    let Some(Node::Router(router)) = topology.node_named(router) else { return None };
    let port: u16 = port.parse().ok()?;
    (usize::from(port) < topology.ports(router)).then(|| topology.link_at(router, PortIndex(port)))
}

/// `leaf0-spine1`, in either order; names may have hyphens themselves.
fn by_ends(topology: &Topology, text: &str) -> Option<LinkId> {
    text.match_indices('-').find_map(|(at, hyphen)| {
        let ends = [&text[..at], &text[at + hyphen.len()..]].map(|name| topology.node_named(name));
        let [Some(one), Some(other)] = ends else { return None };
        let joins = |link: &thalweg_network::Link| {
            let [a, b] = link.ends.map(|end| end.node);
            (a, b) == (one, other) || (b, a) == (one, other)
        };
        let place = topology.links().iter().position(joins)?;
        Some(LinkId(place as u32))
    })
}

#[cfg(test)]
mod tests {
    use thalweg_lab::{DEFAULT_RATE, Plan, link_name};

    use super::*;

    #[test]
    fn parts_are_named_by_switch_host_ends_and_port() {
        let topology = Plan::leaf_spine(DEFAULT_RATE).unwrap().topology;
        let named = |text| Part::named(&topology, text);
        assert_eq!(named("spine1"), Ok(Part::Switch(RouterId(4))));
        let link = topology.link_at(RouterId(0), PortIndex(3));
        for text in ["leaf0-spine1", "spine1-leaf0", "leaf0:p3", "spine1:p0"] {
            assert_eq!(named(text), Ok(Part::Link(link)), "{text}");
        }
        assert_eq!(named("h1"), named("leaf0:p1"));
        assert_eq!(link_name(&topology, link), "leaf0-spine1");
        for text in ["", "leaf9", "leaf0-leaf1", "leaf0:p9", "h0:p0", "leaf0:px", "-", "leaf0-"] {
            assert!(named(text).unwrap_err().to_string().contains("leaf0-spine1"), "{text}");
        }
    }
}
