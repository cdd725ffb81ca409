//! `thalweg watch` on a live interface, compared with iperf3.
//!
//! A veth pair between two network namespaces carries an iperf3 transfer at 200 Mbit/s and a ping, while thalweg watches
//! the sender's end. The transfer must be detected as a cheetah flow within 2T of its start, its bytes must agree with the
//! report of iperf3, and no other flow may be a cheetah flow.
//!
//! Skipped without root, `ip` (iproute2), `ping` and `iperf3`.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::live::{Link, RECEIVER, Running, SENDER, Watch};
use crate::program::time_ns;

/// T, the flight duration of the test.
const FLIGHT_DURATION: Duration = Duration::from_millis(100);
const IPERF3_PORT: u64 = 5201;
const ICMP: u64 = 1;
const TCP: u64 = 6;
/// IPv4 header and TCP header with the timestamp option (RFC 791, RFC 9293, RFC 7323), as Linux sends with data.
const HEADER_BYTES: u64 = 20 + 20 + 12;

#[test]
fn an_iperf3_transfer_is_detected_and_measured() {
    let programs = [("ping", "-V"), ("iperf3", "-v")];
    let Some(link) = Link::set_up("an_iperf3_transfer_is_found", &programs) else { return };

    let watch = Watch::start(&link, &["--flight-duration", "100ms", "--rate-threshold", "50mbps"]);
    let ping =
        Running(link.at_sender("ping").args(["-i", "0.2", RECEIVER]).stdout(Stdio::null()).spawn().unwrap());
    let transfer = Transfer::run(&link);
    drop(ping);
    let ended = watch.interrupt();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = &ended.lines;

    // The data connection; iperf3's control connection has the same port at the receiver.
    let is_transfer = |line: &Value| {
        let flow = &line["flow"];
        number(flow, "protocol") == TCP
            && flow["src"] == SENDER
            && number(flow, "src_port") == transfer.sender_port
            && flow["dst"] == RECEIVER
            && number(flow, "dst_port") == IPERF3_PORT
    };
    let of_type = |name| ended.of_type(name);

    let records: Vec<_> = of_type("flow").filter(|line| is_transfer(line)).collect();
    assert!(
        !records.is_empty(),
        "no record of the transfer from port {} in {lines:#?}",
        transfer.sender_port
    );
    let start_ns = records.iter().map(|record| time_ns(record, "flow_start")).min().unwrap();

    let cheetah = of_type("cheetah").find(|line| is_transfer(line)).expect("the transfer is a cheetah");
    let two_flights_ns = 2 * FLIGHT_DURATION.as_nanos() as u64;
    let detected_ns = time_ns(cheetah, "detected");
    assert!(detected_ns - time_ns(cheetah, "flow_start") <= two_flights_ns, "found late: {cheetah}");
    assert!(detected_ns - start_ns <= two_flights_ns, "found late after {start_ns}: {cheetah}");
    let others: Vec<_> = of_type("cheetah").filter(|line| !is_transfer(line)).collect();
    assert!(others.is_empty(), "no cheetahs: {others:#?}");

    let is_ping = |line: &&Value| number(&line["flow"], "protocol") == ICMP;
    assert!(of_type("flow").any(|line| is_ping(&line)), "the ping was metered");

    let summary = ended.summary();
    assert!(number(summary, "cheetahs") >= 1, "{summary}");
    assert_agree(payload_bytes(&records), transfer.received_bytes, summary);
}

/// Returns the payload bytes of the sender from the IP bytes of its records. Every packet has one IP and one TCP header,
/// with or without segmentation offload.
fn payload_bytes(records: &[&Value]) -> u64 {
    let sum = |field| records.iter().map(|record| number(record, field)).sum::<u64>();
    sum("bytes") - HEADER_BYTES * sum("packets")
}

/// Checks agreement within 1 %. Differences are retransmissions and data that the receiver has not read at the end: at most
/// a few socket buffers of 128 KiB, of 75 MB in total.
fn assert_agree(metered: u64, reported: u64, summary: &Value) {
    assert!(
        metered.abs_diff(reported) * 100 <= reported,
        "{metered} payload bytes metered, {reported} reported by iperf3; {summary}"
    );
}

/// Returns the unsigned integer in `field`.
fn number(object: &Value, field: &str) -> u64 {
    object[field].as_u64().unwrap_or_else(|| panic!("no unsigned integer '{field}' in {object}"))
}

/// The report of iperf3.
struct Transfer {
    sender_port: u64,
    received_bytes: u64,
}

impl Transfer {
    /// Sends 200 Mbit/s for 3 s over one TCP connection.
    fn run(link: &Link) -> Transfer {
        let server = link.at_receiver("iperf3").arg("--server").stdout(Stdio::null()).spawn();
        let _server = Running(server.unwrap());
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let client = ["--client", RECEIVER, "--bitrate", "200M", "--time", "3", "--json"];
            let output = link.at_sender("iperf3").args(client).output().unwrap();
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            // Its exit status is 0 even after some failures.
            if report["error"].is_null() && !report["end"]["sum_received"].is_null() {
                return Transfer {
                    sender_port: number(&report["start"]["connected"][0], "local_port"),
                    received_bytes: number(&report["end"]["sum_received"], "bytes"),
                };
            }
            // The server may not listen yet.
            assert!(Instant::now() < deadline, "iperf3: {report}");
            sleep(Duration::from_millis(100));
        }
    }
}
