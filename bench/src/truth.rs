//! The truth about a trace, as its generator writes it (columns: `thalweg_synth::trace`).

use std::collections::HashMap;

use anyhow::Context;
use thalweg_wire::{FlowKey, Protocol, Timestamp};

/// A direction of a flow that was planted or came near to being a cheetah.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthRow {
    /// Which kind was planted, or `background`.
    pub kind: String,
    /// The direction.
    pub key: FlowKey,
    /// Time of its first packet.
    pub first: Timestamp,
    /// Time of the packet that made it a cheetah, if one did.
    pub crossed: Option<Timestamp>,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// In the order of the flows' ends.
    pub rows: Vec<TruthRow>,
}

impl Truth {
    /// Reads the CSV.
    ///
    /// # Errors
    /// If a row is not one; says which.
    pub fn parse(csv: &[u8]) -> anyhow::Result<Truth> {
        let text = std::str::from_utf8(csv).context("the truth is not text")?;
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let columns: HashMap<&str, usize> = header.iter().enumerate().map(|(n, name)| (*name, n)).collect();
        let row = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            parse_row(|name| columns.get(name).and_then(|n| cells.get(*n)).copied())
                .with_context(|| format!("not a row of the truth: {line}"))
        };
        Ok(Truth { rows: lines.map(row).collect::<anyhow::Result<_>>()? })
    }

    /// The cheetahs.
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
    fn a_row_is_found_by_the_names_of_its_columns() {
        let csv =
            format!("{HEADER}slow-start,10.0.0.1,10.0.0.2,443,5000,6,7,9\ntwo-bursts,::1,::2,1,2,6,3,\n");
        let truth = Truth::parse(csv.as_bytes()).unwrap();
        assert_eq!(truth.rows.len(), 2);
        let (row, crossed) = truth.cheetahs().next().unwrap();
        assert_eq!((row.key.to_string().as_str(), crossed.0), ("tcp 10.0.0.1:443 > 10.0.0.2:5000", 9));
    }

    #[test]
    fn a_row_that_is_none_is_named() {
        let error = Truth::parse(format!("{HEADER}background,here\n").as_bytes()).unwrap_err();
        assert!(error.to_string().contains("background,here"), "{error}");
    }
}
