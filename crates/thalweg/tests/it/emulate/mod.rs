//! `thalweg emulate`: reports, result files, and errors.
//!
//! `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it emulate` rewrites the golden files beside this file.

mod real_time;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Run, root, thalweg_in};

fn here() -> PathBuf {
    root().join("crates/thalweg/tests/it/emulate")
}

fn emulate(arguments: &[&str]) -> Run {
    thalweg_in(&here(), &[&["emulate"], arguments].concat())
}

/// Compares `text` with a file in this folder.
#[track_caller]
fn check_golden(name: &str, text: &str) {
    let path = here().join(name);
    if std::env::var_os("THALWEG_REFRESH_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "{name} differs; to accept the change: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test \
         emulate\n{text}"
    );
}

/// Returns all files of a folder by relative path.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let name = entry.path().strip_prefix(folder).unwrap().to_owned();
                    found.insert(name, fs::read(entry.path()).unwrap());
                }
            }
        }
    }
    found
}

/// Removes the run time from a line.
fn without_time(mut line: Value) -> Value {
    line.as_object_mut().unwrap().remove("elapsed_ns").expect("every line has it");
    line
}

#[test]
fn the_report_matches_the_golden_file() {
    let run = emulate(&["rack.toml"]).ended_with(0);
    check_golden("rack.txt", &run.stdout);
    assert!(run.stderr.starts_with("emulated 10.0 ms in "), "{}", run.stderr);
    for line in run.stdout.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn the_json_matches_the_golden_file() {
    let run = emulate(&["--json", "rack.toml"]).ended_with(0);
    assert_eq!(run.stderr, "");
    let line = without_time(run.lines().remove(0));
    check_golden("rack.json", &(serde_json::to_string_pretty(&line).unwrap() + "\n"));
}

#[test]
fn the_sweep_comparison_matches_the_golden_file() {
    let sweep = ["--sweep", "scheme=droptail,dctcp,pfabric", "--sweep", "workload.load=0.4..0.8:0.4"];
    let run = emulate(&[&sweep[..], &["rack.toml"]].concat()).ended_with(0);
    check_golden("sweep.txt", &run.stdout);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let left = |name: &str, seed: &str, format: &str| {
        let out = folder.path().join(name);
        let arguments = ["--seed", seed, "--format", format, "--output", out.to_str().unwrap(), "rack.toml"];
        let run = emulate(&arguments).ended_with(0);
        (run.stdout, files(&out))
    };
    for format in ["parquet", "csv"] {
        let first = left("first", "5", format);
        assert!(first.1.len() >= 8, "{:?}", first.1.keys());
        assert!(first == left("second", "5", format));
        assert!(first != left("third", "6", format));
    }
}

#[test]
fn sweep_runs_equal_single_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let sweep = [
        "--json",
        "--sweep",
        "scheme=hull,dctcp",
        "--sweep",
        "seed=1,2",
        "--output",
        &path("sweep"),
        "rack.toml",
    ];
    let lines = emulate(&sweep).ended_with(0).lines();
    let names: Vec<&Value> = lines.iter().map(|line| &line["sweep"]).collect();
    assert_eq!(names.len(), 4);
    assert_eq!(*names[1], serde_json::json!({"scheme": "hull", "seed": "2"}));
    check_sweep_table(Path::new(&path("sweep")), &lines);
    let single = emulate(&["--json", "--seed", "2", "--output", &path("single"), "rack.toml"]).ended_with(0);
    let mut of_sweep = without_time(lines[3].clone());
    of_sweep.as_object_mut().unwrap().remove("sweep");
    assert_eq!(of_sweep, without_time(single.lines().remove(0)));
    assert!(files(Path::new(&path("sweep/scheme=dctcp,seed=2"))) == files(Path::new(&path("single"))));
}

/// Splits a line of CSV whose quoted cells contain no quotes.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for character in line.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            _ => cells.last_mut().unwrap().push(character),
        }
    }
    cells
}

/// Compares a cell with a number, whose last digit serde_json may read differently.
#[track_caller]
fn assert_near(cell: &str, expected: &Value) {
    let (found, expected) = (cell.parse::<f64>().unwrap(), expected.as_f64().unwrap());
    assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{found} {expected}");
}

