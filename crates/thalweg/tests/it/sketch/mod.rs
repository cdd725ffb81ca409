//! `thalweg sketch` with sketches saved by `thalweg watch` and constructed sketches.

mod errors;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use thalweg_sketch::state::{AnyState, KeyBytes, Linear, Meta, RowState};
use thalweg_sketch::{
    CountMin, CountSketch, Counter, Hasher, HyperLogLog, KAry, Key, RowSketch, Shape, Spread, UnivMon,
    UnivMonShape, WithTopK,
};

use crate::program::{Run, THALWEG, number, root, thalweg_in, watch};

type State = AnyState<KeyBytes>;

/// Tasks of all kinds of sketches whose size does not depend on the window length.
const TASKS: &str = "heavy:1%,heavy:1%:src:bytes,distinct:src,entropy:src,spread:dst>3,moments,hhh:5%";

/// Names of the files that they save for a window.
const SAVED: [&str; 10] = [
    "distinct_src",
    "entropy_src",
    "heavy_1",
    "heavy_1_src_bytes",
    "hhh_5-src-16-48",
    "hhh_5-src-24-64",
    "hhh_5-src-32-128",
    "hhh_5-src-8-32",
    "moments",
    "spread_dst_3",
];

/// A folder for traces and sketches.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Generates a trace of one second that starts at a full minute.
    fn trace(&self, name: &str, seed: &str) -> String {
        let arguments = ["synth", "-n", "40k", "--seed", seed, "--start", "1403182800", "-o", name];
        thalweg_in(self.0.path(), &arguments).ended_with(0);
        self.text(name)
    }

    /// Runs `thalweg watch` and saves sketches in a folder.
    fn watch(&self, states: &str, window: &str, traces: &[&str]) -> Run {
        let states = self.text(states);
        let arguments = ["--json", "--no-table", "--seed", "7", "--memory", "16MiB", "--tasks", TASKS];
        let more = ["--window", window, "--save-sketches", &states];
        watch(&[&arguments[..], &more, traces].concat()).ended_with(0)
    }

    /// Returns the files of a folder with a suffix, sorted by time.
    fn files(&self, states: &str, ending: &str) -> Vec<String> {
        let ending = format!("Z-{ending}.tsk");
        let files = fs::read_dir(self.path(states)).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<_> = files.map(|file| file.to_str().unwrap().to_owned()).collect();
        files.retain(|file| file.ends_with(&ending));
        files.sort();
        files
    }

    /// Runs `thalweg sketch` in this folder.
    fn sketch(&self, arguments: &[&str]) -> Run {
        thalweg_in(self.0.path(), &[&["sketch"], arguments].concat())
    }

    fn show(&self, file: &str) -> Value {
        self.sketch(&["show", "--json", "-n", "100000", file]).ended_with(0).lines().remove(0)
    }

    /// Merges files. Returns the name of the output.
    fn merge(&self, files: &[String]) -> String {
        let files: Vec<_> = files.iter().map(String::as_str).collect();
        let run = self.sketch(&[&["merge", "-o", "whole.tsk"], &files[..]].concat()).ended_with(0);
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
        self.text("whole.tsk")
    }

    fn write(&self, name: &str, meta: &Meta, state: &State) {
        fs::write(self.path(name), state.encode(meta)).unwrap();
    }
}

fn read(path: impl AsRef<Path>) -> (Meta, State) {
    State::decode(&fs::read(path).unwrap()).unwrap()
}

fn meta(key_kind: &str) -> Meta {
    Meta { key_kind: key_kind.to_owned(), ..Meta::default() }
}

/// Returns a field of the result of a task in a line.
fn said<'a>(line: &'a Value, task: &str, what: &str) -> &'a Value {
    let mut answers = line["tasks"].as_array().unwrap().iter();
    &answers.find(|answer| answer["task"] == task).unwrap_or_else(|| panic!("no {task} in {line}"))[what]
}

/// Returns a quantity of a shown sketch.
fn quantity<'a>(shown: &'a Value, name: &str) -> &'a Value {
    let mut quantities = shown["quantities"].as_array().unwrap().iter();
    quantities.find(|quantity| quantity["name"] == name).unwrap_or_else(|| panic!("no {name} in {shown}"))
}

