//! Prints topologies as TOML and JSON.

use std::fmt::{self, Display, Write};

use thalweg_wire::{BitRate, Nanos};

use crate::address;
use crate::topology::{Attachment, LinkSpec, LossRate, Node, Topology};

/// A section of a file, or a list of sections.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// Whether the section may repeat.
    pub(crate) is_list: bool,
    pub(crate) rows: Vec<Row>,
}

/// Keys and their values.
pub(crate) struct Row(pub(crate) Vec<(&'static str, Cell)>);

/// The value of a key.
pub(crate) enum Cell {
    Text(String),
    Integer(u64),
    Boolean(bool),
    Texts(Vec<String>),
    Rows(Vec<Row>),
}

impl Topology {
    /// Prints the topology in TOML, which [`from_toml`](Topology::from_toml) parses to the same topology.
    pub fn to_toml(&self) -> String {
        toml_text(&self.parts())
    }

    /// Prints the topology in JSON, which [`from_json`](Topology::from_json) parses to the same topology.
    pub fn to_json(&self) -> String {
        json_text(&self.parts())
    }

    /// Returns the sections of the file.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let LinkSpec { rate, delay, .. } = LinkSpec::default();
        let text = |text: &str| Cell::Text(text.to_owned());
        let defaults = vec![("rate", text_cell(ExactRate(rate))), ("delay", text_cell(ExactDelay(delay)))];
        let routers = self.routers().iter().map(|router| Row(vec![("name", text(&router.name))]));
        let endpoints = self.endpoint_ids().map(|id| {
            let endpoint = &self.endpoints()[id.index()];
            let router = self.name(Node::Router(self.router_of(id)));
            let mut row = vec![("name", text(&endpoint.name)), ("router", text(router))];
            row.extend(spec_cells(self.links()[id.index()].spec()));
            row.extend((endpoint.mac != address::default_mac(id)).then(|| ("mac", text_cell(endpoint.mac))));
            row.extend((endpoint.ip != address::default_ip(id)).then(|| ("ip", text_cell(endpoint.ip))));
            row.extend(endpoint.ipv6.map(|ip| ("ipv6", text_cell(ip))));
            let port = self.port_name(self.router_of(id), self.port_of(id));
            row.extend(port.map(|port| ("port", text(port))));
            Row(row)
        });
        let links = self.links()[self.endpoints().len()..].iter().map(|link| {
            let ends = link.ends.map(|end| self.name(end.node).to_owned());
            let mut row = vec![("between", Cell::Texts(ends.into()))];
            let port = |end: Attachment| match end.node {
                Node::Router(router) => self.port_name(router, end.port).map(str::to_owned),
                Node::Endpoint(_) => None,
            };
            let ports: Option<Vec<String>> = link.ends.into_iter().map(port).collect();
            row.extend(ports.map(|ports| ("ports", Cell::Texts(ports))));
            row.extend(spec_cells(link.spec()));
            Row(row)
        });
        vec![
            Part { name: "defaults", is_list: false, rows: vec![Row(defaults)] },
            Part { name: "router", is_list: true, rows: routers.collect() },
            Part { name: "endpoint", is_list: true, rows: endpoints.collect() },
            Part { name: "link", is_list: true, rows: links.collect() },
        ]
    }
}

/// Returns the values that differ from the defaults.
fn spec_cells(spec: LinkSpec) -> impl Iterator<Item = (&'static str, Cell)> {
    let defaults = LinkSpec::default();
    let rate = (spec.rate != defaults.rate).then(|| ("rate", text_cell(ExactRate(spec.rate))));
    let delay = (spec.delay != defaults.delay).then(|| ("delay", text_cell(ExactDelay(spec.delay))));
    let loss = (spec.loss != defaults.loss).then(|| ("loss", loss_cell(spec.loss)));
    let jitter = (spec.jitter != defaults.jitter).then(|| ("jitter", text_cell(ExactDelay(spec.jitter))));
    [rate, delay, loss, jitter].into_iter().flatten()
}

fn loss_cell([forth, back]: [LossRate; 2]) -> Cell {
    match forth == back {
        true => text_cell(forth),
        false => Cell::Texts(vec![forth.to_string(), back.to_string()]),
    }
}

fn text_cell(value: impl Display) -> Cell {
    Cell::Text(value.to_string())
}

/// Prints sections as TOML.
pub(crate) fn toml_text(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        let [open, close] = if part.is_list { ["[[", "]]"] } else { ["[", "]"] };
        for row in &part.rows {
            let gap = if text.is_empty() { "" } else { "\n" };
            writeln!(text, "{gap}{open}{}{close}", part.name).expect(INFALLIBLE);
            for (key, cell) in &row.0 {
                writeln!(text, "{key} = {}", Toml(cell)).expect(INFALLIBLE);
            }
        }
    }
    text
}

