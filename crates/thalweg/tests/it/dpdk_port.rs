//! `thalweg watch` on a DPDK port: in builds with the feature `dpdk` a port of a capture file, in others the error.

#[cfg(feature = "dpdk")]
use crate::program::number;
use crate::program::{root, watch};

#[cfg(feature = "dpdk")]
#[test]
fn a_dpdk_port_of_a_file_is_measured_as_the_file() {
    let file = root().join("examples/two-hosts.pcap");
    let port = format!("dpdk:net_pcap0,rx_pcap={}", file.display());
    let of_port = watch(&["--json", "--duration", "1s", &port]).ended_with(0).summary();
    let of_file = watch(&["--json", file.to_str().unwrap()]).ended_with(0).summary();
    for field in ["packets", "bytes", "flows", "non_ip", "malformed", "kernel_drops"] {
        assert_eq!(number(&of_port, field), number(&of_file, field), "{field}");
    }
}

#[cfg(not(feature = "dpdk"))]
#[test]
fn a_build_without_dpdk_says_how_to_build_with_it() {
    let run = watch(&["--json", "dpdk:net_af_packet0,iface=eth0"]).ended_with(1);
    assert!(
        run.stderr.contains("built without DPDK") && run.stderr.contains("--features dpdk"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_name_that_is_no_device_is_a_usage_error() {
    let run = watch(&["--json", "dpdk:trace.pcap"]).ended_with(2);
    assert!(run.stderr.contains("invalid DPDK device \"trace.pcap\": expected"), "{}", run.stderr);
}

#[test]
fn a_port_is_no_file_whatever_its_arguments_say() {
    let file = root().join("examples/two-hosts.pcap");
    let run = watch(&["--json", "dpdk:net_pcap0,rx_pcap=trace.pcap", file.to_str().unwrap()]).ended_with(2);
    assert!(run.stderr.contains("cannot watch files and interfaces in one run"), "{}", run.stderr);
}
