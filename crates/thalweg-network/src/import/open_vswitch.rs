//! Ports and flows of Open vSwitch.
//!
//! | command | what it tells |
//! |---|---|
//! | `ovs-vsctl --format=json list Interface` | patch ports and their peers; MAC addresses of the machines at other ports (`external_ids:attached-mac`) |
//! | `ovs-ofctl show BRIDGE` | the ports of the bridge, their speed and state |
//! | `ovs-ofctl dump-flows BRIDGE` | the forwarding table |
//!
//! A flow becomes a table entry if it matches a destination MAC address alone, in table 0, and has one output port that leads
//! somewhere, beside monitor ports. Of several flows for one address, that with the highest priority counts.

use std::collections::BTreeMap;

use serde_json::Value;
use thalweg_wire::BitRate;

use super::{Discovery, End, FoundEntry, HostFacts, ImportError};
use crate::address::MacAddress;
use crate::topology::LinkSpec;

const LIST: &str = "ovs-vsctl --format=json list Interface";
const SHOW: &str = "ovs-ofctl show BRIDGE";
const FLOWS: &str = "ovs-ofctl dump-flows BRIDGE";

/// Items of a flow that are not a part of its match.
const STATISTICS: [&str; 12] = [
    "cookie",
    "duration",
    "table",
    "n_packets",
    "n_bytes",
    "idle_age",
    "hard_age",
    "idle_timeout",
    "hard_timeout",
    "priority",
    "importance",
    "send_flow_rem",
];

/// The ports of a bridge, by OpenFlow number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bridge {
    ports: BTreeMap<u32, String>,
}

impl Discovery {
    /// Adds the ports of a bridge: `ovs-ofctl show`. `default` is the link whose rate the reported speed replaces. `file` is the
    /// name of the file for messages.
    ///
    /// # Errors
    /// If the text is not that of the command.
    pub fn add_bridge(
        &mut self,
        bridge: &str,
        text: &str,
        default: LinkSpec,
        file: &str,
    ) -> Result<Bridge, ImportError> {
        let mut found = Bridge::default();
        let mut current: Option<End> = None;
        for line in text.lines() {
            if let Some((number, name)) = port_line(line) {
                let end = End { system: bridge.to_owned(), port: name.to_owned() };
                found.ports.insert(number, name.to_owned());
                current = Some(end);
            } else if line.starts_with(" LOCAL(") {
                current = None;
            }
            let Some(end) = &current else { continue };
            let line = line.trim();
            if let Some(rate) = speed(line) {
                self.specs.insert(end.clone(), LinkSpec { rate, ..default });
            }
            let is_down = line.split_once(':').is_some_and(|(key, states)| {
                ["config", "state"].contains(&key)
                    && (states.contains("PORT_DOWN") || states.contains("LINK_DOWN"))
            });
            if is_down {
                self.down.insert(end.clone());
            }
        }
        match found.ports.is_empty() {
            true => Err(format_error(file, "no ports", SHOW)),
            false => Ok(found),
        }
    }

    /// Adds what the interfaces of these bridges are connected to: `ovs-vsctl --format=json list Interface`. `file` is the name of
    /// the file for messages.
    ///
    /// # Errors
    /// If the text is not that of the command, or a port has two neighbours.
    pub fn add_interfaces(
        &mut self,
        bridges: &BTreeMap<String, Bridge>,
        text: &str,
        file: &str,
    ) -> Result<(), ImportError> {
        let end_of = |name: &str| {
            let has_it = |(_, bridge): &(&String, &Bridge)| bridge.ports.values().any(|port| port == name);
            let (system, _) = bridges.iter().find(has_it)?;
            Some(End { system: system.clone(), port: name.to_owned() })
        };
        for row in rows(text).ok_or_else(|| format_error(file, "no table of interfaces", LIST))? {
            let Some(end) = row.text("name").and_then(|name| end_of(&name)) else { continue };
            if let Some(peer) = row.map_value("options", "peer").and_then(|peer| end_of(&peer)) {
                self.add_link(end, peer)?;
            } else if let Some(mac) = row.map_value("external_ids", "attached-mac") {
                let system = row.map_value("external_ids", "iface-id").unwrap_or_else(|| end.port.clone());
                let host = End { system, port: "eth0".to_owned() };
                let mac = mac.parse::<MacAddress>();
                let mac = mac.map_err(|error| format_error(file, &format!("attached-mac: {error}"), LIST))?;
                self.hosts.insert(host.clone(), HostFacts { mac: Some(mac), ..HostFacts::default() });
                self.add_link(end, host)?;
            }
        }
        Ok(())
    }

