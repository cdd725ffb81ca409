//! Queries of stored flow records by the API, on a store that `thalweg watch` wrote.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use serde_json::Value;

use super::{CAPTURE, Serve};
use crate::program::{number, root, time_ns, watch};

/// The time of the capture.
const RANGE: &str = "start=2026-11-21T22:00:00Z&end=2026-11-21T23:00:00Z";

/// One direction of a flow in JSON lines.
struct Direction {
    pair: (String, String),
    dst_port: u64,
    bytes: u64,
    packets: u64,
    start_us: u64,
    end_us: u64,
}

/// Writes a store, and returns its flows as JSON lines have them.
fn write_store(serve: &Serve) -> Vec<Direction> {
    let store = serve.path("store");
    let capture = root().join("examples/two-hosts.pcap");
    let run = watch(&["--json", "--flows", "--records", store.to_str().unwrap(), capture.to_str().unwrap()]);
    // Started by root, the daemon changes its user.
    assert!(Command::new("chmod").args(["-R", "a+rwX"]).arg(&store).status().unwrap().success());
    let directions = |line: &Value| {
        let flow = &line["flow"];
        let text = |name: &str| flow[name].as_str().unwrap().to_owned();
        let one = |(src, dst, dst_port): (&str, &str, &str), bytes: &str, packets: &str| Direction {
            pair: (text(src), text(dst)),
            dst_port: number(flow, dst_port),
            bytes: number(line, bytes),
            packets: number(line, packets),
            start_us: time_ns(line, "flow_start") / 1000,
            end_us: time_ns(line, "flow_end") / 1000,
        };
        let forward = one(("src", "dst", "dst_port"), "bytes", "packets");
        let reverse = one(("dst", "src", "src_port"), "reverse_bytes", "reverse_packets");
        [forward, reverse].into_iter().filter(|direction| direction.packets > 0).collect::<Vec<_>>()
    };
    run.ended_with(0).of_type("flow").iter().flat_map(directions).collect()
}

/// Returns status and body of a response.
fn answer(serve: &Serve, path: &str) -> (String, Value) {
    let mut stream = TcpStream::connect(serve.address).unwrap();
    let host = serve.address;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].to_owned(), serde_json::from_str(body).unwrap())
}

