//! Names of hosts and links by number.

use thalweg_control::Pair;
use thalweg_control::routes::{LinkNumber, Paths};
use thalweg_network::{Attachment, EndpointId, LinkId, Node, RouterId};

/// Names of a network's hosts and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    hosts: Vec<String>,
    /// By number, the names of switches.
    routers: Vec<String>,
    /// By host, the name of its switch.
    switches: Vec<String>,
    /// By link number, in the API's format.
    links: Vec<String>,
    /// By link, the switch at its second end, and its ports.
    cables: Vec<(String, String)>,
}

impl Names {
    /// Returns the names of the network of `paths`.
    pub fn of(paths: &Paths) -> Names {
        let topology = paths.topology();
        let switch = |host| topology.name(Node::Router(topology.router_of(host))).to_owned();
        let link = |number| {
            let (router, port) = paths.port(LinkNumber(number));
            format!("{}:out", paths.state().port_name(router, port))
        };
        Names {
            hosts: topology.endpoints().iter().map(|host| host.name.clone()).collect(),
            routers: topology.router_ids().map(|id| topology.name(Node::Router(id)).to_owned()).collect(),
            switches: topology.endpoint_ids().map(switch).collect(),
            cables: topology.links().iter().map(|link| cable(paths, link.ends)).collect(),
            links: (0..paths.links() as u32).map(link).collect(),
        }
    }

    /// Returns the name of a host; empty if it no longer exists.
    pub fn host(&self, host: EndpointId) -> &str {
        self.hosts.get(host.index()).map_or("", String::as_str)
    }

    /// Returns the name of a switch; empty if it no longer exists.
    pub fn router(&self, router: RouterId) -> &str {
        self.routers.get(router.index()).map_or("", String::as_str)
    }

    /// Returns the switch of a host; empty if the host no longer exists.
    pub fn switch(&self, host: EndpointId) -> &str {
        self.switches.get(host.index()).map_or("", String::as_str)
    }

    /// Returns the name of a link: `SWITCH:pPORT:out`.
    pub fn link(&self, link: LinkNumber) -> &str {
        self.links.get(link.0 as usize).map_or("", String::as_str)
    }

    /// Returns the switch at one end of a link, and the link as `leaf0:p2 - spine0:p0`; empty if it no longer exists.
    pub fn cable(&self, link: LinkId) -> (&str, &str) {
        self.cables.get(link.index()).map_or(("", ""), |(switch, name)| (switch, name))
    }

    /// Returns a pair in the format `h0 > h8`.
    pub fn pair(&self, pair: Pair) -> String {
        format!("{} > {}", self.host(pair.source), self.host(pair.destination))
    }
}

/// Returns the switch at the second end of a link, and both ends. An endpoint is always the first end.
fn cable(paths: &Paths, ends: [Attachment; 2]) -> (String, String) {
    let end = |end: Attachment| match end.node {
        Node::Router(router) => paths.state().port_name(router, end.port).to_string(),
        host @ Node::Endpoint(_) => paths.topology().name(host).to_owned(),
    };
    (paths.topology().name(ends[1].node).to_owned(), format!("{} - {}", end(ends[0]), end(ends[1])))
}
