//! Links, and how they are named.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Answered, Moment, Rate};

/// Links, and which collectors answered.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Links {
    /// Who answered, and when.
    pub answered: Vec<Answered>,
    /// Both directions of the links at the collectors' switches, by switch, port and way.
    pub links: Vec<Link>,
}

/// How much one direction of a link carries.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Link {
    /// Its name: `SWITCH:pPORT:WAY`, as in `tor0:p3:out`.
    pub link: String,
    /// The collector that watches it.
    pub collector: String,
    /// The switch.
    pub switch: String,
    /// Number of the switch's port.
    pub port: u16,
    /// Which way packets go through the port.
    pub way: WayName,
    /// Who is at the other end; null if that is not known.
    pub peer: Option<String>,
    /// What it can carry, in bits per second.
    pub capacity_bps: u64,
    /// Sum of the rates of its flows, on the wire, framing included, in bits per second.
    pub rate_bps: Rate,
    /// The same, smoothed.
    pub smoothed_bps: f64,
    /// `smoothed_bps` as a share of the capacity.
    pub utilisation: f64,
    /// Directions of flows with a rate above zero.
    pub flows: u32,
    /// When the sum last changed.
    pub changed: Moment,
}

/// Which way packets go through a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WayName {
    /// Into the switch.
    In,
    /// Out of the switch.
    Out,
}

/// Name of one direction of a link: `tor0:p3:out`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkName {
    /// Name of the switch.
    pub switch: String,
    /// Its port.
    pub port: u16,
    /// Which way.
    pub way: WayName,
}

/// What was typed is not the name of a link.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("not the name of a link: expected SWITCH:pPORT:WAY as in tor0:p3:out or tor0:p3:in")]
pub struct ParseLinkNameError;

impl LinkName {
    /// The name of one direction of the link at this port of a switch.
    pub fn new(switch: &str, port: u16, way: WayName) -> LinkName {
        LinkName { switch: switch.to_owned(), port, way }
    }
}

impl fmt::Display for WayName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            WayName::In => "in",
            WayName::Out => "out",
        })
    }
}

impl fmt::Display for LinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:p{}:{}", self.switch, self.port, self.way)
    }
}

impl FromStr for LinkName {
    type Err = ParseLinkNameError;

    fn from_str(text: &str) -> Result<Self, ParseLinkNameError> {
        let (rest, way) = text.rsplit_once(':').ok_or(ParseLinkNameError)?;
        let (switch, port) = rest.rsplit_once(":p").ok_or(ParseLinkNameError)?;
        let way = match way {
            "in" => WayName::In,
            "out" => WayName::Out,
            _ => return Err(ParseLinkNameError),
        };
        let is_number = !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
        let port = port.parse().ok().filter(|_| is_number).ok_or(ParseLinkNameError)?;
        match switch.is_empty() {
            true => Err(ParseLinkNameError),
            false => Ok(LinkName::new(switch, port, way)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_link_reads_back_as_itself_whatever_its_switch_is_called() {
        for switch in ["tor0", "rack 7", "a:p1:in", ":", "stör"] {
            for (port, way) in [(0, WayName::In), (1_023, WayName::Out)] {
                let name = LinkName::new(switch, port, way);
                assert_eq!(name.to_string().parse(), Ok(name));
            }
        }
    }

    #[test]
    fn what_is_not_the_name_of_a_link_is_refused() {
        for text in [
            "",
            "tor0",
            "tor0:p3",
            "tor0:3:in",
            "tor0:p3:up",
            ":p3:in",
            "tor0:p+3:in",
            "tor0:p:in",
            "tor0:p99999:in",
        ] {
            assert_eq!(text.parse::<LinkName>(), Err(ParseLinkNameError), "{text}");
        }
    }
}
