//! `docs/reference/flow-records.md`, from the tables.

use std::fmt::Write;

use thalweg_wire::flow_export::{CounterBatch, RecordBatch};

use super::{Column, Dataset};

const INTRODUCTION: &str = "\
# Flow records in Parquet

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-records reference -->

What is kept of routers' exports, and of what is metered here. Files are
`DIR/DATASET/date=2026-11-22/hour=13/NAME.parquet`: hive partitions by the hour (UTC) in which the collector received the record, so
that engines read only the hours that they are asked for. A file is complete as soon as it is to be seen: it is written under a name
that begins with a dot, and renamed. `DIR/spool` holds what is not in such a file yet, and is the collector's own.

No column has nulls. Where an exporter does not tell, the value under \"not told\" stands. Addresses are text: dotted decimal, or RFC 5952
for IPv6. Compression is zstd.
";

/// The page.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    page += "\n## `flows`\n\nElements are IPFIX's, by their names and numbers in IANA's registry; NetFlow v9 has the same numbers up to 127.\n\n";
    page += "| column | type | unit | meaning | not told | elements |\n|---|---|---|---|---|---|\n";
    RecordBatch::columns().iter().for_each(|column| flows_line(&mut page, column));
    page += "\n## `interface-counters`\n\nWhat sFlow agents tell of their interfaces (sFlow v5, `if_counters`). Objects are those of RFC 2863; they count\n";
    page += "from a time that the agent chooses, and wrap.\n\n";
    page += "| column | type | unit | meaning | not told |\n|---|---|---|---|---|\n";
    CounterBatch::columns().iter().for_each(|column| counters_line(&mut page, column));
    page
}

fn flows_line(page: &mut String, column: &Column) {
    let elements: Vec<_> =
        column.elements.iter().map(|(name, number)| format!("`{name}` ({number})")).collect();
    let Column { name, unit, meaning, not_told, .. } = column;
    let (kind, elements) = (column.kind.parquet(), elements.join(", "));
    let _ = writeln!(page, "| `{name}` | {kind} | {unit} | {meaning} | {not_told} | {elements} |");
}

fn counters_line(page: &mut String, column: &Column) {
    let Column { name, unit, meaning, not_told, .. } = column;
    let _ = writeln!(page, "| `{name}` | {} | {unit} | {meaning} | {not_told} |", column.kind.parquet());
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_reference_page_is_that_of_the_tables() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/flow-records.md");
        let page = super::page();
        if std::env::var_os("THALWEG_REFRESH_GOLDEN").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap_or_default() == page,
            "docs/reference/flow-records.md is not what the tables say; to rewrite it: \
             THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-records reference"
        );
    }
}
