//! The reference of the daemon's file, and a file to begin with.

use std::fmt::Write;

use super::table::SCHEMA;
use thalweg_config::paragraph::wrapped;
use thalweg_config::{Default, Key, reference as reference_of};

const INTRODUCTION: &str = "\
# Configuration of the daemon

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->

`thalweg serve -c FILE` reads what to do from a file in [TOML](https://toml.io); `thalweg check --default` prints one to
begin with. The file is checked as a whole before anything is done: every unknown section, unknown key, wrong and missing
value is named with its line, and the program ends with [code 2](exit-codes.md). `thalweg check -c FILE` does that alone,
and says what the daemon would do. On SIGHUP the file is read again; one that is wrong changes nothing.

Names of files are from the folder of this file. What else there is to know stands in the
[guide](../guides/collector.md).

| kind | written | |
|---|---|---|
| time | `\"200us\"`, `\"100ms\"`, `\"1.5s\"`, `\"30min\"` | |
| rate | `\"40mbps\"`, `\"10gbps\"` | decimal; without a unit bits per second |
| amount | `\"1500B\"`, `\"1.5GB\"`, `\"64KiB\"`, `600` | `GB` is decimal, `GiB` binary; without a unit bytes |
| text, list | `\"tor0\"`, `[\"tor0\", \"tor1\"]` | a list of one may be written as text |
| number, boolean | `10`, `0.5`, `true` | |

The shortest file:

```toml
[[collector]]
name = \"tor0\"
interface = \"eth1\"
```
";

/// `docs/reference/daemon-configuration.md`.
pub fn reference() -> String {
    reference_of(&SCHEMA, INTRODUCTION)
}

/// Width of comments in the printed file.
const WIDTH: usize = 100;

/// A file that does the least there is to do, with every other key as a comment.
pub fn default_file() -> String {
    let mut text =
        "# What `thalweg serve -c FILE` is to do. A key with # in front is at its default.\n".to_owned();
    for section in SCHEMA.sections {
        let _ = write!(text, "\n{}", wrapped(&section.about(), "# ", "# ", WIDTH));
        let off = if section.repeats && section.name != "collector" { "# " } else { "" };
        let _ = writeln!(text, "{off}{}", section.heading());
        for key in section.keys() {
            let _ = write!(text, "\n{}{}", wrapped(&key.meaning(), "# ", "# ", WIDTH), line(key));
        }
    }
    text
}

fn line(key: &Key) -> String {
    let form = key.form();
    match (key.name, key.default) {
        ("name", _) => "name = \"tor0\"\n".to_owned(),
        ("interface", _) => "interface = \"eth1\"\n".to_owned(),
        (name, Default::Value(value)) => format!("# {name} = {}\n", form.in_toml(value)),
        (name, Default::Description(words)) => format!("# {name} = ...    # default: {words}\n"),
        (name, Default::Required) => format!("{name} = ...\n"),
    }
}
