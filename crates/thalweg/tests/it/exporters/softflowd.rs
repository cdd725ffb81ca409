//! softflowd reads a capture of tcpdump from the interface of `thalweg watch`.
//!
//! It does not capture itself: version 1.1.0 of Debian blocks in `poll` although libpcap has packets. It has no control
//! socket, because with one it waits for a connection before it reads a file.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::exporters::collector::{ADDRESS, Collector, THALWEG};
use crate::exporters::{Counts, end, link, on_the_wire, run, start, traffic, wait_until};
use crate::live::{Link, Watch};

/// Programs that [`capture`] and [`export`] need, with their version flags.
pub(crate) const PROGRAMS: [(&str, &str); 2] = [("softflowd", "-h"), ("tcpdump", "--version")];

/// Sends traffic and captures it in a file. Returns the flows that `thalweg watch` measured.
pub(crate) fn capture(link: &Link, file: &Path) -> Counts {
    let watch = Watch::start(link, &[]);
    let mut tcpdump = link.at_sender("tcpdump");
    // As the user with write permission, packet-buffered.
    let tcpdump =
        start(tcpdump.args(["-i", &link.interface, "-Z", "root", "--immediate-mode", "-U", "-w"]).arg(file));
    // tcpdump writes the file header after it opens its socket.
    wait_until("tcpdump listens", || fs::metadata(file).is_ok_and(|file| file.len() >= 24));
    traffic(link);
    sleep(Duration::from_millis(300)); // until it has written its packets
    end(tcpdump, "INT");
    on_the_wire(&watch.interrupt())
}

/// Exports the flows of a file with softflowd.
pub(crate) fn export(mut softflowd: Command, file: &Path, version: &str, to: &str) {
    let without_files = ["-d", "-c", "none", "-p", "none"];
    run(softflowd.args(without_files).args(["-v", version, "-n", to, "-r"]).arg(file));
}

/// Compares the export in one version with the wire.
fn check(test: &str, version: &str, format: &str) {
    let Some((link, _alone)) = link(test, &PROGRAMS) else { return };
    check_from(ADDRESS, &link, version, format);
}

/// Compares an export to an address.
fn check_from(address: &str, link: &Link, version: &str, format: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wire.pcap");
    let wire = capture(link, &file);
    let mut collector = Collector::at(link.at_sender(THALWEG), address);
    export(link.at_sender("softflowd"), &file, version, address);
    collector.wait(wire.len() as u64, Duration::from_millis(200));
    let kept = collector.end();
    assert_eq!(kept.counts(format), wire);
    assert_eq!((kept.rows.len(), kept.sequence_losses()), (wire.len(), 0), "one record per flow");
    let host = address.parse::<SocketAddr>().unwrap().ip().to_string();
    assert!(kept.rows.iter().all(|row| row.exporter == host), "exported from {host}");
}

#[test]
fn softflowd_netflow_5_matches_the_wire() {
    check("softflowd_netflow_5_matches_the_wire", "5", "netflow5");
}

#[test]
fn softflowd_netflow_9_matches_the_wire() {
    check("softflowd_netflow_9_matches_the_wire", "9", "netflow9");
}

#[test]
fn softflowd_ipfix_matches_the_wire() {
    check("softflowd_ipfix_matches_the_wire", "10", "ipfix");
}

#[test]
fn softflowd_over_ipv6_matches_the_wire() {
    let Some((link, _alone)) = link("softflowd_over_ipv6_matches_the_wire", &PROGRAMS) else { return };
    // Only on the loopback interface, so that the wire has no neighbour discovery.
    run(link.at_sender("sysctl").args(["-qw", "net.ipv6.conf.lo.disable_ipv6=0"]));
    check_from("[::1]:2055", &link, "9", "netflow9");
}