/// Checks the tables of all runs against the output of `--json`.
fn check_sweep_table(folder: &Path, lines: &[Value]) {
    let table = fs::read_to_string(folder.join("runs.csv")).unwrap();
    let mut rows = table.lines().map(cells);
    let header = rows.next().unwrap();
    assert_eq!(header[..3], ["scheme", "seed", "folder"]);
    let rows: Vec<Vec<String>> = rows.collect();
    assert_eq!(rows.len(), lines.len());
    let json = fs::read_to_string(folder.join("runs.jsonl")).unwrap();
    for ((row, line), json) in rows.iter().zip(lines).zip(json.lines()) {
        assert_eq!(row.len(), header.len());
        let cell = |name: &str| row[header.iter().position(|column| *column == name).unwrap()].as_str();
        for key in ["scheme", "seed"] {
            assert_eq!(cell(key), line["sweep"][key].as_str().unwrap());
        }
        assert_eq!(cell("folder"), format!("scheme={},seed={}", cell("scheme"), cell("seed")));
        assert_eq!(cell("interrupted"), "false");
        assert_eq!(cell("packets_sent"), line["packets"]["sent"].to_string());
        assert_near(cell("throughput_bps"), &line["throughput_bps"]);
        let small = line["sizes"].as_array().unwrap().iter().find(|class| class["class"] == "small").unwrap();
        assert_eq!(cell("small_completed"), small["completed"].to_string());
        assert_near(cell("small_slowdown_p99"), &small["slowdown"]["p99"]);
        assert_eq!(serde_json::from_str::<Value>(json).unwrap(), *line);
    }
}

#[test]
fn the_capture_of_a_monitor_port_can_be_watched() {
    let folder = tempfile::tempdir().unwrap();
    let run = emulate(&["--json", "--output", folder.path().to_str().unwrap(), "rack.toml"]).ended_with(0);
    let mirrored = &run.lines()[0]["mirrors"][0];
    assert!(mirrored["dropped_packets"].as_u64().unwrap() > 0, "{mirrored}");
    let watched =
        thalweg_in(folder.path(), &["watch", "--json", "--flows", "mirror-tor0.pcapng"]).ended_with(0);
    let summary = watched.summary();
    assert_eq!(summary["packets"], mirrored["packets"]);
    assert_eq!(summary["malformed"], 0);
    let to_h0 = |flow: &Value| flow["flow"]["dst"] == "10.0.0.1";
    assert!(watched.of_type("flow").iter().all(to_h0));
}

/// With commas between thousands, below a million.
fn grouped(number: usize) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", number / 1_000, number % 1_000),
    }
}

#[test]
fn time_series_are_written_plotted_and_reported_also_by_each_run_of_a_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let series = "\n[flow_series]\ninterval = \"1ms\"\nlargest = 3\n[queue_series]\ninterval = \"1ms\"\n";
    let text = fs::read_to_string(here().join("rack.toml")).unwrap() + series;
    fs::write(folder.path().join("series.toml"), text).unwrap();
    let emulate = |more: &[&str]| {
        thalweg_in(folder.path(), &[&["emulate", "series.toml"], more].concat()).ended_with(0)
    };
    let report = emulate(&["--output", "out", "--format", "csv"]).stdout;
    let rows =
        |table: &str| fs::read_to_string(out.join(table).with_extension("csv")).unwrap().lines().count() - 1;
    let (flows, queues) = (rows("flow_series"), rows("queue_series"));
    assert!(
        report.contains(&format!("\nTime series\n  flow_series      {} rows\n", grouped(flows))),
        "{report}"
    );
    assert!(
        flows >= 30 && report.contains(&format!("\n  queue_series     {} rows\n", grouped(queues))),
        "{report}"
    );
    assert!(
        queues > 60 && queues.is_multiple_of(6),
        "six ports, ten intervals and those of draining: {queues}"
    );
    for plot in ["cwnd.svg", "rtt.svg", "queue_series.svg"] {
        assert!(
            fs::read_to_string(out.join(plot)).unwrap().contains("h3 \u{2192} h2")
                || plot == "queue_series.svg"
        );
    }
    let swept =
        emulate(&["--output", "sweep", "--sweep", "flow_series.largest=1,2", "--format", "csv"]).stdout;
    assert!(swept.contains("flow_series.largest"), "{swept}");
    let flows = |run: &str| {
        let text = fs::read_to_string(folder.path().join("sweep").join(run).join("flow_series.csv")).unwrap();
        let flows: std::collections::BTreeSet<&str> =
            text.lines().skip(1).map(|line| line.split(',').nth(2).unwrap()).collect();
        flows.len()
    };
    assert_eq!((flows("flow_series.largest=1"), flows("flow_series.largest=2")), (1, 2));
    let without = emulate(&[]).stdout;
    assert!(!without.contains("Time series"), "without --output nothing is written");
}

#[test]
fn the_classes_of_a_port_are_lines_of_its_strip() {
    let examples = root().join("examples/experiments");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let run = thalweg_in(
        &examples,
        &[
            "emulate",
            "classes.toml",
            "--output",
            out.to_str().unwrap(),
            "--format",
            "csv",
            "--sweep",
            "duration=20ms",
        ],
    );
    run.ended_with(0);
    let out = out.join("duration=20ms");
    let table = fs::read_to_string(out.join("class_series.csv")).unwrap();
    assert!(table.starts_with("time_ns,interval_ns,router,port,to,class,packets,"), "{table}");
    let plot = fs::read_to_string(out.join("queue_series.svg")).unwrap();
    assert!(plot.contains("Mean packets per interval and class"));
    for class in ["0", "1", "2"] {
        assert!(table.lines().any(|line| line.split(',').nth(5) == Some(class)), "{class}: {table}");
        assert!(plot.contains(&format!("class {class}, mean ")), "{class}");
    }
}

