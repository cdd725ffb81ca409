//! Flow files of other simulators, told apart by their first line.
//!
//! | simulator | file |
//! |---|---|
//! | ns-3 models of data centres (HPCC and its descendants) | the number of flows, then lines `SOURCE DESTINATION PRIORITY PORT BYTES START` or, without the port, five fields; START in seconds. Priority and port are not used |
//! | htsim | `Nodes N`, `Connections N`, then lines `SOURCE->DESTINATION id I start T size BYTES`, T in picoseconds, in any order after the arrow; without a size the flow has no end |
//!
//! Connections of htsim that wait for others (`trigger`) are refused: they would start at a wrong time.

use thalweg_wire::{Nanos, Timestamp};

use super::text::{FlowFileError, Line, significant};
use crate::workloads::{FlowStart, UNBOUNDED};

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foreign {
    Ns3,
    Htsim,
}

impl Foreign {
    /// Returns the kind of a file by its first significant line; `None` if it is ours.
    pub(super) fn of(text: &str) -> Option<Foreign> {
        let (_, first) = significant(text).next()?;
        let is_number = |field: &str| field.parse::<u64>().is_ok();
        match first.split_whitespace().next()? {
            "Nodes" | "Connections" => Some(Foreign::Htsim),
            _ if first.contains("->") => Some(Foreign::Htsim),
            _ if !first.contains(',') && first.split_whitespace().all(is_number) => Some(Foreign::Ns3),
            _ => None,
        }
    }

    /// Reads the flows.
    pub(super) fn flows(self, text: &str, endpoints: usize) -> Result<Vec<FlowStart>, FlowFileError> {
        match self {
            Foreign::Ns3 => ns3(text, endpoints),
            Foreign::Htsim => htsim(text, endpoints),
        }
    }
}

fn ns3(text: &str, endpoints: usize) -> Result<Vec<FlowStart>, FlowFileError> {
    let mut lines = significant(text);
    let Some((number, first)) = lines.next() else { return Ok(Vec::new()) };
    let line = Line { number, endpoints };
    let expected: usize = line.field("number of flows", first, "a number alone", |text| text.parse().ok())?;
    let (mut flows, mut last) = (Vec::new(), number);
    for (number, row) in lines {
        let line = Line { number, endpoints };
        let fields: Vec<&str> = row.split_whitespace().collect();
        let (from, to, bytes, start) = match fields[..] {
            [from, to, _, _, bytes, start] | [from, to, _, bytes, start] => (from, to, bytes, start),
            _ => {
                return Err(
                    line.foreign_fields(fields.len(), "source destination priority [port] bytes start")
                );
            }
        };
        let at = line.field("start", start, "seconds", seconds)?;
        flows.push(line.start(from, to, at, size(&line, bytes)?)?);
        last = number;
    }
    match flows.len() == expected {
        true => Ok(flows),
        false => Err(FlowFileError::Count { line: last, expected, found: flows.len() }),
    }
}

fn htsim(text: &str, endpoints: usize) -> Result<Vec<FlowStart>, FlowFileError> {
    let mut flows = Vec::new();
    for (number, row) in significant(text) {
        let line = Line { number, endpoints };
        let mut words = row.split_whitespace();
        let Some(first) = words.next() else { continue };
        if matches!(first, "Nodes" | "Connections") {
            continue;
        }
        let Some((from, to)) = first.split_once("->") else {
            return Err(line.foreign_fields(1, "source->destination id N start T size BYTES"));
        };
        let (mut at, mut bytes) = (Timestamp(0), UNBOUNDED);
        while let Some(name) = words.next() {
            let value = words.next().unwrap_or_default();
            match name {
                "start" => at = line.field("start", value, "picoseconds", picoseconds)?,
                "size" => bytes = size(&line, value)?,
                "id" | "prio" | "priority" => {}
                _ => {
                    return line.field(
                        "word",
                        name,
                        "id, start, size or prio; triggers are not supported",
                        |_| None,
                    );
                }
            }
        }
        flows.push(line.start(from, to, at, bytes)?);
    }
    Ok(flows)
}

fn size(line: &Line, text: &str) -> Result<u64, FlowFileError> {
    line.field("bytes", text, "a number of at least 1", |text| text.parse().ok().filter(|&bytes| bytes > 0))
}

fn seconds(text: &str) -> Option<Timestamp> {
    format!("{text}s").parse().ok().map(|Nanos(nanos)| Timestamp(nanos))
}

/// A time in picoseconds, rounded down to nanoseconds.
fn picoseconds(text: &str) -> Option<Timestamp> {
    text.parse::<u64>().ok().map(|picoseconds| Timestamp(picoseconds / 1000))
}

#[cfg(test)]
mod tests {
    use thalweg_network::EndpointId;

    use super::super::Schedule;
    use super::*;

    fn flow(at: u64, source: u16, destination: u16, bytes: u64) -> FlowStart {
        FlowStart {
            at: Timestamp(at),
            source: EndpointId(source),
            destination: EndpointId(destination),
            bytes,
            dscp: 0,
        }
    }

    #[test]
    fn files_of_ns3_and_htsim_give_the_same_flows() {
        let expected = [flow(0, 0, 1, 1000), flow(2_000_001_500, 3, 2, 200_000)];
        for text in [
            "2\n0 1 3 100 1000 0\n3 2 3 100 200000 2.0000015\n",
            "# flows\n2\n\n0 1 3 1000 0\n3 2 3 200000 2.0000015",
            "Nodes 4\nConnections 2\n0->1 id 1 start 0 size 1000\n3->2 id 2 size 200000 start 2000001500999\n",
            "0->1 size 1000\n3->2 id 2 start 2000001500000 size 200000 prio 1",
        ] {
            assert_eq!(Schedule::from_text(text, 4).unwrap().flows(), expected, "{text}");
        }
        let forever = Schedule::from_text("Nodes 2\n1->0 id 1 start 5000", 2).unwrap();
        assert_eq!(forever.flows(), [flow(5, 1, 0, UNBOUNDED)]);
        assert!(Schedule::from_text("0\n", 2).unwrap().flows().is_empty());
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, expected) in [
            ("2\n0 1 3 100 1000 0\n", "line 2: 1 flows: expected 2, as the first line says"),
            ("1\n0 1 3\n", "line 2: 3 fields: expected source destination priority [port] bytes start"),
            ("1\n0 9 3 100 1000 0\n", "line 2: destination `9`: expected an endpoint below 4"),
            ("1\n0 0 3 100 1000 0\n", "line 2: a flow from h0 to itself"),
            ("1\n0 1 3 100 0 0\n", "line 2: bytes `0`: expected a number of at least 1"),
            (
                "Nodes 4\n0->1 id 1 trigger 3 size 5",
                "line 2: word `trigger`: expected id, start, size or prio",
            ),
            ("Nodes 4\n0 1", "line 2: 1 fields: expected source->destination id N start T size BYTES"),
            ("0->1 start x", "line 1: start `x`: expected picoseconds"),
        ] {
            let error = Schedule::from_text(text, 4).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
