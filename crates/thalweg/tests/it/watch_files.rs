//! `thalweg watch` on capture files.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use thalweg_wire::LinkType;

use crate::frames::{
    self, ACK, ARP, BEGIN, GRE, IPV4, IPV6, TCP, UDP, ethernet, gre, ipv4, ipv6, tcp, udp, vxlan,
};
use crate::program::{
    Run, THALWEG, capinfos, check_accounting, is_installed, number, output_of, root, skip, time_ns, watch,
    watch_stdin,
};

/// Packets and bytes on the wire of the example (see its README).
const EXAMPLE_PACKETS: u64 = 9_000;
const EXAMPLE_FRAME_BYTES: u64 = 10_488_620;
/// Ports of the senders of its two cheetah flows.
const IPERF3_CLIENT_PORT: u64 = 35_888;
const ARCHIVE_CLIENT_PORT: u64 = 43_776;

fn example() -> String {
    root().join("examples/two-hosts.pcap").to_str().unwrap().to_owned()
}

/// Writes a file in a temporary folder.
fn written(folder: &TempDir, name: &str, bytes: &[u8]) -> String {
    let path: PathBuf = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Returns all detections and flow records, sorted, because their order depends on the number of workers.
fn findings(run: &Run) -> Vec<String> {
    let mut lines = run.lines();
    lines.pop();
    let mut lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.sort();
    lines
}

/// Returns the counts of a summary that do not depend on the machine.
fn counts(run: &Run) -> Value {
    let mut summary = run.summary();
    let object = summary.as_object_mut().unwrap();
    for of_the_machine in ["elapsed_ns", "memory_bytes", "threads"] {
        object.remove(of_the_machine).unwrap();
    }
    summary
}

#[test]
fn every_packet_is_in_one_record_or_counter() {
    let run = watch(&["--json", "--flows", &example()]).ended_with(0);
    check_accounting(&run);
    let summary = run.summary();
    assert_eq!(number(&summary, "packets"), EXAMPLE_PACKETS);
    assert_eq!(number(&summary, "frame_bytes"), EXAMPLE_FRAME_BYTES);
    assert_eq!((number(&summary, "ip_packets"), number(&summary, "non_ip")), (8_998, 2));
    assert_eq!(number(&summary, "ip_bytes"), 10_362_564);
    assert_eq!(number(&summary, "malformed"), 0);
    match is_installed("capinfos", "--version") {
        true => assert_eq!(capinfos(Path::new(&example())), (EXAMPLE_PACKETS, EXAMPLE_FRAME_BYTES)),
        false => skip("every_packet_of_the_example, against capinfos", "needs capinfos"),
    }
}

#[test]
fn a_lower_threshold_detects_more_cheetahs() {
    let run = watch(&["--json", &example()]).ended_with(0);
    let cheetahs = run.of_type("cheetah");
    let [iperf3, archive] = cheetahs.as_slice() else { panic!("{cheetahs:#?}") };
    assert_eq!(iperf3["flow"]["src_port"], IPERF3_CLIENT_PORT);
    assert_eq!(iperf3["flow"]["dst"], "192.0.2.2");
    assert_eq!(archive["flow"]["dst_port"], ARCHIVE_CLIENT_PORT);
    assert_eq!(archive["flow"]["src"], "2001:db8::2");
    for (cheetah, after_ms) in [(iperf3, 40.4), (archive, 25.5)] {
        let delay_ms = (time_ns(cheetah, "detected") - time_ns(cheetah, "flow_start")) as f64 / 1e6;
        assert!((delay_ms - after_ms).abs() < 1.0, "found after {delay_ms} ms: {cheetah}");
        assert!(number(cheetah, "rate_bps") > 50_000_000, "{cheetah}");
    }
    assert_eq!(run.of_type("cheetah_end").len(), 2);
    assert!(run.of_type("flow").is_empty(), "flow lines were not requested");
    assert_eq!(number(&run.summary(), "cheetahs"), 2);

    let lower = watch(&["--json", "--rate-threshold", "35mbps", &example()]).ended_with(0);
    assert_eq!(number(&lower.summary(), "cheetahs"), 3);
    let none = watch(&["--json", "--detector", "none", &example()]).ended_with(0);
    assert_eq!(number(&none.summary(), "cheetahs"), 0);
}

#[test]
fn detections_do_not_depend_on_the_number_of_workers() {
    let one = watch(&["--json", "--flows", "--threads", "1", &example()]).ended_with(0);
    let three = watch(&["--json", "--flows", "--threads", "3", &example()]).ended_with(0);
    check_accounting(&three);
    assert_eq!(findings(&three), findings(&one));
    assert_eq!(counts(&three), counts(&one));
    assert_eq!(number(&three.summary(), "threads"), 3);
}

#[test]
fn detections_do_not_depend_on_compression_or_input() {
    let plain = watch(&["--json", "--flows", &example()]).ended_with(0);
    let from_stdin = watch_stdin(&["--json", "--flows", "-"], &fs::read(example()).unwrap()).ended_with(0);
    assert_eq!(findings(&from_stdin), findings(&plain));
    assert_eq!(counts(&from_stdin), counts(&plain));
    let folder = tempfile::tempdir().unwrap();
    for packer in ["gzip", "zstd"] {
        if !is_installed(packer, "--version") {
            skip("findings_do_not_depend_on_compression", &format!("needs {packer}"));
            continue;
        }
        let packed = Command::new(packer).args(["-c", &example()]).output().unwrap().stdout;
        // The format follows from the bytes, not from the name.
        let packed = written(&folder, &format!("{packer}.bin"), &packed);
        let unpacked = watch(&["--json", "--flows", &packed]).ended_with(0);
        assert_eq!(findings(&unpacked), findings(&plain), "{packer}");
        assert_eq!(counts(&unpacked), counts(&plain), "{packer}");
    }
}

#[test]
fn several_files_are_read_one_after_another() {
    let folder = tempfile::tempdir().unwrap();
    let datagram = |port| ethernet(IPV4, &ipv4(1, 2, UDP, &udp(port, 53, b"?")));
    let first = written(&folder, "first.pcap", &frames::whole(&[datagram(1), datagram(2)]));
    let second = written(&folder, "second.pcap", &frames::whole(&[datagram(1)]));
    let run = watch(&["--json", "--flows", &first, &second]).ended_with(0);
    check_accounting(&run);
    let summary = run.summary();
    assert_eq!((number(&summary, "packets"), number(&summary, "flows")), (3, 2));
}

#[test]
fn the_summary_has_all_sections() {
    let run = watch(&["--summary", &example()]).ended_with(0);
    assert_eq!(run.stderr, "");
    for line in [
        "packets      9,000 (",
        "Cheetah flows: 2 (over 50.0 Mbit/s in some window of 100 ms)",
        "tcp 192.0.2.1:35888 > 192.0.2.2:5201",
        "tcp [2001:db8::2]:80 > [2001:db8::1]:43776",
        "Largest flows",
        "2 frames without IP",
    ] {
        assert!(run.stdout.contains(line), "no `{line}` in\n{}", run.stdout);
    }
    let headings = ["Traffic", "Cheetah flows", "Largest flows", "Flow table", "Notes"];
    let places = headings.map(|heading| run.stdout.find(heading).unwrap());
    assert!(places.is_sorted(), "{}", run.stdout);
    // Without a terminal, the summary is the default.
    let default = watch(&[&example()]).ended_with(0);
    let without_speed = |run: &Run| -> Vec<String> {
        run.stdout.lines().filter(|line| !line.contains("run time")).map(str::to_owned).collect()
    };
    assert_eq!(without_speed(&default), without_speed(&run));
}

#[test]
fn a_truncated_file_is_measured_up_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let datagram = ethernet(IPV4, &ipv4(1, 2, UDP, &udp(9, 53, b"?")));
    let file = frames::whole(&[datagram.clone(), datagram.clone(), datagram]);
    let cut = written(&folder, "cut.pcap", &file[..file.len() - 5]);
    for workers in ["1", "3"] {
        let run = watch(&["--json", "--flows", "--threads", workers, &cut]).ended_with(3);
        check_accounting(&run);
        let summary = run.summary();
        assert_eq!(number(&summary, "packets"), 2);
        assert_eq!(summary["incomplete_sources"][0]["source"], *cut);
        assert!(run.stderr.starts_with("thalweg: warning: "), "{}", run.stderr);
        assert!(run.stderr.contains("is truncated: the record at offset"), "{}", run.stderr);
    }
    let report = watch(&["--summary", &cut]).ended_with(3);
    assert!(report.stdout.contains("packets      2 ("), "{}", report.stdout);
    // A valid file after it is still measured.
    let whole = written(&folder, "whole.pcap", &file);
    let both = watch(&["--json", &cut, &whole]).ended_with(3);
    assert_eq!(number(&both.summary(), "packets"), 5);
}

