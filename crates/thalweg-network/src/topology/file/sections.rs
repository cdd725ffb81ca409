//! The sections of topology files.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde_json::{Value, json};
use thalweg_config::kind::{Boolean, Kind, Parsed, Reads, parsed};
use thalweg_config::{Form, Literal, Schema, reference as reference_of, section};
use thalweg_wire::{BitRate, Nanos};

use super::loss::LossRates;
use crate::address::MacAddress;
use crate::topology::LossRate;

/// The schema of topology files.
pub static TOPOLOGY: Schema =
    Schema { may_be_json: true, ..Schema::new("topology", &[&DEFAULTS, &ROUTER, &ENDPOINT, &LINK]) };

/// The schema of topology files with link state and forwarding state.
pub static STATE: Schema = Schema {
    may_be_json: true,
    ..Schema::new("state", &[&DEFAULTS, &ROUTER, &ENDPOINT, &LINK, &LINK_STATE, &FORWARDING])
};

section! {
    /// Defaults of links.
    pub struct Defaults in DEFAULTS = "defaults" {
        /// Rate of a link.
        rate: BitRate [RATE] or "10 Gbit/s",
        /// Delay of a link: propagation, and processing in the receiving router.
        delay: Nanos [DELAY] or "1 us",
        /// Random loss on a link, of emulated networks. A list of two has a probability for each direction: from the
        /// endpoint or the first router, and to it.
        loss: [LossRate; 2] [LossRates] or "no loss",
        /// Jitter of a link, of emulated networks: delays vary by up to this much around the delay, at most by the delay
        /// itself. Packets keep their order.
        jitter: Nanos [DELAY] or "none",
    }
}

section! {
    /// A router (a switch). Routers are numbered in file order.
    pub struct Router in ROUTER = ["router"] max 1000000 {
        /// Name, unique among routers and endpoints.
        name: String [NAME] needed,
    }
}

section! {
    /// An endpoint (a host) with one link to a router. Endpoints are numbered in file order, and so are the ports of a
    /// router to its endpoints, which come first.
    pub struct Endpoint in ENDPOINT = ["endpoint"] max 1000000 {
        /// Name, unique among routers and endpoints.
        name: String [NAME] needed,
        /// Router at the other end of its link.
        router: String [NAME] needed,
        /// Rate of its link.
        rate: BitRate [RATE] or "that of [defaults]",
        /// Delay of its link.
        delay: Nanos [DELAY] or "that of [defaults]",
        /// Random loss on its link, of emulated networks. A list of two has a probability for packets from the endpoint,
        /// and one for packets to it.
        loss: [LossRate; 2] [LossRates] or "that of [defaults]",
        /// Jitter of its link, of emulated networks, at most the delay.
        jitter: Nanos [DELAY] or "that of [defaults]",
        /// MAC address.
        mac: MacAddress [MAC] or "derived from its number",
        /// IPv4 address.
        ip: Ipv4Addr [IP] or "derived from its number",
        /// IPv6 address. Ports of packets are inferred from MAC addresses, so flows of both versions are measured without it.
        ipv6: Ipv6Addr [IPV6] or "none",
        /// Name that the router gives to the port of this endpoint, unique at the router. Not p and a number.
        port: String [PORT_NAME] or "none",
    }
}

section! {
    /// A link between two routers. Parallel links are allowed.
    pub struct Link in LINK = ["link"] max 1000000 {
        /// The two routers.
        between: Vec<String> [BETWEEN] needed,
        /// Names that the two routers give to their ports of the link, each unique at its router. Not p and a number.
        ports: Vec<String> [PORT_NAMES] or "none",
        /// Rate of the link.
        rate: BitRate [RATE] or "that of [defaults]",
        /// Delay of the link.
        delay: Nanos [DELAY] or "that of [defaults]",
        /// Random loss on the link, of emulated networks. A list of two has a probability for packets from the first
        /// router of between to the second, and one for packets back.
        loss: [LossRate; 2] [LossRates] or "that of [defaults]",
        /// Jitter of the link, of emulated networks, at most the delay.
        jitter: Nanos [DELAY] or "that of [defaults]",
    }
}

