//! Generates `docs/reference/flow-records.md` from the tables.

use std::fmt::Write;

use thalweg_wire::flow_export::{CounterBatch, RecordBatch};

use super::connections::ConnectionBatch;
use super::host_metrics::HostMetricBatch;
use super::hosts::HostBatch;
use super::transfers::TransferBatch;
use super::{Column, Dataset};

const INTRODUCTION: &str = "\
# Flow records in Parquet

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-records reference -->

Flow records that were received from routers or metered locally. Files are `DIR/DATASET/date=2026-11-22/hour=13/NAME.parquet`:
hive partitions by the hour (UTC) of reception, so that engines read only the hours that a query needs. A `*.parquet` file is always
complete: it is written under a temporary name that starts with a dot, then renamed. `DIR/spool` holds records that are not in a file
yet; only the collector uses it.

No column has nulls. If an exporter does not send a field, its column has the value under \"if missing\". Addresses are text: dotted
decimal, or RFC 5952 for IPv6. Compression is zstd.
";

const TRANSFERS: &str = "

# Data transfers

`thalweg transfers agent` reports these datasets to a daemon with `[transfers]`, which stores them in the same way.
";

/// Returns the page.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    page += "\n## `flows`\n\nElements are IPFIX information elements with their numbers in IANA's registry. NetFlow v9 uses the same numbers up to 127.\n\n";
    page += "| column | type | unit | meaning | if missing | elements |\n|---|---|---|---|---|---|\n";
    RecordBatch::columns().iter().for_each(|column| flows_line(&mut page, column));
    page += "\n## `interface-counters`\n\nInterface counters that sFlow agents send (sFlow v5, `if_counters`). The meaning names the object of RFC 2863. Counters\n";
    page += "start at a time that the agent chooses, and wrap.\n\n";
    page += "| column | type | unit | meaning | if missing |\n|---|---|---|---|---|\n";
    CounterBatch::columns().iter().for_each(|column| counters_line(&mut page, column));
    page += TRANSFERS;
    dataset::<TransferBatch>(
        &mut page,
        "What the logs of transfer programs say: a row for each transfer and each host that logged it.",
    );
    dataset::<HostBatch>(
        &mut page,
        "Parameters of transfer hosts: a row for each start of an agent, and for each day.",
    );
    dataset::<HostMetricBatch>(
        &mut page,
        "Load of transfer hosts: a row for each second of a transfer. Counts are of the interval.",
    );
    dataset::<ConnectionBatch>(
        &mut page,
        "TCP connections of transfers, from `struct tcp_info` of Linux and `/proc`: a row for each connection and second. \
         Bytes, segments and times are of the interval. If both hosts have an agent, each reports the connection from its side.",
    );
    page
}

fn dataset<D: Dataset>(page: &mut String, introduction: &str) {
    let _ = write!(page, "\n## `{}`\n\n{introduction}\n\n", D::NAME);
    *page += "| column | type | unit | meaning | if missing |\n|---|---|---|---|---|\n";
    D::columns().iter().for_each(|column| counters_line(page, column));
}

fn flows_line(page: &mut String, column: &Column) {
    let elements: Vec<_> =
        column.elements.iter().map(|(name, number)| format!("`{name}` ({number})")).collect();
    let Column { name, unit, meaning, if_missing, .. } = column;
    let (kind, elements) = (column.kind.parquet(), elements.join(", "));
    let _ = writeln!(page, "| `{name}` | {kind} | {unit} | {meaning} | {if_missing} | {elements} |");
}

fn counters_line(page: &mut String, column: &Column) {
    let Column { name, unit, meaning, if_missing, .. } = column;
    let _ = writeln!(page, "| `{name}` | {} | {unit} | {meaning} | {if_missing} |", column.kind.parquet());
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_reference_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/flow-records.md");
        let page = super::page();
        if std::env::var_os("THALWEG_REFRESH_GOLDEN").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap_or_default() == page,
            "docs/reference/flow-records.md is out of date; update it with: \
             THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-records reference"
        );
    }
}
