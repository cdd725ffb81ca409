//! `thalweg watch --tasks`, compared with the exact counts of the flow table.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use thalweg_sketch::state::{AnyState, KeyBytes, Kind};

use crate::program::{Run, number, root, time_ns, watch};

fn example() -> String {
    root().join("examples/two-hosts.pcap").to_str().unwrap().to_owned()
}

/// Runs tasks over the whole example, which lies within one minute.
fn whole(arguments: &[&str]) -> Run {
    let example = example();
    let arguments =
        [arguments, &["--json", "--seed", "1", "--window", "1min", "--memory", "8MiB", &example]].concat();
    watch(&arguments).ended_with(0)
}

/// Returns the only `window` line.
fn window(run: &Run) -> Value {
    let mut windows = run.of_type("window");
    assert_eq!(windows.len(), 1);
    windows.remove(0)
}

/// Returns the result of a task in a line.
fn result_of<'a>(line: &'a Value, task: &str) -> &'a Value {
    let answers = line["tasks"].as_array().unwrap();
    answers.iter().find(|answer| answer["task"] == task).unwrap_or_else(|| panic!("no {task} in {line}"))
}

/// Returns packets and bytes of each flow direction.
fn directions(run: &Run) -> BTreeMap<String, (u64, u64)> {
    let mut directions = BTreeMap::new();
    for flow in run.of_type("flow") {
        let fields = |from: &str, to: &str| {
            let name = |end: &str| flow["flow"][end].to_string();
            [name(from), name(to), name(&format!("{from}_port")), name(&format!("{to}_port"))].join(" ")
        };
        for (ends, prefix) in [(("src", "dst"), ""), (("dst", "src"), "reverse_")] {
            let count = |what: &str| number(&flow, &format!("{prefix}{what}"));
            if count("packets") > 0 {
                let sum = directions.entry(fields(ends.0, ends.1)).or_insert((0, 0));
                *sum = (sum.0 + count("packets"), sum.1 + count("bytes"));
            }
        }
    }
    directions
}

fn name(flow: &Value) -> String {
    ["src", "dst", "src_port", "dst_port"].map(|end| flow[end].to_string()).join(" ")
}

#[track_caller]
fn check_within(object: &Value, name: &str, truth: f64) {
    let bound =
        |end: &str| object[format!("{name}_{end}")].as_f64().unwrap_or_else(|| panic!("no bound: {object}"));
    assert!(bound("lower") <= truth && truth <= bound("upper"), "{truth} is not within {object}");
}

#[test]
fn task_results_agree_with_exact_counts() {
    let run = whole(&[
        "--flows",
        "--tasks",
        "heavy:5%,heavy:5%:bytes,distinct,moments,entropy:dst+port,spread:src>0",
    ]);
    let exact = directions(&run);
    let (line, summary) = (window(&run), run.summary());
    let (packets, bytes) = (number(&summary, "ip_packets"), number(&summary, "ip_bytes"));
    assert_eq!((number(&line, "packets"), number(&line, "bytes")), (packets, bytes));
    for (task, total, of) in [("heavy:5%", packets, 0), ("heavy:5%:bytes", bytes, 1)] {
        let truth = |it: &(u64, u64)| if of == 0 { it.0 } else { it.1 };
        let answer = result_of(&line, task);
        assert_eq!(number(answer, "total"), total);
        let keys = answer["keys"].as_array().unwrap();
        let heavy: Vec<_> = exact.iter().filter(|(_, it)| truth(it) as f64 >= 0.05 * total as f64).collect();
        assert_eq!(keys.len(), heavy.len(), "{answer}");
        for key in keys {
            check_within(key, "estimate", truth(&exact[&name(&key["flow"])]) as f64);
        }
    }
    check_within(result_of(&line, "distinct"), "distinct", exact.len() as f64);
    let sizes = exact.values().map(|it| it.0 as f64);
    let moments = result_of(&line, "moments");
    assert_eq!(number(moments, "l1"), packets);
    check_within(moments, "l2", sizes.clone().map(|size| size * size).sum::<f64>().sqrt());
    // Two IPv4 and two IPv6 addresses, and link-local ones of neighbour discovery.
    let spread = result_of(&line, "spread:src>0")["keys"].as_array().unwrap();
    assert!(spread.len() >= 4, "{spread:?}");
    assert!(result_of(&line, "entropy:dst+port")["entropy"].as_f64().unwrap() > 0.5);
}

#[test]
fn without_a_flow_table_tasks_give_the_same_results() {
    let tasks = "heavy:5%,distinct,entropy:src,moments:bytes,hhh:5%";
    let (beside, alone) = (whole(&["--tasks", tasks]), whole(&["--no-table", "--tasks", tasks]));
    assert_eq!(window(&alone), window(&beside));
    let summary = alone.summary();
    for field in ["flows", "cheetahs", "records", "evicted", "untracked", "undecided"] {
        assert_eq!(summary[field], Value::Null, "{field}");
    }
    assert_eq!(number(&summary, "memory_bytes"), number(&summary["tasks"], "memory_bytes"));
    assert!(number(&summary, "memory_bytes") <= 8 << 20);
    assert!(alone.of_type("cheetah").is_empty());

    let report = watch(&["--summary", "--no-table", "--tasks", tasks, &example()]).ended_with(0);
    for line in ["Measurement tasks", "heavy:5%  (", "distinct  (", "  run time "] {
        assert!(report.stdout.contains(line), "no `{line}` in\n{}", report.stdout);
    }
    for line in ["Flow table", "Cheetah flows", "Largest flows"] {
        assert!(!report.stdout.contains(line), "`{line}` in\n{}", report.stdout);
    }
}

