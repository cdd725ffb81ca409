//! A veth pair in a network namespace of its own, over which tcpreplay(1) sends frames.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use thalweg_linux::Namespace;

use crate::harness::skip;

/// The end that sends, and the end at which frames are counted.
const SENDER: &str = "sender";
pub(crate) const RECEIVER: &str = "receiver";

/// A veth pair. Dropping it removes it.
pub(crate) struct Wire {
    pub(crate) namespace: Namespace,
    folder: tempfile::TempDir,
}

impl Wire {
    /// Creates the pair, or skips the test where that is not possible.
    pub(crate) fn create_or_skip() -> Option<Wire> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if Command::new("tcpreplay").arg("--version").output().is_err() {
            skip("needs tcpreplay");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("thalweg-dp-{}-{number}", std::process::id());
        let namespace = match Namespace::create(name) {
            Ok(namespace) => namespace,
            Err(error) => {
                skip(error);
                return None;
            }
        };
        let wire = Wire { namespace, folder: tempfile::tempdir().unwrap() };
        // The kernel's own IPv6 packets would be counted too.
        wire.command("sysctl", &["-qw", "net.ipv6.conf.default.disable_ipv6=1"]);
        wire.command("ip", &["link", "add", SENDER, "type", "veth", "peer", "name", RECEIVER]);
        wire.command("ip", &["link", "set", SENDER, "up"]);
        wire.command("ip", &["link", "set", RECEIVER, "up"]);
        Some(wire)
    }

    /// Runs a command in the namespace.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(program);
        command.args(arguments).stdout(std::process::Stdio::null());
        let status = self.namespace.spawn(&mut command).unwrap().wait().unwrap();
        assert!(status.success(), "{program} {arguments:?}");
    }

    /// Sends frames. The queue of a veth pair holds 256 of them: at 10,000 per second none is lost if the receiver waits 25 ms
    /// for a processor.
    pub(crate) fn send(&self, frames: &[Vec<u8>]) {
        let path = self.folder.path().join("frames.pcap");
        let mut file = BufWriter::new(File::create(&path).unwrap());
        // The header of a capture file: little-endian, microseconds, Ethernet.
        let header: [u32; 6] = [0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, 1];
        header.iter().for_each(|word| file.write_all(&word.to_le_bytes()).unwrap());
        for frame in frames {
            let length = frame.len() as u32;
            [0, 0, length, length].iter().for_each(|word: &u32| file.write_all(&word.to_le_bytes()).unwrap());
            file.write_all(frame).unwrap();
        }
        file.into_inner().unwrap();
        self.command("tcpreplay", &["-q", "--pps", "10000", "-i", SENDER, path.to_str().unwrap()]);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // Removed already by a failed test, or in use until its processes end.
        let _ = self.namespace.delete();
    }
}
