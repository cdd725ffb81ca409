//! A topology back to text.

use std::fmt::{self, Display, Write};

use thalweg_wire::{BitRate, Nanos};

use crate::address;
use crate::topology::{LinkSpec, Node, Topology};

/// A section of a file, or several of the same name.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// Whether there may be several.
    pub(crate) is_list: bool,
    pub(crate) rows: Vec<Row>,
}

/// Keys with what they are set to.
pub(crate) struct Row(pub(crate) Vec<(&'static str, Cell)>);

/// What a key is set to.
pub(crate) enum Cell {
    Text(String),
    Integer(u64),
    Boolean(bool),
    Texts(Vec<String>),
    Rows(Vec<Row>),
}

impl Topology {
    /// As the text of a file that [`from_toml`](Topology::from_toml) reads as the same topology.
    pub fn to_toml(&self) -> String {
        toml_text(&self.parts())
    }

    /// As a text that [`from_json`](Topology::from_json) reads as the same topology.
    pub fn to_json(&self) -> String {
        json_text(&self.parts())
    }

    /// The sections of a file of this topology.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let LinkSpec { rate, delay } = LinkSpec::default();
        let text = |text: &str| Cell::Text(text.to_owned());
        let defaults = vec![("rate", shown(ExactRate(rate))), ("delay", shown(ExactDelay(delay)))];
        let routers = self.routers().iter().map(|router| Row(vec![("name", text(&router.name))]));
        let endpoints = self.endpoint_ids().map(|id| {
            let endpoint = &self.endpoints()[id.index()];
            let router = self.name(Node::Router(self.router_of(id)));
            let mut row = vec![("name", text(&endpoint.name)), ("router", text(router))];
            row.extend(spec_cells(self.links()[id.index()].spec()));
            row.extend((endpoint.mac != address::default_mac(id)).then(|| ("mac", shown(endpoint.mac))));
            row.extend((endpoint.ip != address::default_ip(id)).then(|| ("ip", shown(endpoint.ip))));
            Row(row)
        });
        let links = self.links()[self.endpoints().len()..].iter().map(|link| {
            let ends = link.ends.map(|end| self.name(end.node).to_owned());
            let mut row = vec![("between", Cell::Texts(ends.into()))];
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

/// What differs from the defaults.
fn spec_cells(spec: LinkSpec) -> impl Iterator<Item = (&'static str, Cell)> {
    let defaults = LinkSpec::default();
    let rate = (spec.rate != defaults.rate).then(|| ("rate", shown(ExactRate(spec.rate))));
    let delay = (spec.delay != defaults.delay).then(|| ("delay", shown(ExactDelay(spec.delay))));
    rate.into_iter().chain(delay)
}

fn shown(value: impl Display) -> Cell {
    Cell::Text(value.to_string())
}

/// Sections as TOML.
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

/// Sections as JSON, a row a line.
pub(crate) fn json_text(parts: &[Part]) -> String {
    let part = |part: &Part| match (part.is_list, part.rows.as_slice()) {
        (false, [row]) => format!("  \"{}\": {}", part.name, JsonRow(row, "  ")),
        (_, rows) => format!("  \"{}\": {}", part.name, JsonRows(rows, "  ")),
    };
    format!("{{\n{}\n}}\n", parts.iter().map(part).collect::<Vec<_>>().join(",\n"))
}

const INFALLIBLE: &str = "a string takes all that is written";

/// A cell as TOML.
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

/// A row as JSON, so far to the right.
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

/// Rows as JSON, each on its line, which is further to the right than this.
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
