//! The emulations that are compared, and what differs between them.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;

use super::Setting;
use super::network::Network;
use super::{mininet, ns3, thalweg};
use crate::emulator::ns3::Programs;

/// An emulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `thalweg lab up --emulate`
    Thalweg,
    /// The same with `--wait real-time`
    ThalwegRealTime,
    /// The same with `--batch-delay 500us`
    ThalwegBatches,
    /// Mininet with `TCLink(bw=..., use_htb=True)`
    Mininet,
    /// Mininet, corrected: segments of one packet, framing in the rate
    MininetWire,
    /// ns-3 with `CsmaNetDevice`
    Ns3Csma,
    /// ns-3 with `PointToPointNetDevice`
    Ns3PointToPoint,
}

impl Peer {
    /// All of them.
    pub const ALL: [Peer; 7] = [
        Peer::Thalweg,
        Peer::ThalwegRealTime,
        Peer::ThalwegBatches,
        Peer::Mininet,
        Peer::MininetWire,
        Peer::Ns3Csma,
        Peer::Ns3PointToPoint,
    ];

    /// Returns the name on the command line.
    pub const fn id(self) -> &'static str {
        match self {
            Peer::Thalweg => "thalweg",
            Peer::ThalwegRealTime => "thalweg-real-time",
            Peer::ThalwegBatches => "thalweg-batches",
            Peer::Mininet => "mininet",
            Peer::MininetWire => "mininet-wire",
            Peer::Ns3Csma => "ns3-csma",
            Peer::Ns3PointToPoint => "ns3-point-to-point",
        }
    }

    /// Returns the emulation with a name on the command line.
    pub fn with_id(id: &str) -> Option<Peer> {
        Peer::ALL.into_iter().find(|peer| peer.id() == id)
    }

    /// Returns the name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Peer::Thalweg => "thalweg",
            Peer::ThalwegRealTime => "thalweg, --wait real-time",
            Peer::ThalwegBatches => "thalweg, --batch-delay 500us",
            Peer::Mininet => "mininet",
            Peer::MininetWire => "mininet, corrected",
            Peer::Ns3Csma => "ns-3, csma",
            Peer::Ns3PointToPoint => "ns-3, point-to-point",
        }
    }

    /// Returns what differs from the scenario.
    pub const fn differs(self) -> &'static str {
        match self {
            Peer::Thalweg => "links of 1 us; a host's packets wait in its endpoint, at most 16,384",
            Peer::ThalwegRealTime => "as thalweg; endpoints have real-time priority",
            Peer::ThalwegBatches => "as thalweg; requests and answers wait up to 0.5 ms for others",
            Peer::Mininet => {
                "links without delay; HTB counts 14 of 38 bytes of framing; a packet of the queue may be a segment of up to 64 KiB; \
                 a host's queue holds 1,024 of them; the queue is in bytes, divided by 1,514"
            }
            Peer::MininetWire => {
                "links without delay; offloads are off, HTB has `overhead 24 mpu 84`; a host's queue holds 1,024 packets; the queue is \
                 in bytes, divided by 1,514"
            }
            Peer::Ns3Csma => {
                "links of 1 us, half duplex: acknowledgements take time of the link; a host's queue holds 16,384 packets"
            }
            Peer::Ns3PointToPoint => {
                "links of 1 us; a switch of a few lines for IPv4, so neighbours are static; a host's queue holds 16,384 packets"
            }
        }
    }

    /// Returns how the peer itself shows that it fell behind.
    pub const fn own_sign(self) -> &'static str {
        match self {
            Peer::Thalweg | Peer::ThalwegRealTime | Peer::ThalwegBatches => "late timeslots",
            Peer::Mininet | Peer::MininetWire => "none",
            Peer::Ns3Csma | Peer::Ns3PointToPoint => "late samples",
        }
    }

    /// Checks that its programs are installed.
    ///
    /// # Errors
    /// Names the missing packages.
    pub fn check(self, thalweg: &Path, build: &Path) -> anyhow::Result<()> {
        match self {
            Peer::Thalweg | Peer::ThalwegRealTime | Peer::ThalwegBatches => {
                ensure!(
                    thalweg.is_file(),
                    "no program {}: build it with `cargo build --release -p thalweg`",
                    thalweg.display()
                );
                Ok(())
            }
            Peer::Mininet | Peer::MininetWire => {
                let script = |text: &str| {
                    let ran = Command::new(mininet::PYTHON).args(["-c", text]).output();
                    ran.is_ok_and(|output| output.status.success())
                };
                let missing: Vec<_> = [
                    ("mininet", script("import mininet.net")),
                    ("bridge-utils", crate::timed::is_installed("brctl")),
                    ("net-tools", crate::timed::is_installed("ifconfig")),
                    ("ethtool", crate::timed::is_installed("ethtool")),
                ]
                .into_iter()
                .filter_map(|(package, is_there)| (!is_there).then_some(package))
                .collect();
                ensure!(
                    missing.is_empty(),
                    "not installed: `apt-get install {}` (Debian packages)",
                    missing.join(" ")
                );
                Ok(())
            }
            Peer::Ns3Csma | Peer::Ns3PointToPoint => {
                Programs::build(Path::new(crate::emulator::ns3::SOURCES), build).map(drop)
            }
        }
    }

    /// Creates its network.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn up(self, setting: &Setting<'_>) -> anyhow::Result<Box<dyn Network>> {
        match self {
            Peer::Thalweg => thalweg::up(setting, &[]),
            Peer::ThalwegRealTime => thalweg::up(setting, &["--wait", "real-time"]),
            Peer::ThalwegBatches => thalweg::up(setting, &["--batch-delay", "500us"]),
            Peer::Mininet => mininet::up(setting, false),
            Peer::MininetWire => mininet::up(setting, true),
            Peer::Ns3Csma => ns3::up(setting, "csma"),
            Peer::Ns3PointToPoint => ns3::up(setting, "point-to-point"),
        }
    }
}
