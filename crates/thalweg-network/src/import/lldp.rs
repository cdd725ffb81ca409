//! LLDP neighbours (IEEE 802.1AB) as lldpd prints them: `lldpcli -f json show neighbors`.
//!
//! lldpd prints an object where there is one interface, one address or no name, and an array or a nested object otherwise.

use std::net::IpAddr;

use serde_json::{Map, Value};

use super::{Discovery, End, HostFacts, ImportError};
use crate::address::MacAddress;

const COMMAND: &str = "lldpcli -f json show neighbors";

impl Discovery {
    /// Adds the neighbours of a switch. `file` is the name of the file for messages.
    ///
    /// # Errors
    /// If the text is not that of the command, or a port has two neighbours.
    pub fn add_lldp(&mut self, switch: &str, text: &str, file: &str) -> Result<(), ImportError> {
        let wrong = |reason: String| ImportError::Format { file: file.to_owned(), reason, command: COMMAND };
        let document: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let lldp = document.get("lldp").ok_or_else(|| wrong("no member \"lldp\"".to_owned()))?;
        // Without neighbours there is no such member.
        for (port, neighbour) in interfaces(lldp.get("interface")) {
            let peer = Neighbour::read(neighbour)
                .ok_or_else(|| wrong(format!("the neighbour at {port} has no identity")))?;
            self.add_neighbour(End { system: switch.to_owned(), port: port.clone() }, peer)?;
        }
        Ok(())
    }

    fn add_neighbour(&mut self, end: End, neighbour: Neighbour) -> Result<(), ImportError> {
        let peer = End { system: neighbour.system, port: neighbour.port };
        if !self.switches.contains(&peer.system) {
            if neighbour.is_bridge {
                self.note(format!(
                    "{} is imported as a host, but says that it is a bridge: add its own report if it is a switch",
                    peer.system
                ));
            }
            self.hosts.insert(peer.clone(), neighbour.facts);
        }
        self.add_link(end, peer)
    }
}

/// The other end of a link, as it describes itself.
struct Neighbour {
    system: String,
    port: String,
    is_bridge: bool,
    facts: HostFacts,
}

impl Neighbour {
    fn read(value: &Value) -> Option<Neighbour> {
        let (name, chassis) = named_chassis(value.get("chassis")?)?;
        let chassis_id = text(chassis.get("id")?.get("value"));
        let port = value.get("port")?;
        let (port_id, port_kind) = (text(port.get("id")?.get("value"))?, text(port.get("id")?.get("type")));
        let is_mac = port_kind.as_deref() == Some("mac");
        // A host sends the MAC address of the port as its identity, and its name as the description.
        let described = text(port.get("descr")).filter(|_| is_mac);
        let mac = match is_mac {
            true => port_id.parse().ok(),
            false => chassis_id.as_deref().and_then(|id| id.parse::<MacAddress>().ok()),
        };
        let addresses: Vec<IpAddr> =
            texts(chassis.get("mgmt-ip")).iter().filter_map(|ip| ip.parse().ok()).collect();
        let ip = addresses.iter().find_map(|ip| if let IpAddr::V4(ip) = ip { Some(*ip) } else { None });
        let ipv6 = addresses.iter().find_map(|ip| match ip {
            IpAddr::V6(ip) if !ip.is_unicast_link_local() => Some(*ip),
            _ => None,
        });
        Some(Neighbour {
            system: name.or(chassis_id)?,
            port: described.unwrap_or(port_id),
            is_bridge: has_bridge(chassis.get("capability")),
            facts: HostFacts { mac, ip, ipv6 },
        })
    }
}

/// Returns all interfaces with their neighbours.
fn interfaces(value: Option<&Value>) -> Vec<(&String, &Value)> {
    let list = match value {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_object).collect(),
        Some(Value::Object(one)) => vec![one],
        _ => Vec::new(),
    };
    list.into_iter().flatten().collect()
}

/// Returns the name of a system, if it has one, and its members.
fn named_chassis(value: &Value) -> Option<(Option<String>, &Map<String, Value>)> {
    let members = value.as_object()?;
    match members.iter().next() {
        _ if members.contains_key("id") => Some((None, members)),
        Some((name, named)) => Some((Some(name.clone()), named.as_object()?)),
        None => None,
    }
}

fn has_bridge(value: Option<&Value>) -> bool {
    let is_bridge = |one: &Value| {
        one.get("type").and_then(Value::as_str) == Some("Bridge")
            && one.get("enabled").and_then(Value::as_bool) == Some(true)
    };
    match value {
        Some(Value::Array(list)) => list.iter().any(is_bridge),
        Some(one) => is_bridge(one),
        None => false,
    }
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(|one| text(Some(one))).collect(),
        other => text(other).into_iter().collect(),
    }
}
