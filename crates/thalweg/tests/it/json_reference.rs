//! `docs/reference/json.md` documents exactly the keys that the program writes, with real examples.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;
use thalweg_watch::in_kernel::InKernelTotals;
use thalweg_wire::capture_file::{ByteOrder, pcap};
use thalweg_wire::{Frame, LinkType, Timestamp};

use crate::lab_lines;
use crate::program::{Run, root, thalweg_in, watch};
use crate::real_time_lines;

/// Paths of keys by type of line: `summary` has `packets`, `records.idle`, `incomplete_sources[].reason`.
type Keys = BTreeMap<String, BTreeSet<String>>;

/// A task of each kind, with results on the example.
const ALL_TASKS: &str = "heavy:5%,change:4s,distinct:src,entropy:src,spread:src>0,moments:bytes,hhh:5%";

/// Runs that together write every type of line: flows, both detectors, a truncated input, tasks, saved sketches.
fn runs() -> Vec<Run> {
    let example = root().join("examples/two-hosts.pcap");
    let bytes = fs::read(&example).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let short = folder.path().join("short.pcap");
    fs::write(&short, &bytes[..bytes.len() - 10]).unwrap();
    let local = folder.path().join("local.pcap");
    fs::write(&local, packet_to_itself()).unwrap();
    let local = local.to_str().unwrap();
    let (example, short) = (example.to_str().unwrap(), short.to_str().unwrap());
    let (states, kept) = (folder.path().join("states"), folder.path().join("kept"));
    let save = ["--save-sketches", states.to_str().unwrap()];
    let saved = |tasks: &str, window: &str| {
        let arguments = ["--json", "--seed", "1", "--window", window, "--tasks", tasks];
        watch(&[&arguments[..], &save, &[example]].concat()).ended_with(0)
    };
    let mut runs = vec![
        watch(&["--json", "--flows", example]).ended_with(0),
        watch(&["--json", "--detector", "cfinf", "--filter", "port 5201", example]).ended_with(0),
        watch(&["--json", short]).ended_with(3),
        // Address 127.0.0.1 has a name everywhere.
        watch(&["--json", "--by", "host", "--names", "always", local]).ended_with(0),
        watch(&["--json", "--by", "pair", "--names", "always", local]).ended_with(0),
        watch(&["--json", "--list-interfaces"]).ended_with(0),
        watch(&["--json", "--ipfix", "127.0.0.1:4739", "--records", kept.to_str().unwrap(), example])
            .ended_with(0),
        saved(ALL_TASKS, "2s"),
        saved("distinct:dst+port", "1min"),
    ];
    let mut files: Vec<_> =
        fs::read_dir(&states).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    let show: Vec<_> =
        ["sketch", "show", "--json"].into_iter().chain(files.iter().map(String::as_str)).collect();
    runs.push(thalweg_in(&states, &show).ended_with(0));
    let [before, now] = ["20261121T221608Z-heavy_5.tsk", "20261121T221614Z-heavy_5.tsk"];
    // A monitor port, endless flows, a link failure.
    let rack = root().join("crates/thalweg/tests/it/emulate/rack.toml");
    let emulate = ["emulate", "--json", "--sweep", "seed=1", rack.to_str().unwrap()];
    runs.push(thalweg_in(folder.path(), &emulate).ended_with(0));
    let series = fs::read_to_string(&rack).unwrap() + "\n[flow_series]\ninterval = \"1ms\"\n";
    fs::write(folder.path().join("series.toml"), series).unwrap();
    let emulate = ["emulate", "--json", "--output", "series", "series.toml"];
    runs.push(thalweg_in(folder.path(), &emulate).ended_with(0));
    for top in ["1", "20"] {
        runs.push(thalweg_in(&states, &["sketch", "diff", "--json", "-n", top, before, now]).ended_with(0));
    }
    runs
}

