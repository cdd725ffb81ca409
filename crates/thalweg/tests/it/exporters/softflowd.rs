//! softflowd reads what tcpdump has captured at the end that `thalweg watch` watches.
//!
//! It does not listen itself: version 1.1.0 of Debian waits for packets in `poll` for ever where libpcap says that
//! they have come. Nor may it have a control socket while it reads a file, for it then waits for somebody to connect.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::exporters::collector::{ADDRESS, Collector, THALWEG};
use crate::exporters::{Counts, end, link, on_the_wire, run, start, traffic, wait_until};
use crate::live::{Link, Watch};

/// What a test needs for [`capture`] and [`export`], each with the flag that asks for its version.
pub(crate) const PROGRAMS: [(&str, &str); 2] = [("softflowd", "-h"), ("tcpdump", "--version")];

/// Sends traffic and captures it in a file; what of it `thalweg watch` has seen.
pub(crate) fn capture(link: &Link, file: &Path) -> Counts {
    let watch = Watch::start(link, &[]);
    let mut tcpdump = link.at_sender("tcpdump");
    // As the user who may write there; each packet as it comes.
    let tcpdump =
        start(tcpdump.args(["-i", &link.interface, "-Z", "root", "--immediate-mode", "-U", "-w"]).arg(file));
    // The header of the file, which follows the socket's opening.
    wait_until("tcpdump listens", || fs::metadata(file).is_ok_and(|file| file.len() >= 24));
    traffic(link);
    sleep(Duration::from_millis(300)); // for it to write what waits at its socket
    end(tcpdump, "INT");
    on_the_wire(&watch.interrupt())
}

/// Has softflowd (`softflowd`, at the right place) export the flows of a file.
pub(crate) fn export(mut softflowd: Command, file: &Path, version: &str, to: &str) {
    let without_files = ["-d", "-c", "none", "-p", "none"];
    run(softflowd.args(without_files).args(["-v", version, "-n", to, "-r"]).arg(file));
}

/// Compares a version of its export with the wire.
fn check(test: &str, version: &str, format: &str) {
    let Some((link, _alone)) = link(test, &PROGRAMS) else { return };
    check_at(ADDRESS, &link, version, format);
}

/// The same, exported to an address.
fn check_at(address: &str, link: &Link, version: &str, format: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wire.pcap");
    let wire = capture(link, &file);
    let mut collector = Collector::at(link.at_sender(THALWEG), address);
    export(link.at_sender("softflowd"), &file, version, address);
    collector.wait(wire.len() as u64, Duration::from_millis(200));
    let kept = collector.end();
    assert_eq!(kept.counts(format), wire);
    assert_eq!((kept.rows.len(), kept.lost_on_the_way()), (wire.len(), 0), "a record for each flow");
    let host = address.parse::<SocketAddr>().unwrap().ip().to_string();
    assert!(kept.rows.iter().all(|row| row.exporter == host), "exported from {host}");
}

#[test]
fn flows_that_softflowd_tells_by_netflow_5_are_those_on_the_wire() {
    check("flows_that_softflowd_tells_by_netflow_5", "5", "netflow5");
}

#[test]
fn flows_that_softflowd_tells_by_netflow_9_are_those_on_the_wire() {
    check("flows_that_softflowd_tells_by_netflow_9", "9", "netflow9");
}

#[test]
fn flows_that_softflowd_tells_by_ipfix_are_those_on_the_wire() {
    check("flows_that_softflowd_tells_by_ipfix", "10", "ipfix");
}

#[test]
fn flows_that_softflowd_tells_over_ipv6_are_those_on_the_wire() {
    let Some((link, _alone)) = link("flows_that_softflowd_tells_over_ipv6", &PROGRAMS) else { return };
    // The loopback interface alone: the wire goes on without neighbour discovery.
    run(link.at_sender("sysctl").args(["-qw", "net.ipv6.conf.lo.disable_ipv6=0"]));
    check_at("[::1]:2055", &link, "9", "netflow9");
}