/// Checks that the keys of a task are the first keys shown, with the same estimates.
#[track_caller]
fn check_keys(found: &Value, estimate: &str, shown: &Value) {
    let (found, shown) = (found.as_array().unwrap(), shown["keys"].as_array().unwrap());
    assert!(!found.is_empty());
    for key in found {
        let same = shown.iter().find(|it| it["key"] == key["key"]);
        assert_eq!(same.unwrap_or_else(|| panic!("no {key}"))["estimate"], key[estimate]);
    }
    let values = shown.iter().map(|key| key["estimate"].as_f64().unwrap());
    assert!(values.is_sorted_by(|a, b| a >= b));
}

#[test]
fn a_saved_window_shows_its_results() {
    let place = Place::new();
    let run = place.watch("states", "250ms", &[&place.trace("trace.pcap", "1")]);
    let lines = run.of_type("window");
    assert_eq!(lines.len(), 4);
    for (window, line) in lines.iter().enumerate() {
        let show = |task: &str| {
            let shown = place.show(&place.files("states", task)[window]);
            assert_eq!((&shown["start"], &shown["end"]), (&line["start"], &line["end"]));
            assert_eq!((number(&shown, "seed"), number(&shown, "saturations")), (7, 0));
            shown
        };
        let heavy = show("heavy_1");
        assert_eq!((&heavy["total"], &heavy["sampling_probability"]), (&line["packets"], &Value::from(1.0)));
        assert_eq!((&heavy["key_kind"], &heavy["label"]), (&Value::from("5tuple"), &Value::from("heavy:1%")));
        check_keys(said(line, "heavy:1%", "keys"), "estimate", &heavy);
        let of_bytes = show("heavy_1_src_bytes");
        assert_eq!(of_bytes["total"], line["bytes"]);
        check_keys(said(line, "heavy:1%:src:bytes", "keys"), "estimate", &of_bytes);
        let spread = show("spread_dst_3");
        check_keys(said(line, "spread:dst>3", "keys"), "peers", &spread);
        assert_eq!(&spread["missed_up_to"], said(line, "spread:dst>3", "missed_up_to"));
        assert_eq!(
            quantity(&show("distinct_src"), "distinct")["estimate"],
            *said(line, "distinct:src", "distinct")
        );
        // The same sum in another order.
        let bits =
            [&quantity(&show("entropy_src"), "entropy")["estimate"], said(line, "entropy:src", "entropy")]
                .map(|it| it.as_f64().unwrap());
        assert!((bits[0] - bits[1]).abs() < 1e-9 && bits[0] > 1.0, "{bits:?}");
        assert_eq!(quantity(&show("moments"), "L2")["estimate"], *said(line, "moments", "l2"));
    }
}

#[test]
fn every_file_is_shown_as_text() {
    let place = Place::new();
    place.watch("states", "1min", &[&place.trace("trace.pcap", "1")]);
    let files: Vec<_> = SAVED.map(|task| place.files("states", task)).concat();
    let names: Vec<_> = files.iter().map(String::as_str).collect();
    let text = place.sketch(&[&["show", "-n", "1"], &names[..]].concat()).ended_with(0).stdout;
    let sections: Vec<_> = text.split("\n\n").collect();
    assert_eq!((files.len(), sections.len()), (SAVED.len(), SAVED.len()));
    for (section, file) in sections.iter().zip(&files) {
        let shown = place.show(file);
        let [name, sketch, label, window, ..] = section.lines().collect::<Vec<_>>()[..] else {
            panic!("{section}")
        };
        assert_eq!(name, file);
        let [kind, key_kind, size] = ["kind", "key_kind", "size"].map(|field| shown[field].as_str().unwrap());
        assert_eq!(sketch, format!("  sketch       {kind} of {key_kind}, {size}"));
        assert_eq!(label, format!("  label        {}", shown["label"].as_str().unwrap()));
        assert_eq!(window, "  window       2014-06-19 13:00:00.000 to 2014-06-19 13:01:00.000 UTC");
        if let Some(key) = shown["keys"].get(0) {
            assert!(section.contains(&format!("  {}\n", key["key"].as_str().unwrap())), "{section}");
        }
    }
}

/// Removes the candidate keys from sketches of rows of counters.
fn without_keys(state: State) -> State {
    fn of<C: Counter>(linear: Linear<KeyBytes, C>) -> Linear<KeyBytes, C> {
        match linear {
            Linear::CountSketch(rows) => Linear::CountSketch(RowState { top: None, ..rows }),
            other => other,
        }
    }
    match state {
        AnyState::I32(linear) => of(linear).into(),
        AnyState::I64(linear) => of(linear).into(),
        other => other,
    }
}

