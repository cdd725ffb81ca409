//! A topology back to text.

use std::fmt::{self, Display, Write};

use thalweg_wire::{BitRate, Nanos};
use toml::Value;

use crate::address;
use crate::topology::{LinkSpec, Node, Topology};

impl Topology {
    /// As the text of a file that [`from_toml`](Topology::from_toml) reads as the same topology.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        self.write_toml(&mut text).expect("a string takes all that is written");
        text
    }

    fn write_toml(&self, text: &mut String) -> fmt::Result {
        let LinkSpec { rate, delay } = LinkSpec::default();
        writeln!(text, "[defaults]\nrate = \"{}\"\ndelay = \"{}\"", ExactRate(rate), ExactDelay(delay))?;
        for router in self.routers() {
            writeln!(text, "\n[[router]]\nname = {}", quoted(&router.name))?;
        }
        for id in self.endpoint_ids() {
            let endpoint = &self.endpoints()[id.index()];
            let router = self.name(Node::Router(self.router_of(id)));
            writeln!(text, "\n[[endpoint]]\nname = {}\nrouter = {}", quoted(&endpoint.name), quoted(router))?;
            write_spec(text, self.links()[id.index()].spec())?;
            if endpoint.mac != address::default_mac(id) {
                writeln!(text, "mac = \"{}\"", endpoint.mac)?;
            }
            if endpoint.ip != address::default_ip(id) {
                writeln!(text, "ip = \"{}\"", endpoint.ip)?;
            }
        }
        for link in &self.links()[self.endpoints().len()..] {
            let [a, b] = link.ends.map(|end| quoted(self.name(end.node)));
            writeln!(text, "\n[[link]]\nbetween = [{a}, {b}]")?;
            write_spec(text, link.spec())?;
        }
        Ok(())
    }
}

/// Writes what differs from the defaults.
fn write_spec(text: &mut String, spec: LinkSpec) -> fmt::Result {
    let defaults = LinkSpec::default();
    if spec.rate != defaults.rate {
        writeln!(text, "rate = \"{}\"", ExactRate(spec.rate))?;
    }
    if spec.delay != defaults.delay {
        writeln!(text, "delay = \"{}\"", ExactDelay(spec.delay))?;
    }
    Ok(())
}

fn quoted(name: &str) -> impl Display {
    Value::String(name.to_owned())
}

/// A rate in the largest unit of which it is a whole number. (Its own `Display` rounds.)
struct ExactRate(BitRate);

impl Display for ExactRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] = [
            (1_000_000_000_000, "tbit/s"),
            (1_000_000_000, "gbit/s"),
            (1_000_000, "mbit/s"),
            (1_000, "kbit/s"),
            (1, "bit/s"),
        ];
        write_whole(f, self.0.0, &UNITS)
    }
}

/// A length of time in the largest unit of which it is a whole number.
struct ExactDelay(Nanos);

impl Display for ExactDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
        write_whole(f, self.0.0, &UNITS)
    }
}

fn write_whole(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    let (unit, name) = units
        .iter()
        .find(|&&(unit, _)| value >= unit && value.is_multiple_of(unit))
        .unwrap_or(&units[units.len() - 1]);
    write!(f, "{}{name}", value / unit)
}