#[test]
fn other_files_are_refused_with_name_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    let header_alone = frames::file(LinkType::Other(147), 64, &[]);
    let cases = [
        (written(&folder, "empty.pcap", b""), "is empty"),
        (written(&folder, "notes.pcap", b"dear diary, nothing happened today"), "is not a capture file"),
        (written(&folder, "usb.pcap", &header_alone), "link type 147"),
        (folder.path().join("missing.pcap").to_str().unwrap().to_owned(), "No such file"),
    ];
    for (source, reason) in cases {
        let run = watch(&["--json", &source]).ended_with(1);
        assert_eq!(run.stdout, "", "{source}");
        assert!(run.stderr.starts_with("thalweg: "), "{}", run.stderr);
        assert!(run.stderr.contains(&source) && run.stderr.contains(reason), "{}", run.stderr);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_skipped_and_the_others_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (notes, missing) =
        (written(&folder, "notes.pcap", b"dear diary, nothing happened today"), "/nonexistent.pcap");
    let run = watch(&["--json", &notes, &example(), missing]).ended_with(3);
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", run.stderr);
    assert!(
        lines[0].contains("notes.pcap") && lines.iter().all(|line| line.ends_with("; skipped")),
        "{}",
        run.stderr
    );
    let summary = run.summary();
    assert_eq!(number(&summary, "packets"), 9_000);
    let incomplete = summary["incomplete_sources"].as_array().unwrap();
    assert_eq!(
        [&incomplete[0]["source"], &incomplete[1]["source"]],
        [&Value::from(notes), &Value::from(missing)]
    );
}

