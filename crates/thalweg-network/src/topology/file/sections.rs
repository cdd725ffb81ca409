//! The sections of a topology's file and of a state's, each declared once.

use std::net::Ipv4Addr;
use std::str::FromStr;

use serde_json::{Value, json};
use thalweg_config::kind::{Boolean, Kind, Parsed, Reads, parsed};
use thalweg_config::{Form, Given, Schema, reference as reference_of, section};
use thalweg_wire::{BitRate, Nanos};

use crate::address::MacAddress;

/// What a topology's file may say.
pub static TOPOLOGY: Schema =
    Schema { may_be_json: true, ..Schema::new("topology", &[&DEFAULTS, &ROUTER, &ENDPOINT, &LINK]) };

/// What a state's file may say: that of a topology, and more.
pub static STATE: Schema = Schema {
    may_be_json: true,
    ..Schema::new("state", &[&DEFAULTS, &ROUTER, &ENDPOINT, &LINK, &LINK_STATE, &FORWARDING])
};

section! {
    /// What holds for links that say nothing else.
    pub struct Defaults in DEFAULTS = "defaults" {
        /// Rate of a link.
        rate: BitRate [RATE] or "10 Gbit/s",
        /// Delay of a link: propagation, and what a switch takes.
        delay: Nanos [DELAY] or "1 us",
    }
}

section! {
    /// A router, or a switch. They are numbered in the order of the file.
    pub struct Router in ROUTER = ["router"] most 1000000 {
        /// Its name, which no other router or endpoint has.
        name: String [NAME] needed,
    }
}

section! {
    /// An endpoint with one link to a router. They are numbered in the order of the file; so are the first ports of their
    /// routers.
    pub struct Endpoint in ENDPOINT = ["endpoint"] most 1000000 {
        /// Its name, which no other router or endpoint has.
        name: String [NAME] needed,
        /// The router at the other end of its link.
        router: String [NAME] needed,
        /// Rate of its link.
        rate: BitRate [RATE] or "that of [defaults]",
        /// Delay of its link.
        delay: Nanos [DELAY] or "that of [defaults]",
        /// Its MAC address.
        mac: MacAddress [MAC] or "one that follows from its number",
        /// Its IPv4 address.
        ip: Ipv4Addr [IP] or "one that follows from its number",
    }
}

section! {
    /// A link between two routers. Two routers may have several.
    pub struct Link in LINK = ["link"] most 1000000 {
        /// Its two ends.
        between: Vec<String> [BETWEEN] needed,
        /// Its rate.
        rate: BitRate [RATE] or "that of [defaults]",
        /// Its delay.
        delay: Nanos [DELAY] or "that of [defaults]",
    }
}

section! {
    /// Which links are up.
    pub struct LinkStates in LINK_STATE = "link_state" {
        /// Links that are down, each by a port at either end.
        down: Vec<String> [PORTS] or "none: all are up",
    }
}

section! {
    /// Which way packets go. The file of a state has to have it.
    pub struct Rules in FORWARDING = "forwarding" lists [ENTRIES] {
        /// "ecmp": shortest paths, by a known hash of the flow; "tables": by the entries alone.
        kind: RulesKind [KIND] or "none: it must be set",
        /// Seed of the hash. With "ecmp" it must be set.
        seed: u64 [SEED] or "none, with \"tables\"",
        /// Whether the last switch writes base addresses back over shadow addresses.
        write_back: bool [Boolean] default "true",
    }
}

section! {
    /// Entries of forwarding tables: they go before ECMP, and are all there is with "tables".
    pub struct TableEntry in ENTRIES = ["entries"] most 1000000 {
        /// The router whose table it is in.
        router: String [NAME] needed,
        /// Destination address: an endpoint's base address, or one of its shadow addresses.
        mac: MacAddress [SHADOW_MAC] needed,
        /// The port that packets leave by.
        port: u16 [PORT] needed,
    }
}

/// By what packets are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulesKind {
    /// Equal-cost paths.
    Ecmp,
    /// Tables.
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

/// What is expected of ports of routers.
pub(crate) const A_PORT: &str = "ports of routers in quotes, as in [\"tor0:p3\"]";

const RATE: Parsed<BitRate> = parsed("a rate such as \"10gbit/s\"");
const DELAY: Parsed<Nanos> = parsed("a length of time such as \"1us\"");
const MAC: Parsed<MacAddress> = parsed("an address such as \"02:00:00:00:00:01\"");
const SHADOW_MAC: Parsed<MacAddress> = parsed("an address such as \"02:54:57:01:00:00\"");
const IP: Parsed<Ipv4Addr> = parsed("an IPv4 address such as \"192.168.0.1\"");
const KIND: Parsed<RulesKind> = parsed("\"ecmp\" or \"tables\"");
const NAME: AnyText = AnyText("a name in quotes");
const BETWEEN: AnyTexts =
    AnyTexts { expected: "two names of routers, as in [\"tor0\", \"agg0\"]", count: Some(2) };
const PORTS: AnyTexts = AnyTexts { expected: A_PORT, count: None };
const SEED: Integer = Integer("a whole number");
const PORT: Integer = Integer("the number of a port, from 0");

/// Any text.
struct AnyText(&'static str);

impl Kind for AnyText {
    fn form(&self) -> Form {
        Form::Text
    }

    fn expected(&self) -> String {
        self.0.to_owned()
    }

    fn in_file(&self) -> String {
        self.expected()
    }

    fn schema(&self) -> Value {
        json!({ "type": "string" })
    }
}

impl Reads<String> for AnyText {
    fn read(&self, given: &Given) -> Option<String> {
        Some(given.text().into_owned())
    }
}

/// A list of any texts, perhaps of so many.
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
    fn read(&self, given: &Given) -> Option<Vec<String>> {
        let texts = given.texts();
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
    fn read(&self, given: &Given) -> Option<T> {
        given.text().parse().ok()
    }
}

const INTRODUCTION: &str = "\
# Topology and state files

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test reference -->

A topology file says who is attached to whom, in [TOML](https://toml.io) or JSON. A state file says in addition which links
are down and which way packets go, in the sections `[link_state]` and `[forwarding]`. `thalweg serve` needs the state
(`topology` in `[network]`, and `PUT /v1/topology`); experiments and the lab need the topology alone.

In JSON the same sections are members of an object, `{\"router\": [{\"name\": \"tor0\"}, ...], ...}`. `thalweg check FILE`
names everything that is wrong with a file.

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

/// `docs/reference/topology-file.md`.
pub fn reference() -> String {
    reference_of(&STATE, INTRODUCTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_says_what_it_means() {
        TOPOLOGY.check();
        STATE.check();
    }

    #[test]
    fn the_example_of_the_reference_is_a_state() {
        let page = reference();
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let (text, _) = rest.split_once("```").unwrap();
        assert!(crate::NetworkState::from_toml(text, "example.toml").is_ok());
    }
}