#[test]
fn stored_records_answer_as_the_flows_that_were_written() {
    let mut serve = Serve::new(&[CAPTURE, "[records]\nfolder = \"store\"\n"].concat());
    let flows = write_store(&serve);
    assert!(flows.len() > 20, "{}", flows.len());
    serve.start();
    let total = |amount: fn(&Direction) -> u64| flows.iter().map(amount).sum::<u64>();

    let top = serve.get(&format!("/v1/records/top?by=pair&limit=1000&{RANGE}")).unwrap();
    let mut expected = BTreeMap::<_, [u64; 3]>::new();
    for flow in &flows {
        let sums = expected.entry(flow.pair.clone()).or_default();
        *sums = [sums[0] + flow.bytes, sums[1] + flow.packets, sums[2] + 1];
    }
    let groups = top["groups"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let found: BTreeMap<_, _> = groups
        .iter()
        .map(|group| {
            let pair = (text(&group["key"]["src"]), text(&group["key"]["dst"]));
            (pair, ["bytes", "packets", "flows"].map(|name| number(group, name)))
        })
        .collect();
    assert_eq!(found, expected);
    assert_eq!(number(&top["total"], "bytes"), total(|flow| flow.bytes));
    assert_eq!(number(&top["total"], "groups") as usize, expected.len());
    assert_eq!((&top["partial"], number(&top, "unreadable_files")), (&Value::Bool(false), 0));
    assert_eq!(number(&top, "pending_records"), 0);
    assert_eq!(number(&top, "records") as usize, flows.len());
    let bytes: Vec<u64> = groups.iter().map(|group| number(group, "bytes")).collect();
    assert!(bytes.is_sorted_by(|one, other| one >= other), "{bytes:?}");

    let filter = "dst%20port%20443%20or%20bytes%20%3E%2010k";
    let top = serve
        .get(&format!("/v1/records/top?by=dst-port&sort=flows&limit=1&{RANGE}&filter={filter}"))
        .unwrap();
    let matching = flows.iter().filter(|flow| flow.dst_port == 443 || flow.bytes > 10_000);
    assert_eq!(number(&top, "matching_records") as usize, matching.count());
    assert_eq!(top["groups"].as_array().unwrap().len(), 1);

    let series = serve.get(&format!("/v1/records/series?by=src&limit=1&buckets=2000&{RANGE}")).unwrap();
    let names: Vec<&str> =
        series["groups"].as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
    let interval_ns = number(&series, "interval_ns");
    assert_eq!((interval_ns, names.len(), names[1]), (2_000_000_000, 2, "other"));
    let times = series["times"].as_array().unwrap();
    let mut expected = vec![0; times.len()];
    let first = time_ns(&series, "start") / interval_ns;
    for flow in &flows {
        // A flow within one interval is all in it; of a longer one, each share is rounded down except the last.
        let (from, to) = (flow.start_us * 1000 / interval_ns, flow.end_us * 1000 / interval_ns);
        let mut left = flow.bytes;
        for index in from..=to {
            let (begin, end) = (index * interval_ns / 1000, (index + 1) * interval_ns / 1000);
            let overlap = end.min(flow.end_us) - begin.max(flow.start_us);
            let length = (flow.end_us - flow.start_us).max(1);
            let share =
                if index == to { left } else { (flow.bytes as f64 * overlap as f64 / length as f64) as u64 };
            left -= share;
            expected[(index - first) as usize] += share;
        }
    }
    let bytes = |group: usize, index: usize| series["groups"][group]["bytes"][index].as_u64().unwrap();
    let found: Vec<u64> = (0..times.len()).map(|index| bytes(0, index) + bytes(1, index)).collect();
    assert_eq!(found, expected);
    let busiest = (0..times.len()).max_by_key(|&index| bytes(0, index)).unwrap();
    let rate = series["groups"][0]["rate_bps"][busiest].as_f64().unwrap();
    assert_eq!(rate, bytes(0, busiest) as f64 * 8.0 / 2.0);

    let sets = serve.get(&format!("/v1/records/flowsets?all_flows=true&limit=1000&{RANGE}")).unwrap();
    let found = sets["flowsets"].as_array().unwrap();
    let sum = |name: &str| found.iter().map(|set| number(set, name)).sum::<u64>();
    assert_eq!((sum("bytes"), sum("flows")), (total(|flow| flow.bytes), number(&sets["total"], "flows")));
    assert_eq!(number(&sets["total"], "flowsets") as usize, found.len());
    let elephants = serve.get(&format!("/v1/records/flowsets?threshold=100000&{RANGE}")).unwrap();
    let count = number(&elephants["total"], "elephants");
    assert_eq!(count as usize, flows.iter().filter(|flow| flow.bytes > 100_000).count());
}

#[test]
fn damaged_files_are_named_and_wrong_parameters_refused() {
    let mut serve = Serve::new(&[CAPTURE, "[records]\nfolder = \"store\"\n"].concat());
    write_store(&serve);
    let hour = "flows/date=2026-11-21/hour=22";
    std::fs::write(serve.path("store").join(hour).join("broken.parquet"), "PAR1").unwrap();
    serve.start();
    let top = serve.get(&format!("/v1/records/top?{RANGE}")).unwrap();
    assert_eq!((number(&top, "files"), number(&top, "unreadable_files")), (1, 1));
    assert_eq!(top["unreadable"][0]["file"], format!("{hour}/broken.parquet"));
    assert!(
        number(&top["total"], "bytes") > 0 && !top["unreadable"][0]["error"].as_str().unwrap().is_empty()
    );
    for (parameters, detail) in [
        ("top?by=scr", "by: invalid dimension \"scr\": expected one of src, dst,"),
        ("top?start=2026-11-22T00:00:00Z&end=2026-11-21T00:00:00Z", "start: expected a time before the end"),
        ("top?filter=port%20x", "filter: column 6: expected a number"),
        ("series?by=address", "by: address, port and as count each record for both ends"),
        ("series?buckets=0", "buckets: expected a number from 1 to 2000"),
        ("flowsets?sort=size", "sort: expected bytes, duration, rate or flows"),
    ] {
        let (status, problem) = answer(&serve, &format!("/v1/records/{parameters}"));
        assert_eq!((status.as_str(), &problem["code"]), ("400", &"bad_parameter".into()), "{problem}");
        assert!(problem["detail"].as_str().unwrap().starts_with(detail), "{problem}");
    }
}

#[test]
fn without_a_store_the_key_to_set_is_named() {
    let mut serve = Serve::new(CAPTURE);
    serve.start();
    for (path, key) in [
        ("/v1/records/top", "records.folder"),
        ("/v1/records/series", "records.folder"),
        ("/v1/records/flowsets", "records.folder"),
        ("/v1/experiments", "experiments.folder"),
        ("/v1/experiments/one", "experiments.folder"),
    ] {
        let (status, problem) = answer(&serve, path);
        assert_eq!((status.as_str(), &problem["code"]), ("503", &"not_configured".into()), "{path}");
        assert!(
            problem["detail"].as_str().unwrap().contains(&format!("set {key} in the configuration")),
            "{problem}"
        );
    }
}