#[test]
fn a_capture_filter_in_place_of_a_source_is_explained() {
    let file = example();
    let expected = "thalweg: no file or interface \"tcp port 80\". To measure only some packets, give a capture filter: \
                    -f 'tcp port 80'\n";
    for sources in
        [&["tcp port 80", &file][..], &["tcp", "port", "80", &file], &["lo", &file, "tcp", "port", "80"]]
    {
        assert_eq!(watch(sources).ended_with(2).stderr, expected, "{sources:?}");
    }
}

#[test]
fn files_and_interfaces_are_not_mixed() {
    let file = example();
    let expected = format!(
        "thalweg: cannot watch files and interfaces in one run: {file} is a file, lo is an interface\n"
    );
    let run = watch(&["--json", "lo", &file]).ended_with(2);
    assert_eq!((run.stdout.as_str(), run.stderr), ("", expected));
    let expected = "thalweg: --replay applies only to files: lo is an interface\n";
    assert_eq!(watch(&["--replay", "lo"]).ended_with(2).stderr, expected);
}

#[test]
fn a_file_without_packets_has_an_empty_summary() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(&folder, "quiet.pcap", &frames::whole(&[]));
    let run = watch(&["--json", "--flows", &file]).ended_with(0);
    check_accounting(&run);
    let summary = run.summary();
    for field in ["packets", "bytes", "flows", "cheetahs"] {
        assert_eq!(number(&summary, field), 0, "{field}");
    }
    assert_eq!((&summary["start"], &summary["end"]), (&Value::Null, &Value::Null));
    watch(&["--summary", &file]).ended_with(0);
}

