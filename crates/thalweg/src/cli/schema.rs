//! `thalweg schema`.

use clap::Args;
use thalweg_config::json_schema;

use super::file_kind::FileKind;

/// Print the JSON Schema of a kind of file.
///
/// Draft 2020-12. Editors with taplo complete and check TOML files whose first line is `#:schema FILE`.
#[derive(Args, Debug)]
pub(super) struct SchemaArgs {
    /// Kind of file.
    #[arg(value_enum, value_name = "KIND")]
    kind: FileKind,
}

impl SchemaArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let title = format!("Thalweg: {}", self.kind.title());
        super::print(format!("{:#}\n", json_schema(self.kind.schema(), &title)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use clap::ValueEnum;

    use super::*;

    /// Files of each kind in the repository.
    const EXAMPLES: [(FileKind, &[&str]); 5] = [
        (
            FileKind::Daemon,
            &[
                "examples/collector/thalweg.toml",
                "examples/isolation/thalweg.toml",
                "examples/rerouting/thalweg.toml",
            ],
        ),
        (
            FileKind::Experiment,
            &[
                "examples/collector/experiment.toml",
                "examples/experiments/fat-tree-stride.toml",
                "examples/experiments/incast.toml",
                "examples/experiments/wan.toml",
                "examples/experiments/web-search.toml",
                "examples/rerouting/experiment.toml",
                "experiments/flexplane-completion/experiment.toml",
                "experiments/flexplane-cross-check/fairness.toml",
                "experiments/flexplane-hull-threshold/experiment.toml",
                "experiments/flexplane-queues/experiment.toml",
                "experiments/flexplane-trade-off/experiment.toml",
            ],
        ),
        (
            FileKind::State,
            &[
                "examples/collector/topology.toml",
                "examples/topologies/leaf-spine.toml",
                "examples/topologies/mac-table-switch.toml",
                "examples/topologies/open-vswitch.toml",
            ],
        ),
        (FileKind::Watch, &[]),
        (FileKind::TransfersAgent, &["examples/transfers/agent.toml"]),
    ];

    /// Checks a schema, valid documents and invalid documents with Python's `jsonschema`. Exit code 0 if all are as expected.
    const VALIDATOR: &str = "\
import json, sys
import jsonschema
schema, right, wrong = json.load(sys.stdin)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for document in right:
    for error in validator.iter_errors(document):
        sys.exit(f'{error.json_path}: {error.message}')
for document in wrong:
    if validator.is_valid(document):
        sys.exit(f'accepted: {document}')
";

    fn as_json(text: &str) -> serde_json::Value {
        let table: toml::Table = text.parse().unwrap();
        serde_json::to_value(table).unwrap()
    }

    fn has_validator() -> bool {
        let check = Command::new("python3").args(["-c", "import jsonschema"]).stderr(Stdio::null()).status();
        check.is_ok_and(|status| status.success())
    }

    #[track_caller]
    fn validate(kind: FileKind, right: &[String], wrong: &[&str]) {
        let schema = json_schema(kind.schema(), kind.title());
        let right: Vec<_> = right.iter().map(|text| as_json(text)).collect();
        let wrong: Vec<_> = wrong.iter().map(|text| as_json(text)).collect();
        let input = serde_json::json!([schema, right, wrong]).to_string();
        let mut python = Command::new("python3");
        let mut python =
            python.args(["-c", VALIDATOR]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        python.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = python.wait_with_output().unwrap();
        assert!(output.status.success(), "{kind:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn every_schema_has_all_sections_and_refuses_unknown_names() {
        for kind in FileKind::value_variants() {
            let schema = json_schema(kind.schema(), kind.title());
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
            assert_eq!(schema["additionalProperties"], false);
            for section in kind.schema().sections.iter().filter(|section| !section.name.is_empty()) {
                let part = &schema["properties"][section.name];
                let part = if section.repeats { &part["items"] } else { part };
                for key in section.keys() {
                    assert!(part["properties"].get(key.name).is_some(), "{} {key:?}", section.name);
                }
            }
        }
    }

    #[test]
    fn repository_files_match_their_schemas() {
        if !has_validator() {
            eprintln!("skipped: python3 has no jsonschema");
            return;
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (kind, files) in EXAMPLES {
            let mut right: Vec<String> =
                files.iter().map(|file| std::fs::read_to_string(root.join(file)).unwrap()).collect();
            let wrong: &[&str] = match kind {
                FileKind::Daemon => {
                    right.push(thalweg_daemon::config::default_file());
                    &[
                        "[[collector]]\nname = 'a'\nbackend = 'ebpf'\n",
                        "[[collector]]\ninterface = 'e'\n",
                        "[apis]\n",
                    ]
                }
                FileKind::Watch => {
                    right.push(crate::config::default_file());
                    &[
                        "[output]\nlimit = 0\n",
                        "[live]\nring_size = '64 apples'\n",
                        "[detection]\nprotocol_filter = 'icmp'\n",
                    ]
                }
                FileKind::TransfersAgent => {
                    right.push(thalweg_transfers::settings::default_file());
                    &["[[log]]\npath = 'a'\nformat = 'ftp'\n", "[agent]\nnames = 'salted'\n"]
                }
                FileKind::Experiment => &[
                    "[topology]\nshape = 'rack'\n",
                    "duration = '1s'\n[scheme]\nthreshold = 65\n",
                    "duration = '1s'\n[scheme]\nname = 'hull'\nthreshold = 'much'\n",
                    "duration = '10 parsec'\n",
                ],
                _ => &["[[router]]\nnam = 'a'\n", "[[link]]\nbetween = ['a']\n"],
            };
            validate(kind, &right, wrong);
        }
    }
}