/// Prints sections as JSON, one row per line.
pub(crate) fn json_text(parts: &[Part]) -> String {
    let part = |part: &Part| match (part.is_list, part.rows.as_slice()) {
        (false, [row]) => format!("  \"{}\": {}", part.name, JsonRow(row, "  ")),
        (_, rows) => format!("  \"{}\": {}", part.name, JsonRows(rows, "  ")),
    };
    format!("{{\n{}\n}}\n", parts.iter().map(part).collect::<Vec<_>>().join(",\n"))
}

const INFALLIBLE: &str = "writing to a string cannot fail";

/// Displays a cell as TOML.
struct Toml<'a>(&'a Cell);

impl Display for Toml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &String| toml::Value::String(text.clone());
        match self.0 {
            Cell::Text(text) => write!(f, "{}", quoted(text)),
            Cell::Integer(integer) => write!(f, "{integer}"),
            Cell::Boolean(boolean) => write!(f, "{boolean}"),
            Cell::Texts(texts) => write!(f, "[{}]", joined(texts.iter().map(quoted))),
            Cell::Rows(rows) => {
                f.write_str("[\n")?;
                for Row(cells) in rows {
                    let pairs = cells.iter().map(|(key, cell)| format!("{key} = {}", Toml(cell)));
                    writeln!(f, "  {{ {} }},", joined(pairs))?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Displays a row as JSON, with this indentation.
struct JsonRow<'a>(&'a Row, &'a str);

impl Display for JsonRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &JsonRow(Row(cells), indent) = self;
        let quoted = |text: &String| serde_json::Value::from(text.as_str());
        let value = |cell: &Cell| match cell {
            Cell::Text(text) => quoted(text).to_string(),
            Cell::Integer(integer) => integer.to_string(),
            Cell::Boolean(boolean) => boolean.to_string(),
            Cell::Texts(texts) => format!("[{}]", joined(texts.iter().map(quoted))),
            Cell::Rows(rows) => JsonRows(rows, indent).to_string(),
        };
        write!(f, "{{{}}}", joined(cells.iter().map(|(key, cell)| format!("\"{key}\": {}", value(cell)))))
    }
}

/// Displays rows as JSON, one per line, indented further than this.
struct JsonRows<'a>(&'a [Row], &'a str);

impl Display for JsonRows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &JsonRows(rows, indent) = self;
        let inner = format!("{indent}  ");
        let lines: Vec<String> =
            rows.iter().map(|row| format!("\n{inner}{}", JsonRow(row, &inner))).collect();
        match lines.is_empty() {
            true => f.write_str("[]"),
            false => write!(f, "[{}\n{indent}]", lines.join(",")),
        }
    }
}

fn joined(items: impl Iterator<Item = impl Display>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// Displays a rate exactly, in the largest unit that divides it. (`BitRate` rounds.)
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
        write_exact(f, self.0.0, &UNITS)
    }
}

/// Displays a duration exactly, in the largest unit that divides it.
struct ExactDelay(Nanos);

impl Display for ExactDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
        write_exact(f, self.0.0, &UNITS)
    }
}

fn write_exact(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    let (unit, name) = units
        .iter()
        .find(|&&(unit, _)| value >= unit && value.is_multiple_of(unit))
        .unwrap_or(&units[units.len() - 1]);
    write!(f, "{}{name}", value / unit)
}
