//! Switches and links of a lab that can fail, by name.

use thalweg_lab::{DEFAULT_ADDRESSES, Lab, LabError, TableError, shortest_path_tables};
use thalweg_network::{LinkId, Node, RouterId, Topology};
use thiserror::Error;

/// A switch or link of a lab that can fail and be repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// A link, both directions at once.
    Link(LinkId),
    /// A switch, with all of its links.
    Switch(RouterId),
}

/// The lab has no switch, host or link of this name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "unknown component {text:?}: expected a switch (leaf0), a host for its link (h0), a link by its ends (leaf0-spine1) \
         or by a port (leaf0:p2, or leaf0:Ethernet3 by its name)"
)]
pub struct UnknownComponent {
    text: String,
}

/// An error while repairing a component.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RepairError {
    /// Its links could not be set up.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Its table could not be restored.
    #[error("links are up, but the switch has no routes: {0}")]
    Table(#[from] TableError),
}

impl Component {
    /// Finds a component: a switch by name, a link by its host, by both ends (`leaf0-spine1`) or by a port
    /// (`leaf0:p2`, `leaf0:Ethernet3`). Of several links between two switches, returns the first.
    ///
    /// # Errors
    /// If the topology has no such component.
    pub fn find(topology: &Topology, text: &str) -> Result<Component, UnknownComponent> {
        let of_node = match topology.node_named(text) {
            Some(Node::Router(router)) => Some(Component::Switch(router)),
            Some(Node::Endpoint(endpoint)) => Some(Component::Link(topology.endpoint_link(endpoint))),
            None => None,
        };
        let link =
            || topology.find_link_at(text).ok().or_else(|| by_ends(topology, text)).map(Component::Link);
        of_node.or_else(link).ok_or_else(|| UnknownComponent { text: text.to_owned() })
    }

    /// Makes it fail.
    ///
    /// # Errors
    /// If the lab no longer exists.
    pub fn fail(self, lab: &Lab) -> Result<(), LabError> {
        match self {
            Component::Link(link) => lab.set_link(link, false),
            Component::Switch(router) => lab.fail_switch(router),
        }
    }

    /// Repairs it. A switch gets the entries that switches have when a lab comes up, unless `empty`.
    ///
    /// # Errors
    /// If the lab no longer exists.
    pub fn repair(self, lab: &Lab, empty: bool) -> Result<(), RepairError> {
        match self {
            Component::Link(link) => lab.set_link(link, true)?,
            Component::Switch(router) => {
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

/// Finds a link by its ends in either order, `leaf0-spine1`. Names may contain hyphens.
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
    use thalweg_network::PortIndex;

    use super::*;

    #[test]
    fn components_are_found_by_switch_host_ends_and_port() {
        let topology = Plan::leaf_spine(DEFAULT_RATE).unwrap().topology;
        let find = |text| Component::find(&topology, text);
        assert_eq!(find("spine1"), Ok(Component::Switch(RouterId(4))));
        let link = topology.link_at(RouterId(0), PortIndex(3));
        for text in ["leaf0-spine1", "spine1-leaf0", "leaf0:p3", "spine1:p0"] {
            assert_eq!(find(text), Ok(Component::Link(link)), "{text}");
        }
        assert_eq!(find("h1"), find("leaf0:p1"));
        assert_eq!(link_name(&topology, link), "leaf0-spine1");
        for text in ["", "leaf9", "leaf0-leaf1", "leaf0:p9", "h0:p0", "leaf0:px", "-", "leaf0-"] {
            assert!(find(text).unwrap_err().to_string().contains("leaf0-spine1"), "{text}");
        }
    }
}