#[test]
fn unusual_frames_are_counted_by_kind() {
    let folder = tempfile::tempdir().unwrap();
    let good = ethernet(IPV4, &ipv4(1, 2, UDP, &udp(9, 53, &[0; 60])));
    let wrong_version = ethernet(IPV4, &[&[0x65][..], &[0; 19]].concat());
    let mut too_long_claimed = good.clone();
    too_long_claimed[16..18].copy_from_slice(&1000_u16.to_be_bytes());
    let mut no_length = good.clone();
    no_length[16..18].fill(0);
    let later_fragment = ethernet(IPV4, &frames::ipv4_fragment(1480, false, UDP, &[0; 8]));
    let length = good.len();
    let frames = [
        (0, good.clone(), length),
        (5, Vec::new(), 0),               // length zero
        (3, good.clone(), length),        // earlier timestamp
        (6, good[..34].to_vec(), length), // truncated ports
        (7, good[..20].to_vec(), length), // truncated before the addresses
        (8, wrong_version.clone(), wrong_version.len()),
        (9, ethernet(ARP, &[0; 28]), 42),
        (10, too_long_claimed, length),
        (11, no_length, length),
        (12, later_fragment.clone(), later_fragment.len()),
    ];
    let file = written(&folder, "odd.pcap", &frames::file(LinkType::Ethernet, 90, &frames));
    let run = watch(&["--json", "--flows", &file]).ended_with(0);
    check_accounting(&run);
    let summary = run.summary();
    assert_eq!(number(&summary, "packets"), 10);
    assert_eq!(number(&summary, "frame_bytes"), frames.iter().map(|frame| frame.2 as u64).sum::<u64>());
    assert_eq!(number(&summary, "backward_timestamps"), 1);
    assert_eq!(number(&summary, "beyond_snap_length"), 4, "each of {length} bytes");
    assert_eq!(number(&summary, "ports_not_captured"), 1);
    assert_eq!(number(&summary, "non_ip"), 1);
    assert_eq!(number(&summary, "malformed"), 3);
    let kinds = &summary["malformed_by_kind"];
    let kinds = ["frame_too_short", "truncated", "ip_version"].map(|kind| number(kinds, kind));
    assert_eq!(kinds, [1, 1, 1]);
    assert_eq!(number(&summary, "length_beyond_frame"), 1);
    assert_eq!(number(&summary, "length_from_frame"), 1);
    assert_eq!(number(&summary, "portless_fragments"), 1);
    assert_eq!(time_ns(&summary, "start"), BEGIN.0);
    let report = watch(&["--summary", &file]).ended_with(0).stdout;
    for line in [
        "1 packets with a timestamp before that of the previous packet",
        "4 frames longer than their snap length",
    ] {
        assert!(report.contains(line), "no `{line}` in\n{report}");
    }
}

#[test]
fn a_capture_filter_selects_the_packets_of_tcpdump() {
    const NAME: &str = "a_capture_filter_selects_the_packets_of_tcpdump";
    if !is_installed("tcpdump", "--version") {
        return skip(NAME, "needs tcpdump");
    }
    for expression in ["tcp port 5201 and ip6", "icmp or icmp6", "udp", "not ip and not ip6", "greater 1000"]
    {
        let run = watch(&["--json", "--flows", "--capture-filter", expression, &example()]);
        if run.stderr.contains("needs libpcap") {
            return skip(NAME, "needs libpcap");
        }
        let run = run.ended_with(0);
        check_accounting(&run);
        let theirs = output_of("tcpdump", ["-n", "-r", &example(), expression]).lines().count() as u64;
        let summary = run.summary();
        assert_eq!(number(&summary, "packets"), theirs, "{expression}");
        assert_eq!(number(&summary, "filtered"), EXAMPLE_PACKETS - theirs, "{expression}");
        assert!(theirs > 0, "{expression} should take some");
    }
    let wrong = watch(&["--json", "--capture-filter", "tcp and and", &example()]).ended_with(2);
    assert!(wrong.stderr.contains("capture filter `tcp and and`"), "{}", wrong.stderr);
    assert_eq!(wrong.stdout, "");
}

#[test]
fn a_flow_filter_selects_lines_and_changes_no_counter() {
    let all = watch(&["--json", "--flows", &example()]).ended_with(0);
    let ports = |run: &Run, name: &str| -> Vec<(u64, u64)> {
        let flow = |line: &Value| (number(&line["flow"], "src_port"), number(&line["flow"], "dst_port"));
        run.of_type(name).iter().map(flow).collect()
    };
    let bytes = |line: &&Value| number(line, "bytes") + number(line, "reverse_bytes");
    for (filter, is_selected) in [
        ("port 5201", (|line| number(&line["flow"], "dst_port") == 5201) as fn(&Value) -> bool),
        ("bytes > 1m and proto tcp", |line| {
            number(line, "bytes") + number(line, "reverse_bytes") > 1_000_000
                && number(&line["flow"], "protocol") == 6
        }),
        ("flags S and not flags RF", |line| {
            let flags = number(line, "tcp_flags") | number(line, "reverse_tcp_flags");
            number(&line["flow"], "protocol") == 6 && flags & 2 != 0 && flags & 5 == 0
        }),
        ("out packets 0", |line| number(line, "reverse_packets") == 0),
        ("cheetah", |line| line["cheetah"] == true || line["reverse_cheetah"] == true),
    ] {
        let run = watch(&["--json", "--flows", "--filter", filter, &example()]).ended_with(0);
        let lines = all.of_type("flow");
        let expected: Vec<&Value> = lines.iter().filter(|line| is_selected(line)).collect();
        let flows = run.of_type("flow");
        assert_eq!(flows.iter().collect::<Vec<_>>(), expected, "{filter}");
        assert!(flows.len() < lines.len() && (!flows.is_empty() || filter.starts_with("flags")), "{filter}");
        assert!(expected.iter().map(bytes).sum::<u64>() <= EXAMPLE_FRAME_BYTES);
        let mut summary = counts(&run);
        assert_eq!(summary.as_object_mut().unwrap().remove("filter"), Some(filter.into()));
        assert_eq!(summary, counts(&all), "{filter}");
    }
    let run = watch(&["--json", "--filter", "src port 35888", &example()]).ended_with(0);
    assert_eq!(ports(&run, "cheetah"), [(IPERF3_CLIENT_PORT, 5201)]);
    assert_eq!(ports(&run, "cheetah_end"), [(IPERF3_CLIENT_PORT, 5201)]);
    let run = watch(&["--json", "--filter", "bytes > 2m", &example()]).ended_with(0);
    assert_eq!(
        (ports(&run, "cheetah").len(), ports(&run, "cheetah_end").len()),
        (0, 1),
        "each by its own bytes"
    );
}

