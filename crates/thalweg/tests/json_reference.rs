//! `docs/reference/json.md` says what the program writes: every key of every line, no others, and true examples.

mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use program::{Run, root, watch};
use serde_json::Value;

/// Paths of keys by type of line: `summary` has `packets`, `records.idle`, `cut_short[].reason`.
type Keys = BTreeMap<String, BTreeSet<String>>;

/// A line of each type is written by one of these: all flows, either detector, an input that is cut short.
fn runs() -> [Run; 3] {
    let example = root().join("examples/two-hosts.pcap");
    let bytes = fs::read(&example).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let short = folder.path().join("short.pcap");
    fs::write(&short, &bytes[..bytes.len() - 10]).unwrap();
    let (example, short) = (example.to_str().unwrap(), short.to_str().unwrap());
    [
        watch(&["--json", "--flows", example]).ended_with(0),
        watch(&["--json", "--detector", "cfinf", example]).ended_with(0),
        watch(&["--json", short]).ended_with(3),
    ]
}

fn page() -> String {
    fs::read_to_string(root().join("docs/reference/json.md")).unwrap()
}

/// The keys in the first column of the page's tables, by the heading above; those of the flow go with each `flow`.
fn documented(page: &str) -> Keys {
    let mut keys = Keys::new();
    let mut heading = "";
    for line in page.lines() {
        if let Some(text) = line.strip_prefix("## ") {
            heading = text;
        } else if let Some((key, _)) = line.strip_prefix("| `").and_then(|rest| rest.split_once("` |")) {
            keys.entry(heading.to_owned()).or_default().insert(key.to_owned());
        }
    }
    let of_flow = keys.remove("The flow").expect("a table of the flow");
    keys.retain(|_, keys| keys.contains("type"));
    for keys in keys.values_mut().filter(|keys| keys.contains("flow")) {
        keys.extend(of_flow.iter().cloned());
    }
    keys
}

fn written(runs: &[Run]) -> Keys {
    let mut keys = Keys::new();
    for line in runs.iter().flat_map(Run::lines) {
        let name = line["type"].as_str().unwrap().to_owned();
        collect("", &line, keys.entry(name).or_default());
    }
    keys
}

fn collect(prefix: &str, value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                collect(&path, value, keys);
                keys.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(&format!("{prefix}[]"), item, keys)),
        _ => {}
    }
}

#[test]
fn every_key_that_is_written_is_documented_and_no_other() {
    let (documented, written) = (documented(&page()), written(&runs()));
    assert_eq!(documented.keys().collect::<Vec<_>>(), written.keys().collect::<Vec<_>>());
    for (name, written) in &written {
        let documented = &documented[name];
        let missing: Vec<_> = written.difference(documented).collect();
        let stale: Vec<_> = documented.difference(written).collect();
        assert!(missing.is_empty(), "docs/reference/json.md lacks, under {name}: {missing:?}");
        assert!(stale.is_empty(), "docs/reference/json.md has, under {name}, what is not written: {stale:?}");
    }
}

#[test]
fn the_examples_are_lines_that_the_program_writes() {
    let [run, ..] = runs();
    let page = page();
    let examples: Vec<_> = page.lines().filter(|line| line.starts_with("{\"type\":")).collect();
    assert!(examples.len() >= 3, "{examples:?}");
    for example in examples {
        assert!(run.stdout.lines().any(|line| line == example), "not written: {example}");
    }
}