    /// Adds the forwarding table of a bridge: `ovs-ofctl dump-flows`. Add it last, when all links are known. `file` is the name of the
    /// file for messages.
    ///
    /// # Errors
    /// If the text is not that of the command.
    pub fn add_flows(
        &mut self,
        bridge: &str,
        ports: &Bridge,
        text: &str,
        file: &str,
    ) -> Result<(), ImportError> {
        let mut best: BTreeMap<MacAddress, (u32, End)> = BTreeMap::new();
        let mut left_out = 0;
        for line in text.lines().filter(|line| line.contains(" actions=")) {
            let flow =
                Flow::read(line).ok_or_else(|| format_error(file, &format!("flow {line:?}"), FLOWS))?;
            let ends = flow
                .outputs
                .iter()
                .filter_map(|output| ports.named(output))
                .map(|port| End { system: bridge.to_owned(), port: port.to_owned() });
            let leading: Vec<End> = ends.filter(|end| self.peers.contains_key(end)).collect();
            match (flow.destination, &leading[..]) {
                (Some(mac), [output]) => {
                    let known = best.get(&mac).is_some_and(|(priority, _)| *priority >= flow.priority);
                    if !known {
                        best.insert(mac, (flow.priority, output.clone()));
                    }
                }
                _ if flow.is_drop => {}
                _ => left_out += 1,
            }
        }
        if left_out > 0 {
            self.note(format!(
                "{left_out} flows of {bridge} were left out: a table entry has a destination MAC address, and one output port with a known link"
            ));
        }
        self.has_tables = true;
        self.entries.extend(best.into_iter().map(|(mac, (_, output))| FoundEntry { mac, output }));
        Ok(())
    }
}

impl Bridge {
    /// Returns the name of a port that a flow names by number or name.
    fn named(&self, output: &str) -> Option<&str> {
        match output.parse() {
            Ok(number) => self.ports.get(&number).map(String::as_str),
            Err(_) => self.ports.values().find(|name| *name == output).map(String::as_str),
        }
    }
}

/// A flow entry.
struct Flow {
    priority: u32,
    /// The destination address, if the flow matches nothing else and changes nothing.
    destination: Option<MacAddress>,
    outputs: Vec<String>,
    is_drop: bool,
}

impl Flow {
    fn read(line: &str) -> Option<Flow> {
        let (head, actions) = line.trim().split_once(" actions=")?;
        let items: Vec<(&str, &str)> = head
            .split([',', ' '])
            .filter(|item| !item.is_empty())
            .map(|item| item.split_once('=').unwrap_or((item, "")))
            .collect();
        let value = |name: &str| items.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let priority = value("priority").map_or(Some(32_768), |text| text.parse().ok())?;
        let is_first_table = value("table").is_none_or(|table| table == "0");
        let matched: Vec<_> = items.iter().filter(|(key, _)| !STATISTICS.contains(key)).collect();
        let actions: Vec<&str> = actions.split(',').collect();
        let outputs = actions.iter().filter_map(|action| action.strip_prefix("output:"));
        let outputs: Vec<String> = outputs.map(|port| port.trim_matches('"').to_owned()).collect();
        let destination = match &matched[..] {
            [("dl_dst", mac)] if is_first_table && outputs.len() == actions.len() => Some(mac.parse().ok()?),
            _ => None,
        };
        Some(Flow { priority, destination, outputs, is_drop: actions == ["drop"] })
    }
}

/// Parses ` 49(up0): addr:7e:45:ea:c7:7d:b9`.
fn port_line(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = line.strip_prefix(' ')?.split_once('(')?;
    let (name, _) = rest.split_once("): addr:")?;
    Some((number.parse().ok()?, name))
}

/// Parses `speed: 10000 Mbps now, 0 Mbps max`; `None` if the speed is not known.
fn speed(line: &str) -> Option<BitRate> {
    let megabits: u64 = line.strip_prefix("speed: ")?.split_once(" Mbps now")?.0.parse().ok()?;
    (megabits > 0).then(|| BitRate(megabits.saturating_mul(1_000_000)))
}

/// A row of a table of `ovs-vsctl --format=json` (ovs-vsctl(8)).
struct TableRow {
    values: BTreeMap<String, Value>,
}

impl TableRow {
    fn text(&self, column: &str) -> Option<String> {
        self.values.get(column)?.as_str().map(str::to_owned)
    }

    /// Returns a value of a column that is a map: `["map", [["peer", "down0"]]]` (RFC 7047, section 5.1).
    fn map_value(&self, column: &str, key: &str) -> Option<String> {
        let pairs = self.values.get(column)?.get(1)?.as_array()?;
        let pair = pairs.iter().find(|pair| pair.get(0).and_then(Value::as_str) == Some(key))?;
        pair.get(1)?.as_str().map(str::to_owned)
    }
}

fn rows(text: &str) -> Option<Vec<TableRow>> {
    let document: Value = serde_json::from_str(text).ok()?;
    let headings: Vec<&str> =
        document.get("headings")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let row = |row: &Value| {
        let values =
            headings.iter().map(|heading| (*heading).to_owned()).zip(row.as_array()?.iter().cloned());
        Some(TableRow { values: values.collect() })
    };
    document.get("data")?.as_array()?.iter().map(row).collect()
}

fn format_error(file: &str, reason: &str, command: &'static str) -> ImportError {
    ImportError::Format { file: file.to_owned(), reason: reason.to_owned(), command }
}