#[test]
fn a_flow_filter_selects_the_lists_of_the_summary() {
    let all = watch(&["--summary", &example()]).ended_with(0).stdout;
    let report = watch(&["--summary", "--threads", "2", "--filter", "ipv6 and port 80", &example()])
        .ended_with(0)
        .stdout;
    assert!(
        report.contains("filter       ipv6 and port 80 (lists only; all counts are of all traffic)"),
        "{report}"
    );
    let list = |report: &str, heading: &str| -> Vec<String> {
        let after = report.split_once(heading).unwrap().1;
        let rows = after
            .split("\n\n")
            .next()
            .unwrap()
            .lines()
            .filter(|line| line.contains(" > ") && !line.contains("flow ("));
        rows.map(str::to_owned).collect()
    };
    for heading in ["Cheetah flows: 2", "Largest flows"] {
        let rows = list(&report, heading);
        assert!(!rows.is_empty() && rows.iter().all(|row| row.contains("[2001:db8::")), "{report}");
        assert!(list(&all, heading).len() > rows.len());
    }
    assert_eq!(list(&report, "Cheetah flows: 2").len(), 1);
    for line in ["packets      9,000", "flows        "] {
        let of = |report: &str| report.lines().find(|row| row.contains(line)).map(str::to_owned);
        assert!(of(&report).is_some() && of(&report) == of(&all), "{line}");
    }
}

