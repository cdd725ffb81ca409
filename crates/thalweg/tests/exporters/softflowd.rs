//! softflowd reads what tcpdump has captured at the end that `thalweg watch` watches.
//!
//! It does not listen itself: version 1.1.0 of Debian waits for packets in `poll` for ever where libpcap says that
//! they have come. Nor may it have a control socket while it reads a file, for it then waits for somebody to connect.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::collector::{ADDRESS, Collector, THALWEG};
use crate::live::{Link, Watch};
use crate::{Counts, end, link, on_the_wire, run, start, traffic, wait_until};

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
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wire.pcap");
    let wire = capture(&link, &file);
    let mut collector = Collector::start(link.at_sender(THALWEG));
    export(link.at_sender("softflowd"), &file, version, ADDRESS);
    collector.wait(wire.len() as u64, Duration::from_millis(200));
    let kept = collector.end();
    assert_eq!(kept.counts(format), wire);
    assert_eq!((kept.rows.len(), kept.lost_on_the_way()), (wire.len(), 0), "a record for each flow");
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
