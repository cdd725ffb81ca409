//! Generates the reference of experiment files.

use super::SCHEMA;
use thalweg_config::reference as reference_of;

const INTRODUCTION: &str = "\
# Experiment file

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->

`thalweg emulate EXPERIMENT.toml` reads what to emulate from a file in [TOML](https://toml.io). The file is checked as a
whole before the first slot: every unknown section, unknown key, wrong and missing value is named with its line, and the
program ends with [code 2](exit-codes.md). `thalweg emulate --print-config EXPERIMENT.toml` prints the experiment as it was
understood, with all defaults; `thalweg emulate --list` shows what there is to choose from.

A key can be set from outside, for one run or many: `--sweep scheme=droptail,dctcp --sweep workload.load=0.1..0.8`.
`SECTION.KEY` is a key of a section, `SECTION` ideal_fct its selector, and `KEY` ideal_fct will do if only one section has it.

Some keys belong to one thing among those that can be selected, as `threshold` to the schemes `dctcp` and `hull`. A
section of its own, `[scheme.hull]`, has keys that wait until that is selected.

| kind | written | |
|---|---|---|
| time | `\"200us\"`, `\"100ms\"`, `\"1.5s\"`, `\"30min\"` | |
| rate | `\"40mbps\"`, `\"10gbps\"` | decimal; without a unit bits per second |
| amount | `\"1500B\"`, `\"1.5GB\"`, `\"64KiB\"`, `600` | `GB` is decimal, `GiB` binary; without a unit bytes |
| text, list | `\"web_search\"`, `[\"h0\", \"h1\"]` | a list of one may be written as text |
| number, boolean | `10`, `0.5`, `true` | |

The shortest experiment:

```toml
duration = \"100ms\"

[topology]
shape = \"rack\"

[[workload]]
pattern = \"incast\"
sizes = \"1MB\"
```
";

/// `docs/reference/experiment-file.md`.
pub fn reference() -> String {
    reference_of(&SCHEMA, INTRODUCTION)
}
