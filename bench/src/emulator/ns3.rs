//! Comparison with ns-3, by programs in `bench/peers/ns3` that are built on demand: `star` measures packets per
//! second, `crosscheck` runs TCP in small scenarios, `live_star` connects network namespaces in real time.
//!
//! The first two print one line of JSON; the same seed gives the same counts. Times exclude the simulator's setup.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::sketches::peers::succeed;

/// Folder of the sources, relative to the repository.
pub const SOURCES: &str = "bench/peers/ns3";

/// Timeout of a run in seconds.
const TIMEOUT_S: &str = "600";

/// The programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    folder: PathBuf,
    /// Version of the library that they were built with.
    pub version: String,
}

impl Programs {
    /// Builds the programs from `sources` into `build`.
    ///
    /// # Errors
    /// If a dependency is not installed, or the build fails.
    pub fn build(sources: &Path, build: &Path) -> anyhow::Result<Programs> {
        let version = version().context("not installed (Debian packages libns3-dev and pkg-config)")?;
        fs::create_dir_all(build)?;
        let folder = std::path::absolute(build)?;
        let mut make = Command::new("make");
        make.arg("--no-print-directory").arg("-C").arg(sources);
        succeed(make.arg(format!("BUILD={}", folder.display())))?;
        Ok(Programs { folder, version })
    }

    /// Returns the program of a star in real time.
    pub fn live_star(&self) -> PathBuf {
        self.folder.join("live_star")
    }

    /// Runs a star of `hosts` hosts under `load` for `seconds` of emulated time.
    ///
    /// # Errors
    /// If it fails or its output is not valid.
    pub fn star(&self, mode: Mode, hosts: u32, load: f64, seconds: f64, seed: u64) -> anyhow::Result<Star> {
        self.run(
            "star",
            &[
                ("mode", mode.name().to_owned()),
                ("hosts", hosts.to_string()),
                ("load", load.to_string()),
                ("seconds", seconds.to_string()),
                ("seed", seed.to_string()),
            ],
        )
    }

    /// Runs a scenario.
    ///
    /// # Errors
    /// If it fails or its output is not valid.
    pub fn crosscheck(&self, scenario: Scenario, span: Span, seed: u64) -> anyhow::Result<Crosscheck> {
        self.run(
            "crosscheck",
            &[
                ("scenario", scenario.name().to_owned()),
                ("seconds", span.seconds.to_string()),
                ("warm-up", span.warm_up.to_string()),
                ("seed", seed.to_string()),
            ],
        )
    }

    fn run<T: DeserializeOwned>(&self, program: &str, options: &[(&str, String)]) -> anyhow::Result<T> {
        let mut command = Command::new("timeout");
        command.arg(TIMEOUT_S).arg(self.folder.join(program));
        for (name, value) in options {
            command.arg(format!("--{name}")).arg(value);
        }
        let printed = succeed(&mut command).with_context(|| format!("ns-3's {program}"))?;
        serde_json::from_str(&printed).with_context(|| format!("unexpected output: {}", printed.trim()))
    }
}

/// Returns the version of the installed library.
fn version() -> anyhow::Result<String> {
    let printed = succeed(Command::new("pkg-config").args(["--modversion", "ns3-core"]))?;
    match printed.trim() {
        "" => bail!("pkg-config reports no version of ns3-core"),
        version => Ok(version.to_owned()),
    }
}

/// Protocols above the devices of the star.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Only a minimal switch: the lowest possible cost of a packet.
    Raw,
    /// IPv4 and UDP.
    Udp,
}

impl Mode {
    /// Both modes.
    pub const ALL: [Mode; 2] = [Mode::Raw, Mode::Udp];

    /// Returns the name on the program's command line.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Raw => "raw",
            Mode::Udp => "udp",
        }
    }

    /// Returns the name in tables.
    pub const fn title(self) -> &'static str {
        match self {
            Mode::Raw => "ns-3, devices only",
            Mode::Udp => "ns-3, UDP and IPv4",
        }
    }

    /// Returns the emulated seconds that take about 5 to 10 s to run.
    pub const fn seconds(self) -> f64 {
        match self {
            Mode::Raw => 0.1,
            Mode::Udp => 0.03,
        }
    }
}

/// The results of a star: a router and hosts on links of 10 Gbit/s, full-size packets between random hosts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Star {
    /// Protocols above the devices.
    pub mode: Mode,
    /// Hosts around the router.
    pub hosts: u32,
    /// Load of every link.
    pub load: f64,
    /// Emulated time in seconds.
    pub emulated_s: f64,
    /// Packets that hosts sent.
    pub sent: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Packets dropped by full queues. The rest were in flight at the end.
    pub dropped: u64,
    /// Wall time in seconds.
    pub wall_s: f64,
    /// Processor time in seconds.
    pub cpu_s: f64,
}

impl Star {
    /// Returns the delivered packets per second of CPU time.
    pub fn packets_per_second(&self) -> f64 {
        self.delivered as f64 / self.cpu_s
    }

    /// Returns the CPU time divided by the emulated time.
    pub fn slowdown(&self) -> f64 {
        self.cpu_s / self.emulated_s
    }
}

/// Runs a star of 32 hosts, load 0.8, in both modes.
///
/// # Errors
/// If the programs do not build or run.
pub fn stars(build: &Path) -> anyhow::Result<Vec<Star>> {
    let programs = Programs::build(Path::new(SOURCES), build)?;
    Mode::ALL.into_iter().map(|mode| programs.star(mode, 32, 0.8, mode.seconds(), 1)).collect()
}

