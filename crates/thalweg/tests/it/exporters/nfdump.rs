//! nfreplay resends the export of softflowd that nfcapd stored.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use crate::exporters::collector::{ADDRESS, Collector, THALWEG};
use crate::exporters::softflowd::{self, capture, export};
use crate::exporters::{end, link, run, start, wait_until};
use crate::live::Link;

/// Listen port of nfcapd, different from [`ADDRESS`].
const PORT: &str = "9995";

/// Stores the export of softflowd with nfcapd. Returns the file.
fn keep(link: &Link, capture: &Path, folder: &Path) -> PathBuf {
    let mut nfcapd = link.at_sender("nfcapd");
    let nfcapd = start(nfcapd.args(["-b", "127.0.0.1", "-p", PORT, "-t", "3600", "-w"]).arg(folder));
    // Port 9995, in hexadecimal.
    wait_until("nfcapd listens", || {
        let sockets = link.at_sender("cat").arg("/proc/net/udp").output().unwrap();
        String::from_utf8_lossy(&sockets.stdout).contains(":270B ")
    });
    export(link.at_sender("softflowd"), capture, "9", &format!("127.0.0.1:{PORT}"));
    sleep(Duration::from_millis(300)); // until it has read its socket
    end(nfcapd, "TERM");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files = entries.filter(|path| path.to_str().unwrap().contains("/nfcapd.2"));
    files.next().expect("a file of nfcapd")
}

/// Compares the export in one version with the wire.
fn check(test: &str, version: &str, format: &str) {
    let programs = [&softflowd::PROGRAMS[..], &[("nfcapd", "-V"), ("nfreplay", "-V")]].concat();
    let Some((link, _alone)) = link(test, &programs) else { return };
    let folder = tempfile::tempdir().unwrap();
    let pcap = folder.path().join("wire.pcap");
    let wire = capture(&link, &pcap);
    let file = keep(&link, &pcap, folder.path());
    let mut collector = Collector::start(link.at_sender(THALWEG));
    let (host, port) = ADDRESS.split_once(':').unwrap();
    run(link.at_sender("nfreplay").args(["-H", host, "-p", port, "-v", version, "-r"]).arg(file));
    collector.wait(wire.len() as u64, Duration::from_millis(200));
    let kept = collector.end();
    assert_eq!(kept.counts(format), wire);
    assert_eq!((kept.rows.len(), kept.sequence_losses()), (wire.len(), 0), "one record per flow");
}

#[test]
fn nfreplay_netflow_9_matches_the_wire() {
    check("nfreplay_netflow_9_matches_the_wire", "9", "netflow9");
}

#[test]
fn nfreplay_netflow_5_matches_the_wire() {
    check("nfreplay_netflow_5_matches_the_wire", "5", "netflow5");
}