/// Checks that merged sketches of parts equal the sketch of the whole: counters and registers exactly, largest keys as far
/// as both contain them.
#[track_caller]
fn check_merged(place: &Place, parts: &[String], whole: &str) {
    let merged = place.merge(parts);
    let ((of_parts, merged), (of_whole, whole)) = (read(merged), read(whole));
    assert_eq!((&of_parts.key_kind, &of_parts.label), (&of_whole.key_kind, &of_whole.label));
    let windows: Vec<_> = parts.iter().map(|part| read(part).0).collect();
    let (start, end) = (windows.iter().map(|it| it.start_ns).min(), windows.iter().map(|it| it.end_ns).max());
    assert_eq!((Some(of_parts.start_ns), Some(of_parts.end_ns)), (start, end));
    let largest =
        [merged.largest(), whole.largest()].map(|keys| keys.into_iter().take(5).collect::<Vec<_>>());
    assert_eq!(largest[0], largest[1]);
    match (without_keys(merged), without_keys(whole)) {
        (AnyState::Spread(merged), AnyState::Spread(whole)) => {
            assert!(merged.registers() == whole.registers())
        }
        (AnyState::I32(Linear::UnivMon(merged)), AnyState::I32(Linear::UnivMon(whole))) => {
            assert_eq!((merged.f2(), merged.statistics()), (whole.f2(), whole.statistics()));
        }
        (merged, whole) => assert!(merged.encode(&of_whole) == whole.encode(&of_whole)),
    }
}

#[test]
fn merged_windows_equal_one_long_window() {
    let place = Place::new();
    let trace = place.trace("trace.pcap", "1");
    place.watch("windows", "100ms", &[&trace]);
    place.watch("whole", "1min", &[&trace]);
    for task in SAVED {
        let (windows, whole) = (place.files("windows", task), place.files("whole", task));
        assert_eq!((windows.len(), whole.len()), (10, 1), "{task}");
        check_merged(&place, &windows, &whole[0]);
    }
}

#[test]
fn merged_sketches_of_three_points_equal_one_of_all() {
    let place = Place::new();
    let traces = ["1", "2", "3"].map(|seed| place.trace(&format!("{seed}.pcap"), seed));
    for (collector, trace) in traces.iter().enumerate() {
        place.watch(&format!("collector-{collector}"), "1min", &[trace]);
    }
    place.watch("all", "1min", &traces.each_ref().map(String::as_str));
    for task in SAVED {
        let parts: Vec<_> = (0..3).flat_map(|it| place.files(&format!("collector-{it}"), task)).collect();
        assert_eq!(parts.len(), 3, "{task}");
        check_merged(&place, &parts, &place.files("all", task)[0]);
    }
}

/// Returns sketches of all kinds that count one packet of many keys, and the given numbers of packets of two keys.
fn of_all_kinds(growing: i64, shrinking: i64) -> [State; 6] {
    fn fill<S: RowSketch>(sketch: S, weights: &[(KeyBytes, i64)]) -> WithTopK<S, KeyBytes> {
        let mut with = WithTopK::new(sketch, 8);
        for (key, weight) in weights {
            with.sketch.add(key, *weight);
            with.top.offer(key, with.sketch.hasher().digest(key.as_bytes()), *weight);
        }
        with
    }
    let key = |host: u8| KeyBytes::from_bytes(&[10, 0, 0, host]).unwrap();
    let weights: Vec<_> =
        (3..50).map(|host| (key(host), 1)).chain([(key(1), growing), (key(2), shrinking)]).collect();
    let (shape, hasher) = (Shape::new(5, 1024).unwrap(), Hasher::new(7));
    let mut univmon = UnivMon::<KeyBytes, i64>::new(UnivMonShape::new(3, shape, 8).unwrap(), hasher);
    let mut spread = Spread::new(Shape::new(3, 64).unwrap(), 6, 8, hasher).unwrap();
    let mut distinct = HyperLogLog::new(10, hasher).unwrap();
    for (key, weight) in &weights {
        univmon.add(key, *weight);
        (0..*weight).for_each(|peer| spread.add(key, &peer.to_be_bytes()));
        distinct.add(hasher.digest(key.as_bytes()));
    }
    [
        Linear::CountMin(fill(CountMin::<i32>::new(shape, hasher), &weights).into()).into(),
        Linear::CountSketch(fill(CountSketch::<i64>::new(shape, hasher), &weights).into()).into(),
        Linear::KAry(fill(KAry::<i32>::new(shape, hasher), &weights).into()).into(),
        Linear::UnivMon(univmon).into(),
        distinct.into(),
        spread.into(),
    ]
}

