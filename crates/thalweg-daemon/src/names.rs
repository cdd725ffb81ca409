//! Names of hosts and links by number.

use thalweg_control::Pair;
use thalweg_control::routes::{LinkNumber, Paths};
use thalweg_network::{EndpointId, Node};

/// Names of a network's hosts and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    hosts: Vec<String>,
    /// By host, the name of its switch.
    switches: Vec<String>,
    /// By link number, in the API's format.
    links: Vec<String>,
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
            switches: topology.endpoint_ids().map(switch).collect(),
            links: (0..paths.links() as u32).map(link).collect(),
        }
    }

    /// Returns the name of a host; empty if it no longer exists.
    pub fn host(&self, host: EndpointId) -> &str {
        self.hosts.get(host.index()).map_or("", String::as_str)
    }

    /// Returns the switch of a host; empty if the host no longer exists.
    pub fn switch(&self, host: EndpointId) -> &str {
        self.switches.get(host.index()).map_or("", String::as_str)
    }

    /// Returns the name of a link: `SWITCH:pPORT:out`.
    pub fn link(&self, link: LinkNumber) -> &str {
        self.links.get(link.0 as usize).map_or("", String::as_str)
    }

    /// Returns a pair in the format `h0 > h8`.
    pub fn pair(&self, pair: Pair) -> String {
        format!("{} > {}", self.host(pair.source), self.host(pair.destination))
    }
}
