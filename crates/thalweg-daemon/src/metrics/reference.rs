//! `docs/reference/metrics.md`, from the table.

use std::fmt::Write;

use super::{METRICS, Metric};

const INTRODUCTION: &str = "\
# Metrics

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->

What `thalweg serve` says at `/metrics`, in Prometheus' text format. How to scrape it, and a dashboard to begin with:
[the API](../guides/api.md#metrics).

Counters begin at zero when the daemon is started, and never fall while it runs: a collector that fails, or is changed by
a reload, goes on counting where it was. Only one that a reload takes out of the file is forgotten. `collector` is the collector's name. A link is told apart by `switch`, `port` (`p0`, `p1`, ...) and `way`
(`in` to the switch, `out` of it).

| metric | type | labels | meaning |
|---|---|---|---|
";

/// The page.
pub fn reference() -> String {
    INTRODUCTION.to_owned() + &rows(METRICS)
}

/// Rows of a table of metrics: name, type, labels, meaning.
pub fn rows<S>(metrics: &[Metric<S>]) -> String {
    let mut rows = String::new();
    for metric in metrics {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, help) = (metric.name, metric.kind.name(), metric.help);
        let _ = writeln!(rows, "| `{name}` | {kind} | {} | {help} |", labels.join(", "));
    }
    rows
}