#[test]
fn a_planted_change_is_listed_first() {
    let place = Place::new();
    for (number, (before, now)) in of_all_kinds(100, 900).iter().zip(&of_all_kinds(700, 500)).enumerate() {
        place.write("before", &meta("src"), before);
        place.write("now", &meta("src"), now);
        for (files, sign) in [(["before", "now"], 1.0), (["now", "before"], -1.0)] {
            let run = place.sketch(&["diff", "--json", files[0], files[1]]).ended_with(0);
            let line = run.lines().remove(0);
            assert_eq!(
                (&line["type"], &line["before"]["file"]),
                (&"sketch_difference".into(), &files[0].into())
            );
            if let AnyState::HyperLogLog(_) = now {
                assert_eq!(line["keys"], Value::Array(Vec::new()));
                let [distinct] = &line["quantities"].as_array().unwrap()[..] else { panic!("{line}") };
                assert_eq!(distinct["before"], distinct["now"]);
                continue;
            }
            for (key, (host, truth)) in [("10.0.0.1", 600.0), ("10.0.0.2", -400.0)].into_iter().enumerate() {
                let key = &line["keys"][key];
                assert_eq!(key["key"], host, "{number}: {line}");
                let [value, from, to] = ["change", "before", "now"].map(|name| key[name].as_f64().unwrap());
                // The error of registers is 13 %, the noise of rows that of 49 keys.
                assert!((value - sign * truth).abs() < 200.0, "{number}: {key}");
                assert!((to - from - value).abs() < 10.0, "{number}: {key}");
                let [lower, upper] = ["change_lower", "change_upper"].map(|name| key[name].as_f64().unwrap());
                assert!(lower <= sign * truth && sign * truth <= upper, "{number}: {key}");
            }
            let text = place.sketch(&["diff", "-n", "2", files[0], files[1]]).ended_with(0).stdout;
            let hosts: Vec<_> = text.lines().filter_map(|line| line.rsplit_once("  10.0.0.")).collect();
            assert_eq!(hosts.iter().map(|(_, host)| *host).collect::<Vec<_>>(), ["1", "2"], "{text}");
            assert_eq!(hosts[0].0.trim_start().starts_with('-'), sign < 0.0, "{text}");
        }
    }
}

#[test]
fn a_sketch_does_not_differ_from_itself() {
    let place = Place::new();
    for state in of_all_kinds(100, 900) {
        place.write("state", &meta("src"), &state);
        let line = place.sketch(&["diff", "--json", "state", "state"]).ended_with(0).lines().remove(0);
        assert_eq!((&line["keys"], number(&line, "omitted_keys")), (&Value::Array(Vec::new()), 0));
    }
}

/// Runs `thalweg sketch` with a file as standard input. Returns its standard output.
fn piped(arguments: &[&str], input: &Path) -> Vec<u8> {
    let input = fs::File::open(input).unwrap();
    let mut command = Command::new(THALWEG);
    let output = command.arg("sketch").args(arguments).stdin(input).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn a_dash_is_standard_input_and_output() {
    let place = Place::new();
    let example = root().join("crates/thalweg-sketch/tests/golden/example.tsk");
    let path = example.to_str().unwrap();
    place.merge(&[path.to_owned(), path.to_owned()]);
    assert_eq!(piped(&["merge", "-", path, "-o", "-"], &example), fs::read(place.path("whole.tsk")).unwrap());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let shown = text(piped(&["show", "-"], &example));
    assert_eq!(shown, place.sketch(&["show", path]).ended_with(0).stdout.replace(path, "standard input"));
    assert!(text(piped(&["diff", "-", path], &example)).contains("\n  before       standard input, "));
}

#[test]
fn a_merge_can_replace_an_input_and_set_a_label() {
    let place = Place::new();
    let example = root().join("crates/thalweg-sketch/tests/golden/example.tsk");
    fs::copy(&example, place.path("hour.tsk")).unwrap();
    let example = example.to_str().unwrap();
    place.sketch(&["merge", "hour.tsk", example, "-o", "hour.tsk", "--label", "two"]).ended_with(0);
    let (meta, state) = read(place.path("hour.tsk"));
    assert_eq!((meta.label.as_str(), state.statistics().unwrap().total()), ("two", 2 * 1_730));
    assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 1);
    place.sketch(&["merge", "hour.tsk", example, "-o", "hour.tsk"]).ended_with(0);
    assert_eq!(read(place.path("hour.tsk")).0.label, "two + edge");
}