#[test]
fn a_sweep_of_the_seed_alone_says_how_many_runs_a_mean_has_and_where_they_are() {
    let run = emulate(&["--sweep", "seed=1..3", "--sweep", "duration=2ms", "rack.toml"]).ended_with(0);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(
        lines[2].split_whitespace().collect::<Vec<_>>().starts_with(&["duration", "runs", "throughput"]),
        "{}",
        run.stdout
    );
    assert!(lines[3].split_whitespace().collect::<Vec<_>>().starts_with(&["2ms", "3"]), "{}", run.stdout);
    assert!(run.stdout.contains("runs.csv has the single runs"), "{}", run.stdout);
}

#[test]
fn the_printed_experiment_gives_the_same_results() {
    let folder = tempfile::tempdir().unwrap();
    let printed = emulate(&["--print-config", "--seed", "3", "rack.toml"]).ended_with(0).stdout;
    fs::write(folder.path().join("printed.toml"), &printed).unwrap();
    let again = thalweg_in(folder.path(), &["emulate", "printed.toml"]).ended_with(0);
    assert_eq!(again.stdout, emulate(&["--seed", "3", "rack.toml"]).ended_with(0).stdout);
}

#[test]
fn an_output_directory_that_cannot_be_created_is_reported_before_the_run() {
    let run = emulate(&["--output", "/proc/none/out", "rack.toml"]).ended_with(1);
    assert!(run.stderr.contains("cannot create /proc/none/out"), "{}", run.stderr);
    assert!(!run.stderr.contains("emulated "), "{}", run.stderr);
}

#[test]
fn invalid_experiments_are_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let wrong = folder.path().join("wrong.toml");
    fs::write(&wrong, "duration = \"1s\"\n[topology]\nk = 4\n").unwrap();
    let (out, wrong) = (out.to_str().unwrap(), wrong.to_str().unwrap());
    for (arguments, expected) in [
        (&[wrong][..], format!("thalweg: {wrong}:3: \"k\" does not apply to shape \"rack\", only to fat_tree\n")),
        (&["absent.toml"], "thalweg: cannot read the experiment file absent.toml: No such file or directory (os error 2)\n".into()),
        (&["--sweep", "bufer=1,2", "rack.toml"], "thalweg: --sweep bufer=1: unknown key \"bufer\"; did you mean \"buffer\"?\n".into()),
        (&["--sweep", "scheme=red", "--sweep", "scheme=pie", "rack.toml"], "thalweg: \"scheme\" is swept twice: expected one --sweep scheme=VALUE,VALUE,...\n".into()),
        (
            &["--sweep", "scheme.buffer=100,50", "rack.toml"],
            "thalweg: with scheme.buffer=50:\nthalweg: rack.toml:9: threshold: invalid value 65 (the default): expected less than `buffer`\n".into(),
        ),
    ] {
        let run = emulate(&[arguments, &["--output", out]].concat()).ended_with(2);
        assert_eq!(run.stdout, "");
        assert_eq!(run.stderr, expected);
        assert!(!Path::new(out).exists(), "nothing is left where nothing was run");
    }
    for (arguments, part) in [
        (&["--sweep", "load"][..], "expected KEY=VALUE,VALUE,..."),
        (&["--sweep", "load=0.8..0.1"], "invalid range \"0.8..0.1\": the first number is above the last"),
        (&["--sweep", "seed=1,2", "--seed", "3"], "--seed cannot be combined with --sweep seed=..."),
        (
            &["--format", "csv", "--json"],
            "--format cannot be used here: it applies only to tables in the directory",
        ),
    ] {
        let run = emulate(&[arguments, &["rack.toml"]].concat()).ended_with(2);
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
}

#[test]
fn the_list_has_a_line_per_choice() {
    let list = emulate(&["--list"]).ended_with(0).stdout;
    check_golden("list.txt", &list);
    for line in list.lines().filter(|line| line.starts_with("  ")) {
        let (name, summary) = line.trim_start().split_once("  ").unwrap();
        assert!(!name.is_empty() && summary.trim().len() > 5, "{line}");
    }
}

#[test]
fn the_examples_run() {
    let folder = root().join("examples/experiments");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| name.ends_with(".toml"));
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        let text = fs::read_to_string(folder.join(&name)).unwrap();
        assert!(text.starts_with("# "), "{name} begins by saying what it shows");
        // Shortened: this checks only that they run.
        let is_slow = ["wan.toml", "sawtooth.toml"].contains(&name.as_str());
        let duration = if is_slow { "duration=6s" } else { "duration=45ms" };
        let run = thalweg_in(&folder, &["emulate", "--json", "--sweep", duration, &name]).ended_with(0);
        let line = run.lines().remove(0);
        assert!(line["packets"]["delivered"].as_u64().unwrap() > 10_000, "{name}: {line}");
    }
}