#[test]
fn an_invalid_flow_filter_is_refused_with_its_column() {
    for (arguments, message) in [
        (
            &["--filter", "src port 443 or port https"][..],
            "filter, column 22: expected a number, found 'https'",
        ),
        (&["--filter", "tcp port 443"], "filter, column 1: expected a term such as 'proto tcp', found 'tcp'"),
        (&["--filter", "src as 5"], "filter, column 5: 'as' is not known here; known: any, ipv4, ipv6, host"),
        (
            &["--no-table", "--tasks", "entropy", "--filter", "any"],
            "--filter cannot be used here: it applies only to the flow table",
        ),
    ] {
        let run = watch(&[arguments, &[example().as_str()]].concat()).ended_with(2);
        assert!(run.stderr.contains(message), "{}", run.stderr);
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn decapsulated_tunnels_show_their_inner_flows() {
    let folder = tempfile::tempdir().unwrap();
    let segment = ipv4(1, 2, TCP, &tcp(443, 51_000, ACK, b"hello"));
    let overlay = ethernet(IPV4, &ipv4(3, 4, UDP, &vxlan(&ethernet(IPV4, &segment))));
    let routed = ethernet(IPV4, &ipv4(5, 6, GRE, &gre(IPV6, &ipv6(7, 8, UDP, &udp(1, 2, b"inside")))));
    let file = written(&folder, "tunnels.pcap", &frames::whole(&[overlay, routed]));
    let flows = |run: &Run| {
        let flows = run.of_type("flow");
        let mut named: Vec<String> = flows
            .iter()
            .map(|line| {
                let flow = &line["flow"];
                let text = |field: &str| flow[field].as_str().unwrap().to_owned();
                let (src, dst) = (text("src"), text("dst"));
                let [protocol, src_port, dst_port] =
                    ["protocol", "src_port", "dst_port"].map(|field| number(flow, field));
                format!("{protocol} {src} {src_port} {dst} {dst_port} {}", number(line, "bytes"))
            })
            .collect();
        named.sort();
        named
    };
    let outer = watch(&["--json", "--flows", &file]).ended_with(0);
    assert_eq!(flows(&outer), ["17 10.0.0.3 50000 10.0.0.4 4789 95", "47 10.0.0.5 0 10.0.0.6 0 78"]);
    let inner = watch(&["--json", "--flows", "--decapsulate", &file]).ended_with(0);
    assert_eq!(flows(&inner), ["17 2001:db8::7 1 2001:db8::8 2 54", "6 10.0.0.1 443 10.0.0.2 51000 45"]);
    assert_eq!((number(&outer.summary(), "decapsulated"), number(&inner.summary(), "decapsulated")), (0, 2));
    check_accounting(&inner);
}

/// Writes a file with datagrams of one flow, 100 ms apart.
fn slow_file(folder: &TempDir, count: u64) -> String {
    let datagram = ethernet(IPV4, &ipv4(1, 2, UDP, &udp(9, 53, b"?")));
    let timed: Vec<_> = (0..count).map(|n| (100 * n, datagram.clone(), datagram.len())).collect();
    written(folder, "slow.pcap", &frames::file(LinkType::Ethernet, 64, &timed))
}

#[test]
fn a_replay_takes_its_duration_over_its_speed() {
    let folder = tempfile::tempdir().unwrap();
    let file = slow_file(&folder, 61); // six seconds
    let started = Instant::now();
    let run = watch(&["--json", "--flows", "--replay=10", &file]).ended_with(0);
    // The upper limit depends on the machine.
    assert!(started.elapsed() >= Duration::from_millis(300), "{:?}", started.elapsed());
    check_accounting(&run);
    assert_eq!(number(&run.summary(), "packets"), 61);
}

#[test]
fn a_duration_counts_packet_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = slow_file(&folder, 61);
    for more in [&[][..], &["--threads", "2"], &["--replay=1000"]] {
        let arguments = [&["--json", "--flows", "--duration", "950ms"], more, &[&file]].concat();
        let run = watch(&arguments).ended_with(0);
        check_accounting(&run);
        let summary = run.summary();
        assert_eq!(number(&summary, "packets"), 10, "those of 0 to 900 ms: {arguments:?}");
        assert_eq!(time_ns(&summary, "end"), BEGIN.0 + 900_000_000, "{arguments:?}");
    }
}

#[test]
fn a_duration_starts_with_the_first_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = slow_file(&folder, 10);
    let run = watch(&["--json", "--duration", "950ms", &file, &file]).ended_with(0);
    assert_eq!(number(&run.summary(), "packets"), 20, "both files begin at the same time");
    let run = watch(&["--json", "--duration", "450ms", &file, &file]).ended_with(0);
    assert_eq!(number(&run.summary(), "packets"), 5, "over in the first file");
}

#[test]
fn ended_flows_are_written_while_the_input_is_idle() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(slow_file(&folder, 61)).unwrap();
    for workers in ["1", "2"] {
        let mut child = Command::new(THALWEG)
            .args(["watch", "--json", "--flows", "--active-timeout", "1s", "--threads", workers, "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(&bytes).unwrap();
        input.flush().unwrap();
        // The input stays open and idle. A flow that reaches its active timeout is still written.
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&line).unwrap()["end_reason"],
            "active",
            "{workers} workers"
        );
        drop(input);
        child.wait().unwrap();
    }
}

#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    let mut child = Command::new(THALWEG)
        .args(["watch", "--json", "--flows", &example()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::with_capacity(64, child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    serde_json::from_str::<Value>(&line).unwrap();
    drop(output);
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_directory_stands_for_its_capture_files() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().to_str().unwrap();
    let empty = watch(&["--summary", directory]).ended_with(1).stderr;
    assert!(empty.contains("no capture files: expected names that end in .pcap, "), "{empty}");
    let capture = std::fs::read(root().join("examples/two-hosts.pcap")).unwrap();
    for name in ["b.pcap", "a.pcap3", "notes.txt", ".hidden.pcap"] {
        std::fs::write(folder.path().join(name), &capture).unwrap();
    }
    std::fs::create_dir(folder.path().join("more.pcap")).unwrap();
    let run = watch(&["--json", directory]).ended_with(0);
    assert_eq!(number(&run.summary(), "packets"), 2 * 9000);
}
