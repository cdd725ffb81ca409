//! The page about the files, generated from the tables of columns.

use std::fmt::Write as _;

use super::columns::Row;
use super::sweep::{CLASS_COLUMNS, COLUMNS, CSV_FILE, JSON_FILE, SEEDS_FILE};
use crate::results::series_rows::{ClassSeriesRow, FlowSeriesRow, QueueSeriesRow};
use crate::results::{DropRow, FlowRow, LinkRow, QueueRow};

const BEGINNING: &str = "\
# Files of an emulation

`thalweg emulate EXPERIMENT.toml --output DIR` writes one file for each table below to `DIR`: Parquet, or CSV with
`--format csv`, and the JSON object of `--json`, without `elapsed_ns`, to `DIR/summary.json`. A sweep writes them to one
folder per run, and a table of all runs to `DIR`. The same experiment and seed give identical files. While the emulation
runs, `DIR/running.json` is locked; it is removed at the end.

Times are whole nanoseconds of emulated time, which starts at 0. Values are missing only where the type says so: null in Parquet, an
empty cell in CSV. Counts are signed 64-bit integers, so differences may be negative. Parquet files use dictionaries for names, and zstd. CSV files start with a
line of column names; lines end in `\\n`.
";

const END: &str = "
## Examples

pandas:

```python
import pandas as pd

flows = pd.read_parquet(\"DIR/flows.parquet\")
small = flows[flows.bytes <= 100_000]
print(small.slowdown.describe(percentiles=[0.5, 0.99]))
```

DuckDB:

```sql
SELECT router, port, \"to\", avg(packets) AS mean, quantile_cont(packets, 0.99) AS p99
FROM 'DIR/queues.parquet'
GROUP BY ALL ORDER BY mean DESC LIMIT 10;
```

polars:

```python
import polars as pl

links = pl.scan_parquet(\"DIR/links.parquet\")
rate = pl.col(\"bytes\") * 8 / pl.col(\"interval_ns\")
mean = links.group_by(\"from\", \"to\").agg(rate.mean().alias(\"gbit_s\"))
print(mean.sort(\"gbit_s\", descending=True).collect())
```

The congestion window and the round-trip time of each flow over time, with `[flow_series]`:

```python
series = pd.read_parquet(\"DIR/flow_series.parquet\")
series[\"time_ms\"] = series.time_ns / 1e6
series[\"rtt_us\"] = series.rtt_ns / 1e3
for column in [\"cwnd_packets\", \"rtt_us\"]:
    series.pivot(index=\"time_ms\", columns=\"flow\", values=column).interpolate().plot(ylabel=column)
```

All runs of a sweep, with the folder of each as a column:

```sql
SELECT filename, count(*) AS flows, avg(slowdown) AS slowdown
FROM read_parquet('DIR/*/flows.parquet', filename = true)
GROUP BY ALL ORDER BY filename;
```
";

/// Generates the reference page in Markdown.
pub fn reference() -> String {
    let mut page = BEGINNING.to_owned();
    describe::<FlowRow>(&mut page);
    describe::<QueueRow>(&mut page);
    describe::<LinkRow>(&mut page);
    describe::<DropRow>(&mut page);
    describe::<FlowSeriesRow>(&mut page);
    describe::<QueueSeriesRow>(&mut page);
    describe::<ClassSeriesRow>(&mut page);
    describe_sweep(&mut page);
    page.push_str(END);
    page
}

/// Describes the table of a sweep.
fn describe_sweep(page: &mut String) {
    let heading = format!(
        "\n## The table of a sweep\n\nA sweep also writes a line per run to `DIR/{CSV_FILE}`, and the JSON objects of `--json` to \
         `DIR/{JSON_FILE}`.\nThe first columns of the CSV file are the swept keys. `CLASS` is `small`, `medium` or `large`. Cells \
         without a value are\nempty.\n\n| column | unit | meaning |\n|---|---|---|\n"
    );
    page.push_str(&heading);
    for column in &COLUMNS {
        row(page, column.name, column.unit, column.meaning);
    }
    for column in &CLASS_COLUMNS {
        row(page, &format!("CLASS_{}", column.name), column.unit, column.meaning);
    }
    let seeds = format!(
        "\nIf the seed is swept (`--sweep seed=1..10`), `DIR/{SEEDS_FILE}` has a line for each combination of the other keys: \
         the number of\nruns, and for each figure above its mean over the seeds and, as `NAME_ci95`, half the width of its 95 % \
         confidence interval (Student's t).\nPlots show the same means and intervals.\n"
    );
    page.push_str(&seeds);
}

fn row(page: &mut String, name: &str, unit: &str, meaning: &str) {
    writeln!(page, "| `{name}` | {unit} | {meaning} |").expect("writing to a String cannot fail");
}

fn describe<R: Row>(page: &mut String) {
    let heading = format!(
        "\n## {}\n\n{}\n\n| column | type | unit | meaning |\n|---|---|---|---|\n",
        R::FILE,
        R::ABOUT
    );
    page.push_str(&heading);
    for column in R::COLUMNS {
        writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            column.name,
            column.values.type_name(),
            column.unit,
            column.about
        )
        .expect("writing to a String cannot fail");
    }
}