/// TCP through one bottleneck. `crosscheck.cc` has the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// Five flows of CUBIC, all links of 10 Gbit/s, DropTail of 1024 packets.
    #[serde(rename = "droptail-cubic")]
    DropTailCubic,
    /// The same with NewReno.
    #[serde(rename = "droptail-reno")]
    DropTailReno,
    /// Five flows of CUBIC, RED (150, 300, 0.1, weight 5) that drops.
    RedCubic,
    /// The same with NewReno.
    RedReno,
    /// Five flows of CUBIC, RED that marks.
    RedEcnCubic,
    /// The same with NewReno.
    RedEcnReno,
    /// Five flows of DCTCP, K = 65.
    Dctcp,
    /// Two flows of CUBIC from links of 10 Gbit/s into one of 1 Gbit/s, DropTail of 100 packets.
    FairnessCubic,
    /// The same with NewReno.
    FairnessReno,
}

impl Scenario {
    /// All scenarios.
    pub const ALL: [Scenario; 9] = [
        Scenario::DropTailCubic,
        Scenario::DropTailReno,
        Scenario::RedCubic,
        Scenario::RedReno,
        Scenario::RedEcnCubic,
        Scenario::RedEcnReno,
        Scenario::Dctcp,
        Scenario::FairnessCubic,
        Scenario::FairnessReno,
    ];

    /// Returns the name on the program's command line.
    pub const fn name(self) -> &'static str {
        match self {
            Scenario::DropTailCubic => "droptail-cubic",
            Scenario::DropTailReno => "droptail-reno",
            Scenario::RedCubic => "red-cubic",
            Scenario::RedReno => "red-reno",
            Scenario::RedEcnCubic => "red-ecn-cubic",
            Scenario::RedEcnReno => "red-ecn-reno",
            Scenario::Dctcp => "dctcp",
            Scenario::FairnessCubic => "fairness-cubic",
            Scenario::FairnessReno => "fairness-reno",
        }
    }

    /// Returns a duration with stable results and at most about 30 s of CPU time.
    pub const fn span(self) -> Span {
        match self {
            Scenario::FairnessCubic | Scenario::FairnessReno => Span { seconds: 2.0, warm_up: 0.2 },
            _ => Span { seconds: 1.0, warm_up: 0.2 },
        }
    }
}

/// Duration of a scenario, in emulated time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Total seconds.
    pub seconds: f64,
    /// Seconds of warm-up at the start, which are not measured.
    pub warm_up: f64,
}

/// The results of a scenario. Counts exclude the warm-up.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crosscheck {
    /// The scenario.
    pub scenario: Scenario,
    /// Emulated time in seconds, including the warm-up.
    pub emulated_s: f64,
    /// Duration of the warm-up in seconds.
    pub warm_up_s: f64,
    /// Round-trip propagation delay in microseconds.
    pub rtt_us: f64,
    /// Payload rates at the receivers in bit/s, by flow.
    pub goodput_bps: Vec<f64>,
    /// Queue length at the bottleneck.
    pub queue: QueueLengths,
    /// Packets dropped by the bottleneck.
    pub drops: u64,
    /// Packets marked by the bottleneck.
    pub marks: u64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Retransmission timeouts, without backoff repetitions.
    pub timeouts: u64,
    /// Wall time in seconds.
    pub wall_s: f64,
    /// Processor time in seconds.
    pub cpu_s: f64,
}

impl Crosscheck {
    /// Returns the total payload rate at the receivers in bit/s.
    pub fn total_goodput_bps(&self) -> f64 {
        self.goodput_bps.iter().sum()
    }

    /// Returns Jain's fairness index: 1 if all flows have the same rate, 1/n if one of n has everything (Jain, Chiu and
    /// Hawe, DEC TR-301, 1984).
    pub fn fairness(&self) -> f64 {
        let squares: f64 = self.goodput_bps.iter().map(|goodput| goodput * goodput).sum();
        let total = self.total_goodput_bps();
        total * total / (self.goodput_bps.len() as f64 * squares)
    }
}

/// Queue length of a port in packets, sampled every millisecond, without the packet in transmission.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueLengths {
    /// Number of samples.
    pub samples: u64,
    /// Mean.
    pub mean: f64,
    /// 5th percentile (nearest rank, as all percentiles here).
    pub p5: u32,
    /// Median.
    pub median: u32,
    /// 95th percentile.
    pub p95: u32,
    /// 99th percentile.
    pub p99: u32,
    /// Maximum.
    pub max: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_deserialise_from_their_names() {
        for scenario in Scenario::ALL {
            let name = serde_json::Value::from(scenario.name());
            assert_eq!(serde_json::from_value::<Scenario>(name).unwrap(), scenario);
        }
    }

    #[test]
    fn fairness_index_is_one_for_equal_rates() {
        let line = r#"{"scenario": "fairness-cubic", "emulated_s": 2, "warm_up_s": 0.2, "rtt_us": 100,
            "goodput_bps": [4e8, 4e8], "queue": {"samples": 1800, "mean": 74.53, "p5": 72, "median": 74, "p95": 76,
            "p99": 100, "max": 100}, "drops": 6, "marks": 0, "retransmissions": 7, "timeouts": 0, "wall_s": 0.323,
            "cpu_s": 0.161}"#;
        let mut run: Crosscheck = serde_json::from_str(line).unwrap();
        assert_eq!((run.total_goodput_bps(), run.fairness()), (8e8, 1.0));
        run.goodput_bps = vec![8e8, 0.0];
        assert_eq!(run.fairness(), 0.5);
    }
}
