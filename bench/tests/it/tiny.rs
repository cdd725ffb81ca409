//! Small runs of every benchmark and experiment. No test checks a time.

use std::fs;
use std::path::Path;
use std::process::Command;

const BENCH: &str = env!("CARGO_BIN_EXE_thalweg-bench");

/// Runs `thalweg-bench` with results in `output`, prints what it skipped, and returns all Markdown files as one text.
fn bench(output: &Path, arguments: &[&str]) -> String {
    let ran = Command::new(BENCH).args(arguments).arg("--output").arg(output).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{arguments:?}: {said}");
    for line in said.lines().filter(|line| line.starts_with("skipped: ")) {
        skip(line);
    }
    let mut names: Vec<_> = fs::read_dir(output).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let pages = names.iter().filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Prints past the test runner's capture.
fn skip(line: &str) {
    use std::io::Write;
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Returns the cells of the table row that begins with `name`.
fn cells<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let row = page.lines().find(|line| line.starts_with(&format!("| {name} |")));
    row.unwrap_or_else(|| panic!("no row {name} in:\n{page}"))
        .trim_matches('|')
        .split('|')
        .map(str::trim)
        .collect()
}

#[test]
fn meters_agree_with_the_ground_truth() {
    for program in ["time", "taskset"] {
        if Command::new(program).arg("--version").output().is_err() {
            return skip(&format!("skipped: meters_agree_with_the_ground_truth: no {program}"));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (traces, output) = (folder.path().join("traces"), folder.path().join("results"));
    let traces = traces.to_str().unwrap();
    let arguments = ["meters", "--packets", "20000", "--runs", "1", "--thalweg", BENCH, "--traces", traces];
    let page = bench(&output, &arguments);
    let truth = cells(&page, "ground truth");
    for meter in ["thalweg watch", "plain HashMap"] {
        let counted = cells(&page, meter);
        assert_eq!(counted[5..7], truth[5..7], "{meter}");
    }
}

#[test]
fn emulator_delivers_packets_with_every_scheme() {
    let folder = tempfile::tempdir().unwrap();
    let page = bench(folder.path(), &["emulator", "--packets", "20000", "--runs", "1"]);
    for scheme in ["droptail", "red", "dctcp", "priority", "drr", "hull", "pfabric", "pie", "fq_codel"] {
        assert!(cells(&page, scheme)[1].parse::<f64>().unwrap() > 0.0, "{scheme}");
    }
    assert!(page.contains("| racks under an aggregation switch"), "{page}");
}

#[test]
fn stages_are_all_measured() {
    let folder = tempfile::tempdir().unwrap();
    let page = bench(folder.path(), &["stages", "--packets", "20000", "--runs", "1"]);
    assert_eq!(page.lines().filter(|line| line.starts_with("| decode")).count(), 5);
}

#[test]
fn tasks_are_measured_with_every_sampling() {
    let folder = tempfile::tempdir().unwrap();
    let page = bench(folder.path(), &["tasks", "--packets", "20000", "--runs", "1"]);
    for task in ["`heavy:0.1%`", "`hhh:1%`", "`spread:dst>1000`"] {
        let cells = cells(&page, task);
        assert!(cells.len() >= 5 && cells[1..5].iter().all(|cell| cell.parse::<f64>().is_ok()), "{cells:?}");
    }
}

#[test]
fn scaling_measures_every_combination() {
    let folder = tempfile::tempdir().unwrap();
    let counts = ["--packets", "5000,10000", "--flows", "100,1000", "--runs", "1"];
    let page = bench(folder.path(), &[&["scaling"][..], &counts].concat());
    assert_eq!(
        page.lines().filter(|line| line.starts_with("| 5,000 |") || line.starts_with("| 10,000 |")).count(),
        4
    );
}

#[test]
fn detectors_are_compared_with_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    let page = bench(folder.path(), &["detectors", "--packets", "200000"]);
    assert_eq!(cells(&page, "sliding window (ours)")[1..4], ["8", "0", "0"]);
    assert_eq!(cells(&page, "straddling-burst")[1..4], ["2", "2", "0"], "flows, ours, the published one");
}

#[test]
fn planted_cheetahs_are_found_in_a_flood() {
    let folder = tempfile::tempdir().unwrap();
    let page = bench(folder.path(), &["flood", "--packets", "300000", "--runs", "1"]);
    assert!(page.contains("1 of 1 (100.0 %)"), "{page}");
}

#[test]
fn simulations_of_a_threshold_state_their_target_and_the_error_of_a_sample() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skip(
            "skipped: simulations_of_a_threshold_state_their_target_and_the_error_of_a_sample: no python3",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let page = bench(folder.path(), &["threshold", "--seconds", "1"]);
    for (flow, packets) in [("rounds", "1,236,043"), ("TCP", "1,343,649")] {
        let all = cells(&page, &format!("{flow} | all"));
        assert_eq!((all[2], all[5], all[8]), (packets, "1,800", "-"));
        let quick = cells(&page, &format!("{flow} | a quarter"));
        assert_eq!(quick[5], "120");
        assert!(quick[8].parse::<f64>().is_ok(), "{quick:?}");
    }
    assert!(page.contains("30 minutes for all packets and 2 minutes for a quick simulation"), "{page}");
}

#[test]
fn the_live_stream_is_measured_with_its_viewers() {
    let folder = tempfile::tempdir().unwrap();
    let page = bench(folder.path(), &["dashboard", "--flows", "400", "--seconds", "1", "--viewers", "0,2"]);
    let viewers = cells(&page, "2");
    let messages: f64 = viewers.last().unwrap().parse().unwrap();
    assert!(messages > 1.0, "{page}");
}

#[test]
fn sketches_are_measured_with_their_errors() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["sketches", "--packets", "20000", "--flows", "2000", "--runs", "2", "--no-peers"];
    let page = bench(folder.path(), &arguments);
    let textbook: Vec<_> = page.lines().filter(|line| line.starts_with("| textbook |")).collect();
    assert_eq!(textbook.len(), 11, "{page}");
    let ours: Vec<_> = page.lines().filter(|line| line.starts_with("| thalweg |")).collect();
    assert_eq!(ours.len(), 3 * 5 + 1, "{page}");
    assert_eq!(cells(&page, "Count-Min")[2..4], ["150", "200"], "targets");
    let exact = |row: &&&str| row.split('|').nth(2) == Some(" 1 ");
    for row in textbook.iter().chain(&ours).filter(exact) {
        let error: f64 = row.split('|').nth(5).unwrap().trim().trim_end_matches(" %").parse().unwrap();
        assert!(error < 10.0, "2,000 flows in 8,192 counters: {row}");
    }
}

#[test]
fn every_experiment_writes_result_table_and_plot() {
    let nitro = ["throughput", "memory", "convergence", "skew", "packet-sampling"];
    let nitro = nitro.map(|name| format!("nitro-{name}"));
    let cheetah = ["cheetah-hash-buckets", "cheetah-length-filter", "cheetah-reported"];
    for name in cheetah.into_iter().chain(nitro.iter().map(String::as_str)) {
        let folder = tempfile::tempdir().unwrap();
        let page = bench(folder.path(), &["experiment", name, "--packets", "50000", "--seeds", "2"]);
        assert!(page.contains("plot.svg"), "{page}");
        assert!(fs::read_to_string(folder.path().join("table.csv")).unwrap().lines().count() > 3);
        let svg = fs::read_to_string(folder.path().join("plot.svg")).unwrap();
        assert!(svg.contains("<rect") && svg.trim_end().ends_with("</svg>"));
    }
}

/// Runs in the repository's root, where the experiments' files are.
#[test]
fn every_experiment_of_flexplane_writes_result_table_and_plot() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let ns3 = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ns3-of-experiments");
    for name in ["queues", "completion", "trade-off", "hull-threshold", "lines", "cross-check"] {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("flexplane-{name}");
        let mut command = Command::new(BENCH);
        command.current_dir(&root).args(["experiment", &name, "--seconds", "0.01", "--seeds", "1"]);
        let ran = command.arg("--build").arg(&ns3).arg("--output").arg(folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{name}: {said}");
        said.lines().filter(|line| line.starts_with("skipped: ")).for_each(skip);
        let read = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(read("RESULT.md").contains("plot.svg"), "{name}");
        assert!(read("table.csv").lines().count() > 6, "{name}");
        assert!(read("plot.svg").trim_end().ends_with("</svg>"), "{name}");
    }
}

#[test]
fn every_experiment_of_planck_writes_result_table_and_plot() {
    let (short, long) = ("0.004", "0.01");
    for (name, seconds) in
        [("bursts", short), ("latency", short), ("slow-start", short), ("error", short), ("timeline", long)]
    {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("planck-{name}");
        let page = bench(folder.path(), &["experiment", &name, "--seconds", seconds, "--seeds", "1"]);
        assert!(
            page.contains("plot.svg") && page.contains("| what the paper says | here |"),
            "{name}: {page}"
        );
        assert!(fs::read_to_string(folder.path().join("table.csv")).unwrap().lines().count() > 10, "{name}");
        let svg = fs::read_to_string(folder.path().join("plot.svg")).unwrap();
        assert!(svg.contains("<polyline") && svg.trim_end().ends_with("</svg>"), "{name}");
    }
}

#[test]
fn every_experiment_of_the_cheetah_study_writes_result_table_and_plot() {
    for name in ["burstiness", "loss-by-rate", "loss-by-lambda", "throughput"] {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("cftes-{name}");
        let page = bench(folder.path(), &["experiment", &name, "--quick", "--seconds", "1"]);
        assert!(
            page.contains("| what the paper says | here |") && page.contains("A small size: 2 runs of 1 s"),
            "{name}: {page}"
        );
        let read = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(read("table.csv").lines().count() > 30 && read("table.json").starts_with('['), "{name}");
        assert!(read("plot.svg").contains("<polyline"), "{name}");
        assert!(!folder.path().join("progress.jsonl").exists(), "{name} is complete");
    }
}

#[test]
fn emulation_peers_are_measured_or_named_with_what_they_lack() {
    use std::os::unix::fs::MetadataExt;
    let test = "emulation_peers_are_measured_or_named_with_what_they_lack";
    if !fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        return skip(&format!("skipped: {test}: needs root"));
    }
    for program in ["iperf3", "ping", "nsenter"] {
        if Command::new(program).arg("-V").output().is_err() {
            return skip(&format!("skipped: {test}: no {program}"));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = Command::new(BENCH)
        .args([
            "emulation-peers",
            "--peers",
            "thalweg,mininet-wire",
            "--hosts",
            "3",
            "--rates",
            "50",
            "--seconds",
            "3",
        ])
        .args(["--patience", "0", "--thalweg", "/none/thalweg", "--output"])
        .arg(folder.path())
        // The programs of peers are found from the repository's folder.
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    assert!(said.contains("skipped: thalweg: no program /none/thalweg: build it with"), "{said}");
    match said.lines().find(|line| line.starts_with("skipped: mininet")) {
        Some(line) => skip(line),
        None => assert!(said.contains("mininet, corrected, 3 hosts, 2 flows, 50 Mbit/s: goodput"), "{said}"),
    }
}

#[test]
fn sketches_in_the_kernel_have_the_errors_of_user_space() {
    let folder = tempfile::tempdir().unwrap();
    let page = bench(folder.path(), &["in-kernel", "--packets", "65536", "--runs", "1", "--flows", "1000"]);
    if page.is_empty() {
        return; // Skipped without root.
    }
    let row = page.lines().find(|line| line.starts_with("| Count Sketch 5 x 1024 | 1 |")).unwrap();
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    assert_eq!(cells[6], cells[8], "mean error without sampling, in the kernel and in user space");
    assert!(page.contains("| ebpf-sketches, Count Sketch 4 x 1024 | 1/64 |"), "{page}");
}
