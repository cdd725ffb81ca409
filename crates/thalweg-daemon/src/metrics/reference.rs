//! Generates `docs/reference/metrics.md` from the table.

use std::fmt::Write;

use super::{Metric, metrics};

const INTRODUCTION: &str = "\
# Metrics

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->

Metrics of `thalweg serve` at `/metrics`, in the Prometheus text format. [API guide](../guides/api.md#metrics): how to
scrape them, and a Grafana dashboard.

Counters start at zero when the daemon starts. A collector that fails, or that a reload changes, keeps its counters. A
collector that a reload removes loses them.

`collector` is the collector's name. `switch`, `port` (`p0`, `p1`, ...) and `direction` (`in` to the switch, `out` of it)
identify a link direction.

| metric | type | labels | meaning |
|---|---|---|---|
";

/// Returns the reference page.
pub fn reference() -> String {
    INTRODUCTION.to_owned() + &rows(metrics())
}

/// Returns the rows of a table of metrics: name, type, labels, meaning.
pub fn rows<S: 'static>(metrics: impl IntoIterator<Item = &'static Metric<S>>) -> String {
    let mut rows = String::new();
    for metric in metrics {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, help) = (metric.name, metric.kind.name(), metric.help);
        let _ = writeln!(rows, "| `{name}` | {kind} | {} | {help} |", labels.join(", "));
    }
    rows
}
