//! The example `dpdk-forward`: a forwarder in C with a sketch inside counts as `thalweg watch` does.
//!
//! Skipped without make, a C compiler, libdpdk, and the C library of the sketches, which a build of the workspace makes.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use thalweg_sketch::state::{AnyState, KeyBytes, Linear, Meta, RowState};

use crate::live::skip;
use crate::program::{THALWEG, number, root, watch};

/// DPDK without huge pages, network cards, and files that other processes would use.
const EAL: [&str; 6] =
    ["--lcores=0@0", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "--log-level=error"];

/// Builds the forwarder once; `None`, with a message, if that is not possible here.
fn forwarder(test: &str) -> Option<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = PROGRAM.get_or_init(|| {
        for (program, arguments) in
            [("make", &["--version"][..]), ("cc", &["--version"]), ("pkg-config", &["libdpdk"])]
        {
            let status =
                Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
            if !status.is_ok_and(|status| status.success()) {
                return Err(format!("needs make, a C compiler and libdpdk-dev: `{program}` failed"));
            }
        }
        let archive = Path::new(THALWEG).with_file_name("libthalweg_c.a");
        if !archive.exists() {
            return Err(format!("needs {}: cargo build -p thalweg-c", archive.display()));
        }
        let build = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dpdk-forward");
        let include = root().join("crates/thalweg-c/include");
        let mut make = Command::new("make");
        make.arg("-C").arg(root().join("examples/dpdk-forward"));
        make.arg(format!("ARCHIVE={}", archive.display())).arg(format!("INCLUDE={}", include.display()));
        make.arg(format!("BUILD={}", build.display()));
        succeed(make.arg("CFLAGS=-O1 -Werror"));
        Ok(build.join("thalweg-dpdk-forward"))
    });
    match built {
        Ok(program) => Some(program),
        Err(reason) => skip(test, reason),
    }
}