section! {
    /// Link state. Shortest paths avoid links that are down, table entries do not.
    pub struct LinkStates in LINK_STATE = "link_state" {
        /// Links that are down, each named by a port at either end: its number, as in "tor0:p3", or its name, as in
        /// "tor0:Ethernet4".
        down: Vec<String> [PORTS] or "none: all links are up",
    }
}

section! {
    /// Forwarding state. Files for `thalweg serve` require this section.
    pub struct Rules in FORWARDING = "forwarding" lists [ENTRIES] {
        /// "ecmp": table entries, then shortest paths by a known hash of the flow; "tables": table entries alone.
        kind: RulesKind [KIND] or "none: required",
        /// Seed of the hash. Required with "ecmp", not allowed with "tables".
        seed: u64 [SEED] or "none",
        /// Whether the last router replaces shadow addresses by base addresses.
        write_back: bool [Boolean] default "true",
    }
}

section! {
    /// Entries of forwarding tables. They take precedence over ECMP.
    pub struct TableEntry in ENTRIES = ["entries"] max 1000000 {
        /// Router that has the entry.
        router: String [NAME] needed,
        /// Destination address: a base address or a shadow address of an endpoint.
        mac: MacAddress [SHADOW_MAC] needed,
        /// Number of the output port, from 0 in the order of the router's links: those to endpoints, then those to routers.
        port: u16 [PORT] or "port_name is set",
        /// Name of the output port, as in the keys port and ports of endpoints and links, instead of its number.
        port_name: String [PORT_NAME] or "port is set",
    }
}

/// The kind of forwarding state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulesKind {
    /// ECMP over shortest paths, after table entries.
    Ecmp,
    /// Table entries alone.
    Tables,
}

impl FromStr for RulesKind {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "ecmp" => Ok(RulesKind::Ecmp),
            "tables" => Ok(RulesKind::Tables),
            _ => Err("expected ecmp or tables"),
        }
    }
}

/// The description of a list of ports, in messages.
pub(crate) const EXPECTED_PORTS: &str = "ports of routers in quotes, as in [\"tor0:p3\"]";

const RATE: Parsed<BitRate> = parsed("a rate such as \"10gbit/s\"");
const DELAY: Parsed<Nanos> = parsed("a time such as \"1us\"");
const MAC: Parsed<MacAddress> = parsed("an address such as \"02:00:00:00:00:01\"");
const SHADOW_MAC: Parsed<MacAddress> = parsed("an address such as \"02:54:57:01:00:00\"");
const IP: Parsed<Ipv4Addr> = parsed("an IPv4 address such as \"192.168.0.1\"");
const IPV6: Parsed<Ipv6Addr> = parsed("an IPv6 address such as \"2001:db8::1\"");
const KIND: Parsed<RulesKind> = parsed("\"ecmp\" or \"tables\"");
const NAME: AnyText = AnyText("a name in quotes");
const BETWEEN: AnyTexts =
    AnyTexts { expected: "the names of two routers, as in [\"tor0\", \"agg0\"]", count: Some(2) };
const PORT_NAME: AnyText = AnyText("a port name in quotes, as in \"Ethernet4\"");
const PORT_NAMES: AnyTexts =
    AnyTexts { expected: "the names of two ports, as in [\"Ethernet49\", \"Ethernet1\"]", count: Some(2) };
const PORTS: AnyTexts = AnyTexts { expected: EXPECTED_PORTS, count: None };
const SEED: Integer = Integer("an integer of at least 0");
const PORT: Integer = Integer("a port number, from 0");

