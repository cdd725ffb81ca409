//! Generates the reference of experiment files.

use super::SCHEMA;
use thalweg_config::reference as reference_of;

const INTRODUCTION: &str = "\
# Experiment file

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->

`thalweg emulate EXPERIMENT.toml` reads an experiment in [TOML](https://toml.io). The whole file is checked before the
first slot. Every unknown section or key and every invalid or missing value is reported with its line, and the exit code
is [2](exit-codes.md). `thalweg emulate --print-config EXPERIMENT.toml` prints the experiment with all defaults.
`thalweg emulate --list` lists topologies, schemes, routing, transports, flow patterns, flow sizes and packet senders.

The command line can override a key, for one run or several: `--sweep scheme=droptail,dctcp --sweep
workload.load=0.1..0.8`. `SECTION.KEY` is a key of a section. `SECTION` is the key that selects its variant, such as
`scheme` for `scheme.name`. `KEY` is sufficient if only one section has that key.

Some keys belong to one variant of a section, as `threshold` to the schemes `dctcp` and `hull`. A section such as
`[scheme.hull]` has keys that apply only if that variant is selected.

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
