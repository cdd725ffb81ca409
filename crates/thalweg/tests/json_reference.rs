//! `docs/reference/json.md` says what the program writes: every key of every line, no others, and true examples.

mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use program::{Run, root, watch};
use serde_json::Value;

/// Paths of keys by type of line: `summary` has `packets`, `records.idle`, `cut_short[].reason`.
type Keys = BTreeMap<String, BTreeSet<String>>;

/// One of each kind, so that each has something to say of the example.
const ALL_TASKS: &str = "heavy:5%,change:4s,distinct:src,entropy:src,spread:src>0,moments:bytes,hhh:5%";

/// A line of each type is written by one of these: all flows, either detector, an input that is cut short, tasks.
fn runs() -> [Run; 5] {
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
        watch(&["--json", "--seed", "1", "--window", "2s", "--tasks", ALL_TASKS, example]).ended_with(0),
        watch(&["--json", "--seed", "1", "--window", "1min", "--tasks", "distinct:dst+port", example])
            .ended_with(0),
    ]
}

fn page() -> String {
    fs::read_to_string(root().join("docs/reference/json.md")).unwrap()
}

/// The keys in the first column of the page's tables, by the heading above. Tables of parts go with what has such a
/// part: the flow with each `flow`, an estimate with each key of that type, what tasks say with each `tasks`.
fn documented(page: &str) -> Keys {
    let mut keys = Keys::new();
    let mut estimates = BTreeSet::new();
    let mut heading = "";
    for line in page.lines() {
        if let Some(text) = line.strip_prefix("## ") {
            heading = text;
        } else if let Some((key, rest)) = line.strip_prefix("| `").and_then(|rest| rest.split_once("` | ")) {
            keys.entry(heading.to_owned()).or_default().insert(key.to_owned());
            if rest.starts_with("estimate |") {
                estimates.insert(key.to_owned());
            }
        }
    }
    let mut part = |heading: &str| keys.remove(heading).unwrap_or_else(|| panic!("no table of {heading}"));
    let of_estimate = part("An estimate");
    let of_flow = part("The flow");
    let whole = |keys: BTreeSet<String>| -> BTreeSet<String> {
        let parts = keys.iter().filter(|key| estimates.contains(*key));
        let parts = parts.flat_map(|key| of_estimate.iter().map(move |part| format!("{key}.{part}")));
        parts.chain(keys.iter().cloned()).map(|key| format!("tasks[].{key}")).collect()
    };
    let (of_task, of_change) = (whole(part("What a task says")), whole(part("What change says")));
    keys.retain(|_, keys| keys.contains("type"));
    for (name, keys) in &mut keys {
        match name.as_str() {
            "window" => keys.extend(of_task.iter().chain(&of_change).cloned()),
            "kept_windows" => keys.extend(of_task.iter().cloned()),
            _ => {}
        }
        let flows: Vec<&str> =
            ["", "tasks[].keys[]."].into_iter().filter(|at| keys.contains(&format!("{at}flow"))).collect();
        keys.extend(flows.iter().flat_map(|at| of_flow.iter().map(move |key| format!("{at}{key}"))));
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
    let runs = runs();
    let page = page();
    let examples: Vec<_> = page.lines().filter(|line| line.starts_with("{\"type\":")).collect();
    assert!(examples.len() >= 3, "{examples:?}");
    for example in examples {
        let is_written = runs.iter().any(|run| run.stdout.lines().any(|line| line == example));
        assert!(is_written, "not written: {example}");
    }
}
