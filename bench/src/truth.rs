//! The ground truth of a trace, as its generator writes it (columns: `thalweg_synth::trace`).

use std::collections::HashMap;

use anyhow::Context;
use thalweg_wire::{FlowKey, Protocol, Timestamp};

/// A direction of a flow that was planted or nearly a cheetah.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthRow {
    /// The planted kind, or `background`.
    pub kind: String,
    /// The direction.
    pub key: FlowKey,
    /// Time of its first packet.
    pub first: Timestamp,
    /// Time of the packet that made it a cheetah, if any.
    pub crossed: Option<Timestamp>,
}

/// The ground truth of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Rows in the order of the flows' ends.
    pub rows: Vec<TruthRow>,
}

impl Truth {
    /// Parses the CSV.
    ///
    /// # Errors
    /// The first invalid row.
    pub fn parse(csv: &[u8]) -> anyhow::Result<Truth> {
        let text = std::str::from_utf8(csv).context("the ground truth is not UTF-8")?;
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let columns: HashMap<&str, usize> = header.iter().enumerate().map(|(n, name)| (*name, n)).collect();
        let row = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            parse_row(|name| columns.get(name).and_then(|n| cells.get(*n)).copied())
                .with_context(|| format!("invalid row of the ground truth: {line}"))
        };
        Ok(Truth { rows: lines.map(row).collect::<anyhow::Result<_>>()? })
    }

    /// Returns the cheetahs with the time at which they crossed the threshold.
    pub fn cheetahs(&self) -> impl Iterator<Item = (&TruthRow, Timestamp)> {
        self.rows.iter().filter_map(|row| Some((row, row.crossed?)))
    }
}

fn parse_row<'a>(cell: impl Fn(&str) -> Option<&'a str>) -> Option<TruthRow> {
    let number = |name| cell(name)?.parse::<u64>().ok();
    let address = |name| cell(name)?.parse().ok();
    let protocol = Protocol(number("protocol")? as u8);
    let (src_port, dst_port) = (number("src_port")? as u16, number("dst_port")? as u16);
    Some(TruthRow {
        kind: cell("kind")?.to_owned(),
        key: FlowKey::new(address("src")?, address("dst")?, src_port, dst_port, protocol)?,
        first: Timestamp(number("first_ns")?),
        crossed: match cell("crossed_ns")? {
            "" => None,
            nanos => Some(Timestamp(nanos.parse().ok()?)),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "kind,src,dst,src_port,dst_port,protocol,first_ns,crossed_ns\n";

    #[test]
    fn columns_are_found_by_name() {
        let csv =
            format!("{HEADER}slow-start,10.0.0.1,10.0.0.2,443,5000,6,7,9\ntwo-bursts,::1,::2,1,2,6,3,\n");
        let truth = Truth::parse(csv.as_bytes()).unwrap();
        assert_eq!(truth.rows.len(), 2);
        let (row, crossed) = truth.cheetahs().next().unwrap();
        assert_eq!((row.key.to_string().as_str(), crossed.0), ("tcp 10.0.0.1:443 > 10.0.0.2:5000", 9));
    }

    #[test]
    fn invalid_row_is_quoted_in_the_error() {
        let error = Truth::parse(format!("{HEADER}background,here\n").as_bytes()).unwrap_err();
        assert!(error.to_string().contains("background,here"), "{error}");
    }
}
