//! Flows, hosts and pairs of `thalweg watch`: report, JSON, CSV, capture filters.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::program::{root, watch};

fn example() -> String {
    root().join("examples/two-hosts.pcap").to_str().unwrap().to_owned()
}

/// Returns the lines of a type.
fn lines_of(arguments: &[&str], kind: &str) -> Vec<Value> {
    let run = watch(arguments).ended_with(0);
    run.lines().into_iter().filter(|line| line["type"] == kind).collect()
}

fn number(line: &Value, field: &str) -> u64 {
    line[field].as_u64().unwrap_or_else(|| panic!("{field} in {line}"))
}

#[test]
fn hosts_and_pairs_are_the_sums_of_their_flows() {
    let file = example();
    let flows = lines_of(&["--json", "--flows", &file], "flow");
    let (mut hosts, mut pairs) = (BTreeMap::new(), BTreeMap::new());
    for flow in &flows {
        let [src, dst] = ["src", "dst"].map(|end| flow["flow"][end].as_str().unwrap().to_owned());
        let forward = [number(flow, "packets"), number(flow, "bytes")];
        let reverse = [number(flow, "reverse_packets"), number(flow, "reverse_bytes")];
        let mut add = |host: &str, sent: [u64; 2], received: [u64; 2]| {
            let sum: &mut [u64; 5] = hosts.entry(host.to_owned()).or_default();
            let more = [sent[0], sent[1], received[0], received[1], 1];
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        };
        add(&src, forward, reverse);
        add(&dst, reverse, forward);
        let pair: &mut (u64, u64) = pairs
            .entry([&src, &dst].map(String::clone).into_iter().collect::<std::collections::BTreeSet<_>>())
            .or_default();
        pair.0 += forward[1] + reverse[1];
        pair.1 += 1;
    }
    let written = lines_of(&["--json", "--by", "host", &file], "host");
    assert_eq!(written.len(), hosts.len());
    for line in &written {
        let fields = ["sent_packets", "sent_bytes", "received_packets", "received_bytes", "flows"];
        let host = line["host"].as_str().unwrap();
        assert_eq!(fields.map(|field| number(line, field)), hosts[host], "{host}");
    }
    let written = lines_of(&["--json", "--by", "pair", &file], "pair");
    assert_eq!(written.len(), pairs.len());
    for line in &written {
        let pair = ["host", "peer"].map(|end| line[end].as_str().unwrap().to_owned()).into_iter().collect();
        let bytes = number(line, "sent_bytes") + number(line, "received_bytes");
        assert_eq!((bytes, number(line, "flows")), pairs[&pair]);
    }
}

#[test]
fn threads_and_filters_give_the_same_hosts() {
    let file = example();
    let hosts = |more: &[&str]| lines_of(&[&["--json", "--by", "host"], more, &[&file]].concat(), "host");
    assert_eq!(hosts(&["--threads", "3"]), hosts(&[]));
    let of_port = hosts(&["--filter", "port 5201"]);
    assert!(!of_port.is_empty() && of_port.len() < hosts(&[]).len(), "{of_port:?}");
    // Amounts are those of the host, not of its flows.
    let most = number(&hosts(&[])[0], "sent_bytes") + number(&hosts(&[])[0], "received_bytes");
    let filter = format!("bytes >= {most}");
    assert!(
        hosts(&["--filter", &filter])
            .iter()
            .all(|line| { number(line, "sent_bytes") + number(line, "received_bytes") >= most })
    );
    assert!(!hosts(&["--filter", &filter]).is_empty());
}

#[test]
fn the_report_lists_hosts_and_pairs() {
    let file = example();
    let report = watch(&["--summary", "--by", "host", "-n", "1", &file]).ended_with(0).stdout;
    assert!(report.contains("\nLargest hosts\n"), "{report}");
    assert!(report.contains(" more (--limit 10 shows more, --json shows all)"), "{report}");
    let report = watch(&["--summary", "--by", "pair", &file]).ended_with(0).stdout;
    assert!(report.contains("  192.0.2.1 - 192.0.2.2"), "{report}");
}

#[test]
fn csv_has_the_values_of_json() {
    let file = example();
    let flows = lines_of(&["--json", "--flows", &file], "flow");
    let csv = watch(&["--csv", &file]).ended_with(0).stdout;
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some(
            "src,dst,src_port,dst_port,protocol,flow_start,flow_end,packets,bytes,reverse_packets,reverse_bytes,\
             tcp_flags,reverse_tcp_flags,cheetah,reverse_cheetah,end_reason"
        )
    );
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let of_json = flows.iter().map(|flow| {
        let name = ["src", "dst", "src_port", "dst_port", "protocol"].map(|field| text(&flow["flow"][field]));
        let rest = [
            "flow_start",
            "flow_end",
            "packets",
            "bytes",
            "reverse_packets",
            "reverse_bytes",
            "tcp_flags",
            "reverse_tcp_flags",
            "cheetah",
            "reverse_cheetah",
            "end_reason",
        ];
        let fields: Vec<String> = name.into_iter().chain(rest.map(|field| text(&flow[field]))).collect();
        fields.join(",")
    });
    assert_eq!(lines.collect::<Vec<_>>(), of_json.collect::<Vec<_>>());

    let hosts = watch(&["--csv", "--by", "host", &file]).ended_with(0).stdout;
    assert!(hosts.starts_with("host,host_name,flows,sent_packets,sent_bytes,"), "{hosts}");
    assert_eq!(hosts.lines().count(), 1 + lines_of(&["--json", "--by", "host", &file], "host").len());
    let pairs = watch(&["--csv", "--by", "pair", &file]).ended_with(0).stdout;
    assert!(pairs.starts_with("host,host_name,peer,peer_name,flows,"), "{pairs}");
}

#[test]
fn names_are_added_only_on_request() {
    let file = example();
    let plain = lines_of(&["--json", "--by", "host", &file], "host");
    assert!(plain.iter().all(|line| line.get("host_name").is_none()));
    let error = watch(&["--csv", "--json", &file]).ended_with(2).stderr;
    assert!(error.contains("cannot be used with"), "{error}");
}

/// tcpdump is the judge: it selects the packets of the flow from the file, and no others.
#[test]
fn tcpdump_selects_exactly_the_flow_by_its_capture_filter() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        eprintln!("skipped: tcpdump is not installed");
        return;
    }
    let captures = std::env::var_os("THALWEG_CAPTURES").map(std::path::PathBuf::from);
    let more = captures
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|file| file.unwrap().path());
    let mut checked = 0;
    for file in [root().join("examples/two-hosts.pcap")].into_iter().chain(more) {
        let file = file.to_str().unwrap();
        let run = watch(&[
            "--json",
            "--flows",
            "--idle-timeout",
            "1h",
            "--active-timeout",
            "720h",
            "--linger",
            "1h",
            file,
        ]);
        for flow in run.lines().into_iter().filter(|line| line["type"] == "flow") {
            let filter = flow["capture_filter"].as_str().unwrap();
            let output =
                Command::new("tcpdump").args(["-n", "--count", "-r", file, filter]).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            let count =
                text.lines().find_map(|line| line.strip_suffix(" packets").or(line.strip_suffix(" packet")));
            let count: u64 = count.unwrap_or_else(|| panic!("{file} {filter}: {text}")).parse().unwrap();
            let expected = number(&flow, "packets") + number(&flow, "reverse_packets");
            if captures.is_some() && count != expected {
                eprintln!("{file}: {filter}: tcpdump {count}, thalweg {expected}");
                continue;
            }
            assert_eq!(count, expected, "{file}: {filter}");
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked}");
}