fn succeed(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Forwards a trace and returns the result.
fn forward(program: &Path, trace: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(program);
    command.args(EAL).args(["-m", "256", "--", "--trace"]).arg(trace).args(arguments);
    serde_json::from_str(&succeed(&mut command)).unwrap()
}

/// What two programs made of a trace.
struct Counted {
    /// The sketch of `thalweg watch`, and that of the forwarder.
    states: [AnyState<KeyBytes>; 2],
    summary: Value,
    result: Value,
}

/// Counts a trace with both programs, in sketches of the same size and seed. The forwarder has packet buffers of `segment` bytes.
fn count_twice(program: &Path, trace: &Path, segment: &str) -> Counted {
    let folder = tempfile::tempdir().unwrap();
    let (sketches, saved) = (folder.path().join("watch"), folder.path().join("forwarder.tsk"));
    let options = ["--json", "--no-table", "--tasks", "heavy:1%", "--seed", "7", "--window", "1h"];
    let paths = ["--save-sketches", sketches.to_str().unwrap(), trace.to_str().unwrap()];
    let summary = watch(&[&options[..], &paths].concat()).ended_with(0).summary();
    let size = summary["tasks"]["sizes"][0]["size"].as_str().unwrap();
    // "5 x 16384 counters, 100 keys"
    let words: Vec<&str> = size.split_whitespace().collect();
    let ["5", "x", width, "counters,", keys, "keys"] = words[..] else { panic!("{size}") };
    let shape = ["--sketch", "count-sketch", "--width", width, "--top-k", keys, "--hash-seed", "7"];
    let output = ["--ring", "64", "--segment", segment, "--save", saved.to_str().unwrap()];
    let result = forward(program, trace, &[&shape[..], &output].concat());
    let files: Vec<PathBuf> = fs::read_dir(sketches).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let states = [&files[0], &saved].map(|file| AnyState::decode(&fs::read(file).unwrap()).unwrap().1);
    Counted { states, summary, result }
}

/// Returns the state in bytes, without its labels and window.
fn bytes(state: &AnyState<KeyBytes>) -> Vec<u8> {
    state.encode(&Meta::default())
}

/// Returns the counters and totals of a state in bytes.
fn counters(state: &AnyState<KeyBytes>) -> Vec<u8> {
    let AnyState::I32(Linear::CountSketch(rows)) = state else { panic!("not a Count Sketch of 32 bits") };
    bytes(&Linear::CountSketch(RowState { sketch: rows.sketch.clone(), top: None }).into())
}

fn example() -> PathBuf {
    root().join("examples/two-hosts.pcap")
}

#[test]
fn the_sketch_of_the_forwarder_equals_that_of_watch() {
    let Some(program) = forwarder("the_sketch_of_the_forwarder_equals_that_of_watch") else { return };
    let Counted { states: [watched, forwarded], summary, result } = count_twice(program, &example(), "2048");
    assert!(bytes(&watched) == bytes(&forwarded), "the states differ");
    assert_eq!(number(&result, "packets"), number(&summary, "packets"));
    assert_eq!(number(&result, "packets_without_key"), number(&summary, "non_ip"));
    assert_eq!(number(&result, "tx_dropped"), 0);
}

#[test]
fn damaged_and_unusual_frames_are_forwarded_and_counted_as_watch_counts_them() {
    let test = "damaged_and_unusual_frames_are_forwarded_and_counted_as_watch_counts_them";
    let Some(program) = forwarder(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("damaged.pcap");
    let frames = damaged_frames(20_000);
    fs::write(&trace, pcap(&frames)).unwrap();
    // With 16 bytes, every header is in several segments.
    for segment in ["2048", "16"] {
        let Counted { states: [watched, forwarded], summary, result } = count_twice(program, &trace, segment);
        assert_eq!(number(&result, "packets"), frames.len() as u64, "all are forwarded");
        let without_key = number(&summary, "non_ip") + number(&summary, "malformed");
        assert_eq!(number(&result, "packets_without_key"), without_key);
        assert!(1_000 < without_key && without_key < 15_000, "{without_key} frames without a key");
        // More flows than candidates: those differ with the size of a batch.
        assert!(counters(&watched) == counters(&forwarded), "the counters differ");
    }
}

#[test]
fn sampled_packets_alone_are_read() {
    let Some(program) = forwarder("sampled_packets_alone_are_read") else { return };
    let run = |sampling| {
        forward(program, &example(), &["--sketch", "count-min", "--sampling", sampling, "--exact"])
    };
    let (all, sampled) = (run("1"), run("1/64"));
    assert_eq!(number(&all, "packets_read"), 9_000);
    assert_eq!((number(&sampled, "packets"), number(&sampled, "failures")), (9_000, 0));
    // 9,000 times 1 - (63/64)^5 is 682, with a standard deviation of 25.
    assert!((500..900).contains(&number(&sampled, "packets_read")), "{sampled}");
    assert_eq!(all["relative_error"].as_f64(), Some(0.0), "{all}");
}

/// Frames of the example with headers of all kinds in front of their ports, and with a few bytes changed at random.
fn damaged_frames(count: usize) -> Vec<Vec<u8>> {
    let capture = fs::read(example()).unwrap();
    let originals = frames_of(&capture);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        // xorshift64 (Marsaglia 2003)
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    };
    let mut frames = Vec::new();
    while frames.len() < count {
        let mut frame = originals[random(originals.len())].to_vec();
        if random(3) == 0 {
            insert_headers(&mut frame, random(6));
        }
        for _ in 0..random(3) {
            // Not where fragments are numbered: `watch` gives later fragments the ports of the first.
            let position = random(frame.len().min(64));
            if !(18..24).contains(&position) && !(54..62).contains(&position) {
                frame[position] = random(256) as u8;
            }
        }
        if random(4) == 0 {
            let tag = [[0x81, 0, 0, 7], [0x88, 0xa8, 0, 8], [0x91, 0, 0, 9]][random(3)];
            let at = frame.len().min(12);
            frame.splice(at..at, tag);
        }
        if random(8) == 0 {
            frame.truncate(random(frame.len()).max(1));
        }
        frames.push(frame);
    }
    frames
}

/// Puts an IPv4 option, or an extension header behind an IPv4 or IPv6 header, in front of the payload.
fn insert_headers(frame: &mut Vec<u8>, kind: usize) {
    match frame[12..15] {
        [0x08, 0x00, 0x45] if kind < 3 => {
            frame[14] = 0x46;
            frame.splice(34..34, [1, 1, 1, 0]);
        }
        [0x08, 0x00, 0x45] => {
            let protocol = std::mem::replace(&mut frame[23], 51);
            frame.splice(34..34, [protocol, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
        }
        [0x86, 0xdd, _] => {
            // Hop-by-hop, routing, fragment (first, whole), authentication, destination options.
            let number = [0, 43, 44, 51, 60, 44][kind];
            let next = std::mem::replace(&mut frame[20], number);
            let length = if number == 51 { 2 } else { 0 };
            let header = [next, length, 0, u8::from(kind == 5), 0, 0, 0, 3];
            frame.splice(54..54, header.into_iter().chain([0; 8].into_iter().filter(|_| number == 51)));
        }
        _ => {}
    }
}

/// Returns the frames of a pcap file in little-endian byte order.
fn frames_of(capture: &[u8]) -> Vec<&[u8]> {
    let (mut frames, mut rest) = (Vec::new(), &capture[24..]);
    while let Some((header, after)) = rest.split_at_checked(16) {
        let length = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        frames.push(&after[..length]);
        rest = &after[length..];
    }
    frames
}

/// Returns a pcap file (version 2.4, Ethernet), with a packet a microsecond.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file: Vec<u8> = [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 262_144, 1].map(u32::to_le_bytes).concat();
    for (number, frame) in frames.iter().enumerate() {
        let length = frame.len() as u32;
        file.extend([1_000, number as u32, length, length].map(u32::to_le_bytes).concat());
        file.extend(frame);
    }
    file
}
