use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use thalweg_capture::file::FileSource;
use thalweg_wire::Source;

use super::*;
use crate::collectors::tests::{FRAMES, daemon, reads_capture, wait_for};
use crate::collectors::{CollectorHandle, Fleet};
use crate::config::{CaptureFormat, SampleOptions};
use crate::daemon::Daemon;

fn measured(folder: &Path) -> (Daemon, Fleet, CollectorHandle) {
    let (daemon, fleet, _) = daemon(&reads_capture("a"), folder);
    let handle = wait_for(&daemon, "a", "ended");
    (daemon, fleet, handle)
}

fn request(format: CaptureFormat) -> DumpRequest {
    DumpRequest { collector: Some("a".to_owned()), format: Some(format), cause: Cause::Signal }
}

/// Returns the output of a program; `None`, with a message, if it is not installed.
fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = match Command::new(program).args(arguments).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: {program}: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_pcapng_dump_labels_each_packet_with_its_ports() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, _fleet, handle) = measured(folder.path());
    assert_eq!(handle.samples().unwrap().written(), FRAMES);
    let files = daemon.dumps().dump(&request(CaptureFormat::Pcapng)).unwrap();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert_eq!((file.packets, file.overwritten), (FRAMES, 0));
    assert!(file.path.to_str().unwrap().ends_with("-signal.pcapng"));

    let mut source = FileSource::open(&file.path).unwrap();
    let (mut frames, mut names) = (0, Vec::new());
    while let Some(batch) = source.next_batch().unwrap() {
        frames += batch.frames.len() as u64;
        names = batch.interfaces.iter().map(|interface| interface.name.clone().unwrap()).collect();
    }
    assert_eq!(frames, FRAMES);
    assert_eq!(names, ["leaf0:p0:out", "leaf0:p1:out", "leaf0:p2:out", "leaf0:p3:out", "leaf0:p4:out"]);

    let path = file.path.to_str().unwrap();
    let fields = ["frame.interface_name", "frame.interface_description", "frame.comment", "ip.dst"];
    let mut arguments = vec!["-r", path, "-T", "fields", "-E", "separator=|"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let Some(output) = output_of("tshark", &arguments) else { return };
    let lines: Vec<Vec<&str>> = output.lines().map(|line| line.split('|').collect()).collect();
    assert_eq!(lines.len() as u64, FRAMES);
    for line in lines {
        let [name, description, comment, destination] = line[..] else { panic!("{line:?}") };
        let port = name.strip_prefix("leaf0:").and_then(|rest| rest.strip_suffix(":out")).unwrap();
        assert!(comment.contains(&format!("out {port} (")) && comment.starts_with("in p"), "{comment}");
        assert!(comment.ends_with(", version 1"), "{comment}");
        // Host n has address 10.0.0.(n + 1), and the first three are at ports 0 to 2.
        let host: u32 = destination.strip_prefix("10.0.0.").unwrap().parse::<u32>().unwrap() - 1;
        match host {
            0..3 => {
                assert_eq!(port, format!("p{host}"));
                assert_eq!(description, format!("sent by leaf0 to h{host}"));
            }
            _ => assert!(port == "p3" || port == "p4", "{port}"),
        }
    }
}

#[test]
fn a_pcap_dump_has_one_file_per_port() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, _fleet, _) = measured(folder.path());
    let files = daemon.dumps().dump(&request(CaptureFormat::Pcap)).unwrap();
    assert_eq!(files.len(), 5);
    assert_eq!(files.iter().map(|file| file.packets).sum::<u64>(), FRAMES);
    for file in &files {
        let path = file.path.to_str().unwrap();
        assert!(path.ends_with("_out.pcap"), "{path}");
        let Some(output) = output_of("tcpdump", &["-nn", "-r", path]) else { return };
        assert_eq!(output.lines().count() as u64, file.packets);
    }
}

#[test]
fn samples_are_written_without_a_network() {
    let ring = thalweg_measure::samples::SampleRingOptions::default();
    let (mut writer, ring) = thalweg_measure::samples::SampleRing::new(ring).unwrap();
    let link_type = thalweg_wire::LinkType::Ethernet;
    let time = thalweg_wire::Timestamp(5);
    writer.write(&thalweg_wire::Frame { time, bytes: &[7; 60], original_length: 60, link_type });
    let labels = labels::Labels::new("tor0", None);
    let (file, _) = pcapng::encode(&ring.copy(10), &labels, 176, None);
    let mut source = FileSource::from_reader("memory", std::io::Cursor::new(file));
    let mut seen = BTreeMap::new();
    while let Some(batch) = source.next_batch().unwrap() {
        for frame in batch.iter() {
            seen.insert(batch.interfaces[0].name.clone().unwrap(), frame.bytes.to_vec());
        }
    }
    assert_eq!(seen, BTreeMap::from([("tor0".to_owned(), vec![7; 60])]));
}

#[test]
fn dump_errors_are_reported_and_requests_are_limited() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, _fleet, _) = measured(folder.path());
    let of = |name: &str, cause| DumpRequest { collector: Some(name.to_owned()), format: None, cause };
    let error = daemon.dumps().dump(&of("b", Cause::Signal)).unwrap_err();
    assert!(matches!(error, DumpError::NoCollector(_)), "{error}");
    daemon.dumps().dump(&of("a", Cause::Request)).unwrap();
    let error = daemon.dumps().dump(&of("a", Cause::Request)).unwrap_err();
    assert!(matches!(error, DumpError::TooSoon { .. }), "{error}");
    assert_eq!(daemon.dumps().counters().written, 1);
    let dumped = daemon.dumps().samples_of("a", 10, None).unwrap();
    assert_eq!((dumped.packets, dumped.overwritten), (10, 0));
    let nobody = "tcp 192.0.2.1:1 > 192.0.2.2:2".parse().unwrap();
    assert_eq!(daemon.dumps().samples_of("a", 10, Some(&nobody)).unwrap().packets, 0);

    fs::write(folder.path().join("file"), "").unwrap();
    let folder = Some(folder.path().join("file/folder"));
    daemon.dumps().set_options(SampleOptions { folder, ..SampleOptions::default() });
    let error = daemon.dumps().dump(&of("a", Cause::Signal)).unwrap_err();
    assert!(matches!(error, DumpError::WriteFailed { .. }), "{error}");
    assert_eq!(daemon.dumps().counters().failed, 1);
    daemon.dumps().set_options(SampleOptions::default());
    assert!(matches!(daemon.dumps().dump(&of("a", Cause::Signal)), Err(DumpError::NoFolder)));
}

#[test]
fn a_failed_write_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    // A directory of this name: the bytes can be written, but the file cannot get its name.
    let path = folder.path().join("tor0-signal.pcapng");
    fs::create_dir(&path).unwrap();
    super::dump::write_whole(&path, b"samples").unwrap_err();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["tor0-signal.pcapng"]);
}