#[test]
fn the_example_of_the_format_is_shown_as_documented() {
    let example = root().join("crates/thalweg-sketch/tests/golden");
    let shown = thalweg_in(&example, &["sketch", "show", "example.tsk"]).ended_with(0).stdout;
    let expected = "\
example.tsk
  sketch       Count Sketch of src, 3 x 8 counters of 32 bits
  label        edge
  window       2025-06-15 15:06:40.000 to 2025-06-15 15:06:50.000 UTC
  counted      1,730
  memory       512 B, 174 B in the file
  hash         XXH3-128, seed 7
  L2           1,513.6, no known bound
  count     lower  upper  key
  1,500  no bound         10.0.0.1
    200  no bound         10.0.0.3
";
    assert_eq!(shown, expected);
}

/// Known, unknown and empty kinds of keys.
const KEY_KINDS: [&str; 8] =
    ["src", "5tuple", "dst+port", "src/24/64", "dst/8", "", "serial number", "\x1b[2J\n"];

#[test]
fn any_sketch_can_be_shown_and_compared() {
    let place = Place::new();
    let hasher = Hasher::new(7);
    let shape = Shape::new(1, 4).unwrap();
    // Keys of every length and kind, and no keys.
    for (number, kind) in KEY_KINDS.iter().enumerate() {
        let mut with = WithTopK::new(CountSketch::<i32>::new(shape, hasher), 100);
        for length in 0..=KeyBytes::MAX_LENGTH {
            let key = KeyBytes::from_bytes(&[0xff; KeyBytes::MAX_LENGTH][..length]).unwrap();
            with.top.offer(&key, hasher.digest(key.as_bytes()), 1);
            with.sketch.add(&key, 1);
        }
        let meta = Meta { label: "\x1b]0;title\x07".to_owned(), start_ns: 5, end_ns: 2, ..meta(kind) };
        place.write(&format!("keys-{number}.tsk"), &meta, &Linear::CountSketch(with.into()).into());
    }
    let mut empty = of_all_kinds(0, 0).map(|state| {
        let mut none = state.clone();
        if none.subtract(&state).is_err() {
            none = match state {
                AnyState::HyperLogLog(_) => HyperLogLog::new(4, hasher).unwrap().into(),
                _ => Spread::new(shape, 4, 1, hasher).unwrap().into(),
            };
        }
        none
    });
    let extremes = Meta { start_ns: u64::MAX, end_ns: u64::MAX, ..meta("src") };
    let univmon = UnivMonShape::new(1, shape, 1).unwrap();
    empty[0] = Linear::UnivMon(UnivMon::<KeyBytes, i32>::new(univmon, hasher)).into();
    for (number, state) in empty.iter().enumerate() {
        place.write(&format!("empty-{number}.tsk"), &extremes, state);
    }
    let golden = root().join("crates/thalweg-sketch/tests/golden");
    for folder in [place.0.path(), &golden] {
        let files =
            fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let files: Vec<_> = files.filter(|file| file.ends_with(".tsk")).collect();
        assert!(files.len() > 10);
        for flags in [&["-n", "0"][..], &["-n", "18446744073709551615"], &["--json"], &["--json", "-n", "0"]]
        {
            let names: Vec<_> = files.iter().map(String::as_str).collect();
            let run = thalweg_in(folder, &[&["sketch", "show"], flags, &names].concat()).ended_with(0);
            assert!(!run.stdout.contains(['\x1b', '\x07']) && !run.stdout.contains("NaN"), "{}", run.stdout);
        }
        for file in &files {
            for flags in [&["-n", "0"][..], &["--json"]] {
                let run = thalweg_in(folder, &[&["sketch", "diff"], flags, &[file, file]].concat());
                run.ended_with(0);
            }
        }
    }
}