/// Returns a comparable line: rounding removes the noise of sketches of different sizes.
fn rounded(line: &Value) -> (Value, Vec<String>) {
    let mut texts = Vec::new();
    for key in result_of(line, "heavy:5%")["keys"].as_array().unwrap() {
        texts.push(format!("{} {:.0}", key["key"], key["estimate"].as_f64().unwrap() / 10.0));
    }
    let distinct = result_of(line, "distinct")["distinct"].as_f64().unwrap();
    texts.push(format!("{distinct:.0}"));
    (Value::from(["start", "end", "windows", "packets", "bytes"].map(|it| line[it].clone()).to_vec()), texts)
}

#[test]
fn several_workers_give_the_results_of_one() {
    let example = example();
    let run = |workers: &str| {
        let arguments =
            ["--json", "--seed", "1", "--window", "100ms", "--memory", "64MiB", "--threads", workers];
        let tasks = ["--no-table", "--keep-windows", "2", "--tasks", "heavy:5%,distinct", &example];
        watch(&[&arguments[..], &tasks].concat()).ended_with(0)
    };
    let one = run("1");
    let lines = |run: &Run| run.of_type("window").iter().map(rounded).collect::<Vec<_>>();
    assert!(lines(&one).len() > 20);
    for workers in ["2", "5"] {
        let several = run(workers);
        assert_eq!(lines(&several), lines(&one));
        for count in ["windows", "empty_windows", "late"] {
            assert_eq!(several.summary()["tasks"][count], one.summary()["tasks"][count], "{count}");
        }
    }
}

#[test]
fn windows_are_consecutive_and_count_every_packet() {
    let run = watch(&["--json", "--window", "1s", "--tasks", "distinct", &example()]).ended_with(0);
    let windows = run.of_type("window");
    for pair in windows.windows(2) {
        assert_eq!(pair[0]["end"], pair[1]["start"]);
    }
    for window in &windows {
        let length = time_ns(window, "end") - time_ns(window, "start");
        assert_eq!(length, number(window, "windows") * 1_000_000_000);
    }
    let packets: u64 = windows.iter().map(|window| number(window, "packets")).sum();
    assert_eq!(packets, number(&run.summary(), "ip_packets"));
    let [kept] = run.of_type("kept_windows").try_into().unwrap();
    assert_eq!(kept["end"], windows.last().unwrap()["end"]);
}

#[test]
fn sampled_tasks_report_their_sampling_and_bounds() {
    let run = whole(&["--tasks", "heavy:5%", "--sampling", "1/16"]);
    let line = window(&run);
    let heavy = result_of(&line, "heavy:5%");
    assert_eq!(heavy["sampling_probability"], 0.0625);
    for key in heavy["keys"].as_array().unwrap() {
        assert_eq!(key["bounds"] == "not_converged", key["estimate_lower"].is_null(), "{key}");
    }
    let report =
        watch(&["--summary", "--tasks", "heavy:5%", "--sampling", "1/16", "--window", "1min", &example()]);
    assert!(report.stdout.contains(", sampled with p = 1/16"), "{}", report.stdout);
}

#[test]
fn sketches_of_each_window_are_saved_with_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let states = folder.path().join("states");
    let states_text = states.to_str().unwrap();
    let run = whole(&["--tasks", "heavy:5%:bytes,distinct:src,hhh:5%", "--save-sketches", states_text]);
    let mut names: Vec<String> =
        fs::read_dir(&states).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let levels = ["src-16-48", "src-24-64", "src-32-128", "src-8-32"]
        .map(|level| format!("20261121T221600Z-hhh_5-{level}.tsk"));
    let others =
        ["20261121T221600Z-distinct_src.tsk", "20261121T221600Z-heavy_5_bytes.tsk"].map(str::to_owned);
    assert_eq!(names, [&others[..], &levels].concat());

    let read = |name: &str| AnyState::<KeyBytes>::decode(&fs::read(states.join(name)).unwrap()).unwrap();
    let (meta, heavy) = read(&names[1]);
    assert_eq!(
        (meta.key_kind.as_str(), meta.label.as_str(), heavy.kind()),
        ("5tuple", "heavy:5%:bytes", Kind::CountSketch)
    );
    let line = window(&run);
    assert_eq!((meta.start_ns, meta.end_ns), (time_ns(&line, "start"), time_ns(&line, "end")));
    assert_eq!(heavy.statistics().unwrap().total() as u64, number(&line, "bytes"));
    assert_eq!(read(&names[0]).0.key_kind, "src");

    // An unwritable directory is reported before the measurement.
    let blocked = folder.path().join("file");
    fs::write(&blocked, b"").unwrap();
    let run =
        watch(&["--json", "--tasks", "distinct", "--save-sketches", blocked.to_str().unwrap(), &example()]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.starts_with("thalweg: cannot save sketches in "), "{}", run.stderr);
}
