//! Links and their names.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{CollectorResponse, Rate, UtcTime};

/// All links.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Links {
    /// Which collectors responded, and when.
    pub responses: Vec<CollectorResponse>,
    /// Both directions of all links of the monitored switches, by switch, port and direction.
    pub links: Vec<Link>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Link {
    /// Name: `SWITCH:pPORT:in|out`, such as `tor0:p3:out`.
    pub link: String,
    /// The collector that monitors the link.
    pub collector: String,
    /// Name of the switch.
    pub switch: String,
    /// Port of the switch.
    pub port: u16,
    /// The name that the switch gives to the port; null if the topology does not have it.
    pub port_name: Option<String>,
    /// Whether packets enter or leave the switch.
    pub direction: DirectionName,
    /// Name of the node at the other end; null if unknown.
    pub peer: Option<String>,
    /// Capacity in bits per second.
    pub capacity_bps: u64,
    /// The sum of the current rates of the flows on the link, at most the capacity, and its bounds. The rates are of
    /// different spans, so it varies; `smoothed_bps` is steadier.
    #[serde(flatten)]
    pub rate: Rate,
    /// The smoothed rate in bits per second, at most the capacity. `thalweg top` and the metrics show this one.
    pub smoothed_bps: f64,
    /// The greatest `smoothed_bps` within the last one to two minutes of packet time, so that a reader who comes once a minute misses none.
    pub peak_bps: f64,
    /// `smoothed_bps` divided by `capacity_bps`.
    pub utilisation: f64,
    /// Flow directions with a rate above zero at this moment. It is 0 when all have just stopped, while `smoothed_bps` still decreases.
    pub flows: u32,
    /// When the rate last changed; null before the first flow.
    pub changed: Option<UtcTime>,
}

/// Direction of a link, seen from its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DirectionName {
    /// Packets enter the switch.
    In,
    /// Packets leave the switch.
    Out,
}

/// Name of one direction of a link: `tor0:p3:out`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkName {
    /// Name of the switch.
    pub switch: String,
    /// Port of the switch.
    pub port: u16,
    /// Its direction.
    pub direction: DirectionName,
}

/// Text that is not the name of a link.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("invalid link name: expected SWITCH:pPORT:in or SWITCH:pPORT:out, such as tor0:p3:out")]
pub struct ParseLinkNameError;

impl LinkName {
    /// Creates the name of one direction of the link at a switch port.
    pub fn new(switch: &str, port: u16, direction: DirectionName) -> LinkName {
        LinkName { switch: switch.to_owned(), port, direction }
    }
}

impl fmt::Display for DirectionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DirectionName::In => "in",
            DirectionName::Out => "out",
        })
    }
}

impl fmt::Display for LinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:p{}:{}", self.switch, self.port, self.direction)
    }
}

impl FromStr for LinkName {
    type Err = ParseLinkNameError;

    fn from_str(text: &str) -> Result<Self, ParseLinkNameError> {
        let (rest, direction) = text.rsplit_once(':').ok_or(ParseLinkNameError)?;
        let (switch, port) = rest.rsplit_once(":p").ok_or(ParseLinkNameError)?;
        let direction = match direction {
            "in" => DirectionName::In,
            "out" => DirectionName::Out,
            _ => return Err(ParseLinkNameError),
        };
        let is_number = !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
        let port = port.parse().ok().filter(|_| is_number).ok_or(ParseLinkNameError)?;
        match switch.is_empty() {
            true => Err(ParseLinkNameError),
            false => Ok(LinkName::new(switch, port, direction)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_names_round_trip() {
        for switch in ["tor0", "rack 7", "a:p1:in", ":", "stör"] {
            for (port, direction) in [(0, DirectionName::In), (1_023, DirectionName::Out)] {
                let name = LinkName::new(switch, port, direction);
                assert_eq!(name.to_string().parse(), Ok(name));
            }
        }
    }

    #[test]
    fn invalid_link_names_are_rejected() {
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
