//! The reference of the configuration file, and an example file with explanations.

use super::table::SCHEMA;
use thalweg_config::{example, reference as reference_of};

const INTRODUCTION: &str = "\
# Configuration of the daemon

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->

`thalweg serve -c FILE` reads its configuration from a [TOML](https://toml.io) file. `thalweg config serve` prints a
example with explanations. `thalweg check FILE` checks a file and prints what the daemon would do.

The whole file is checked before the daemon does anything. Every unknown section, unknown key, invalid and missing value is
reported with its line, and the program exits with [code 2](exit-codes.md). On SIGHUP the daemon reads the file again; an
invalid file changes nothing.

File names are relative to the directory of this file. See also the [guide](../guides/collector.md).

| type | examples | |
|---|---|---|
| time | `\"200us\"`, `\"100ms\"`, `\"1.5s\"`, `\"30min\"` | |
| rate | `\"40mbps\"`, `\"10gbps\"` | decimal; bits per second without a unit |
| amount | `\"1500B\"`, `\"1.5GB\"`, `\"64KiB\"`, `600` | `GB` is decimal, `GiB` binary; bytes without a unit |
| text, list | `\"tor0\"`, `[\"tor0\", \"tor1\"]` | a list of one item may be written as text |
| number, boolean | `10`, `0.5`, `true` | |

A minimal file:

```toml
[[collector]]
name = \"tor0\"
interface = \"eth1\"
```
";

/// Returns `docs/reference/daemon-configuration.md`.
pub fn reference() -> String {
    reference_of(&SCHEMA, INTRODUCTION)
}

/// Returns a minimal configuration, with every other key as a comment.
pub fn default_file() -> String {
    let samples =
        [("collector", "name", "name = \"tor0\""), ("collector", "interface", "interface = \"eth1\"")];
    example(
        &SCHEMA,
        "# Configuration of `thalweg serve -c FILE`. Keys that are commented out show their defaults.\n",
        &samples,
    )
}