/// Any text.
struct AnyText(&'static str);

impl Kind for AnyText {
    fn form(&self) -> Form {
        Form::Text
    }

    fn expected(&self) -> String {
        self.0.to_owned()
    }

    fn expected_in_file(&self) -> String {
        self.expected()
    }

    fn schema(&self) -> Value {
        json!({ "type": "string" })
    }
}

impl Reads<String> for AnyText {
    fn read(&self, literal: &Literal) -> Option<String> {
        Some(literal.text().into_owned())
    }
}

/// A list of texts; `count` is their number, if it is fixed.
struct AnyTexts {
    expected: &'static str,
    count: Option<usize>,
}

impl Kind for AnyTexts {
    fn form(&self) -> Form {
        Form::List
    }

    fn expected(&self) -> String {
        self.expected.to_owned()
    }

    fn schema(&self) -> Value {
        let mut schema = json!({ "type": "array", "items": { "type": "string" } });
        if let Some(count) = self.count {
            (schema["minItems"], schema["maxItems"]) = (json!(count), json!(count));
        }
        schema
    }
}

impl Reads<Vec<String>> for AnyTexts {
    fn read(&self, literal: &Literal) -> Option<Vec<String>> {
        let texts = literal.texts();
        self.count.is_none_or(|count| count == texts.len()).then(|| texts.to_vec())
    }
}

/// An integer of at least zero.
struct Integer(&'static str);

impl Kind for Integer {
    fn form(&self) -> Form {
        Form::Integer
    }

    fn expected(&self) -> String {
        self.0.to_owned()
    }

    fn schema(&self) -> Value {
        json!({ "type": "integer", "minimum": 0 })
    }
}

impl<T: FromStr> Reads<T> for Integer {
    fn read(&self, literal: &Literal) -> Option<T> {
        literal.text().parse().ok()
    }
}

const INTRODUCTION: &str = "\
# Topology files

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->

A topology file describes endpoints, routers and links, in [TOML](https://toml.io) or JSON. For `thalweg serve`
(`topology` in `[network]`, and `PUT /v1/topology`) it also needs the section `[forwarding]`, and `[link_state]` if links
are down. Files for experiments and for the lab have neither.

Examples to start from:

| file | network |
|---|---|
| [leaf-spine.toml](../../examples/topologies/leaf-spine.toml) | leaves and spines with equal-cost paths, port names, IPv6, a link that is down |
| [mac-table-switch.toml](../../examples/topologies/mac-table-switch.toml) | one switch that forwards by its MAC address table |
| [open-vswitch.toml](../../examples/topologies/open-vswitch.toml) | three bridges of Open vSwitch, imported |

`thalweg topology import` creates a file from LLDP neighbours and from Open vSwitch
([command line](command-line.md#thalweg-topology-import)).

**Addresses.** The ports that a packet used are inferred from its MAC addresses, for IPv4 and IPv6 alike. So give every host, and every
gateway behind which others are, the MAC address that its frames have at the monitored switch. A host without `mac` has a derived address of the form
`02:54:57:00:EE:EE`, where `EEEE` is its number, and `10.0.0.1` plus this number as `ip`. `02:54:57:AA:EE:EE` are its shadow addresses, by which a controller
reroutes. Other addresses with the prefix `02:54:57` are refused.

**Ports.** The ports of a router are numbered from 0 in file order: first those to endpoints, then those to routers. `tor0:p3` is port 3 of `tor0`.
Where the file has the switch's own names of ports (`port`, `ports`), the API returns them as `port_name`, and `down` and `entries` accept
them. With `actuator = \"openflow\"`, port number N is OpenFlow port N + 1.

**Forwarding.** With `kind = \"tables\"` packets follow the entries alone, and the output port of a packet without an entry is unknown. With `kind = \"ecmp\"` packets without an entry follow
one of the shortest paths over links that are up, chosen by the hash of thalweg's emulator and lab with `seed`. Switches of other makes have other hashes. Describe those by tables.

In JSON the same sections are members of an object, `{\"router\": [{\"name\": \"tor0\"}, ...], ...}`.
`thalweg check FILE` reports every problem of a file.

```toml
[[router]]
name = \"tor0\"

[[router]]
name = \"agg0\"

[[endpoint]]
name = \"h0\"
router = \"tor0\"
rate = \"1gbit/s\"

[[link]]
between = [\"tor0\", \"agg0\"]

[forwarding]
kind = \"ecmp\"
seed = 1
```
";

/// Returns the text of `docs/reference/topology-file.md`.
pub fn reference() -> String {
    reference_of(&STATE, INTRODUCTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_documented() {
        TOPOLOGY.check();
        STATE.check();
    }

    #[test]
    fn the_example_of_the_reference_is_valid() {
        let page = reference();
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let (text, _) = rest.split_once("```").unwrap();
        assert!(crate::NetworkState::from_toml(text, "example.toml").is_ok());
    }
}