/// Returns a capture file with a UDP packet from 127.0.0.1 to itself.
fn packet_to_itself() -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1];
    packet.extend([0, 7, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
    let (time, link_type) = (Timestamp(1_795_255_200_000_000_000), LinkType::RawIp);
    let original_length = packet.len() as u32;
    let frame = Frame { time, bytes: &packet, original_length, link_type };
    let mut file = Vec::new();
    let encoder = pcap::Encoder { order: ByteOrder::Little, precision: pcap::Precision::Nanos };
    encoder.file_header(link_type, 65_535, &mut file);
    encoder.record(&frame, &mut file);
    file
}

fn page() -> String {
    fs::read_to_string(root().join("docs/reference/json.md")).unwrap()
}

/// Tables of nested objects, by the type of the keys that contain them.
const PARTS: [(&str, &str); 6] = [
    ("distribution", "A distribution"),
    ("time distribution", "A time distribution"),
    ("times", "Times"),
    ("headroom", "Headroom"),
    ("delays", "Delays of a ping"),
    ("transmissions", "Transmissions"),
];

/// Returns the keys in the tables of the page by heading. Keys of nested objects are added to the keys that contain them. A key
/// of type `estimate` has the fields of an estimate: with a prefix before `confidence` and `bounds` if the object has several.
fn documented(page: &str) -> Keys {
    let mut keys = Keys::new();
    let mut with_parts: Vec<(&str, String, &str)> = Vec::new();
    let mut heading = "";
    for line in page.lines() {
        if let Some(text) = line.strip_prefix("## ") {
            heading = text;
        } else if let Some((key, rest)) = line.strip_prefix("| `").and_then(|rest| rest.split_once("` | ")) {
            keys.entry(heading.to_owned()).or_default().insert(key.to_owned());
            let part = PARTS.iter().find(|(of_type, _)| rest.starts_with(&format!("{of_type} |")));
            with_parts.extend(part.map(|&(_, part)| (heading, key.to_owned(), part)));
            let keys = keys.get_mut(heading).unwrap();
            keys.extend(estimate_keys(key, rest.split(" |").next().unwrap()));
        }
    }
    let parts =
        PARTS.map(|(_, part)| (part, keys.remove(part).unwrap_or_else(|| panic!("no table of {part}"))));
    for (heading, key, part) in with_parts {
        let (_, names) = parts.iter().find(|(name, _)| *name == part).expect("it is one of them");
        let names = names.iter().map(|name| format!("{key}.{name}"));
        keys.get_mut(heading).unwrap().extend(names);
    }
    let mut part = |heading: &str| keys.remove(heading).unwrap_or_else(|| panic!("no table of {heading}"));
    let of_flow = part("The flow");
    let in_tasks =
        |keys: BTreeSet<String>| -> BTreeSet<_> { keys.iter().map(|key| format!("tasks[].{key}")).collect() };
    let (of_task, of_change) = (in_tasks(part("Task results")), in_tasks(part("Results of change")));
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

/// The further keys of an estimate: `confidence` and `bounds` have a prefix if their object has several estimates.
fn estimate_keys(key: &str, of_type: &str) -> Vec<String> {
    let (object, name) = key.rsplit_once('.').map_or(("", key), |(object, name)| (object, name));
    let prefix = match of_type {
        "estimate" => String::new(),
        "prefixed estimate" => format!("{name}_"),
        _ => return Vec::new(),
    };
    let path = |name: String| if object.is_empty() { name } else { format!("{object}.{name}") };
    [
        format!("{name}_lower"),
        format!("{name}_upper"),
        format!("{prefix}confidence"),
        format!("{prefix}bounds"),
    ]
    .map(path)
    .to_vec()
}

fn written(runs: &[Run]) -> Keys {
    let mut keys = Keys::new();
    for line in runs.iter().flat_map(Run::lines).chain(lab_lines::all()).chain([real_time_lines::arbiter()]) {
        let name = line["type"].as_str().unwrap().to_owned();
        collect("", &line, keys.entry(name).or_default());
    }
    // Counting in the kernel needs root.
    let in_kernel = thalweg::watch::in_kernel_object(&InKernelTotals::default());
    let summary = serde_json::json!({ "in_kernel": in_kernel });
    collect("", &summary, keys.entry("summary".to_owned()).or_default());
    // Their types are also those of other commands.
    #[cfg(target_os = "linux")]
    for line in real_time_lines::endpoint() {
        collect("", &line, keys.entry("endpoint".to_owned()).or_default());
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
fn exactly_the_written_keys_are_documented() {
    let (documented, written) = (documented(&page()), written(&runs()));
    assert_eq!(documented.keys().collect::<Vec<_>>(), written.keys().collect::<Vec<_>>());
    for (name, written) in &written {
        let documented = &documented[name];
        let missing: Vec<_> = written.difference(documented).collect();
        let stale: Vec<_> = documented.difference(written).collect();
        assert!(missing.is_empty(), "docs/reference/json.md lacks, under {name}: {missing:?}");
        assert!(
            stale.is_empty(),
            "docs/reference/json.md has keys under {name} that are not written: {stale:?}"
        );
    }
}

#[test]
fn the_examples_match_the_output() {
    let runs = runs();
    let page = page();
    let examples: Vec<_> = page.lines().filter(|line| line.starts_with("{\"type\":")).collect();
    assert!(examples.len() >= 3, "{examples:?}");
    for example in examples {
        let is_written = runs.iter().any(|run| run.stdout.lines().any(|line| line == example));
        assert!(is_written, "not written: {example}");
    }
}
