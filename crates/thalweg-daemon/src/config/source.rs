//! The packet source of a `[[collector]]`.

use std::path::{Path, PathBuf};

use thalweg_capture::Namespace;
use thalweg_capture::backend::Backend;
use thalweg_capture::live::Way;
use thalweg_config::{Problem, Typed};
use thalweg_wire::{Bytes, Nanos};

use super::names::{BackendName, WayName};
use super::table::Collector;
use crate::emulation::EmulationConfig;

/// A packet source.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceConfig {
    /// A network interface.
    Interface {
        /// Name of the interface.
        name: String,
        /// Network namespace of the interface; `None` for that of the daemon.
        namespace: Option<Namespace>,
        /// Capture backend; `None` to choose automatically.
        backend: Option<Backend>,
        /// Which frames to measure.
        way: Way,
        /// Whether to poll the network card.
        busy_poll: bool,
        /// Size of the capture ring; `None` for that of the backend.
        ring_size: Option<Bytes>,
        /// Maximum time that the kernel may batch packets.
        block_timeout: Nanos,
    },
    /// A capture file, `-` for standard input.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Replay speed relative to real time; `None` for as fast as possible.
        speed: Option<f64>,
    },
    /// The monitor port of the collector's switch in the daemon's emulation.
    Port {
        /// Experiment file of the emulation.
        experiment: PathBuf,
    },
    /// An experiment that is emulated for this collector alone.
    Emulation {
        /// Experiment file.
        experiment: PathBuf,
        /// Router of the monitor port.
        mirror: String,
        /// Emulated seconds per second; `None` for as fast as possible.
        speed: Option<f64>,
    },
}

impl SourceConfig {
    /// Whether packets arrive in real time, with timestamps of this machine's clock.
    pub const fn is_live(&self) -> bool {
        matches!(self, SourceConfig::Interface { .. })
    }

    /// Returns the replay speed; `None` for live sources, or as fast as possible.
    pub const fn speed(&self) -> Option<f64> {
        match self {
            SourceConfig::Interface { .. } | SourceConfig::Port { .. } => None,
            SourceConfig::File { speed, .. } | SourceConfig::Emulation { speed, .. } => *speed,
        }
    }

    /// Returns a description such as `interface eth1`.
    pub fn description(&self) -> String {
        match self {
            SourceConfig::Interface { name, namespace: None, .. } => format!("interface {name}"),
            SourceConfig::Interface { name, namespace: Some(namespace), .. } => {
                format!("interface {name} in namespace {}", namespace.name())
            }
            SourceConfig::File { path, .. } if path == Path::new("-") => "standard input".to_owned(),
            SourceConfig::File { path, .. } => format!("file {}", path.display()),
            SourceConfig::Port { experiment } => {
                format!("emulated monitor port, {}", experiment.display())
            }
            SourceConfig::Emulation { experiment, mirror, .. } => {
                format!("monitor port of {mirror} in an emulation of {}", experiment.display())
            }
        }
    }
}

/// Reads the source: one of three keys, or by default the daemon's emulation.
pub(super) fn read(
    entry: &Typed<'_, Collector>,
    folder: &Path,
    switch: &str,
    emulation: Option<&EmulationConfig>,
    problems: &mut Vec<Problem>,
) -> Option<SourceConfig> {
    let kinds = [
        (Collector::interface, &entry.interface),
        (Collector::file, &entry.file),
        (Collector::emulate, &entry.emulate),
    ];
    let set: Vec<_> = kinds.into_iter().filter_map(|(kind, value)| Some((kind, value.as_ref()?))).collect();
    if let ([], Some(emulation)) = (&set[..], emulation) {
        return port(entry, switch, emulation, problems);
    }
    let [(kind, value)] = set[..] else {
        let set: Vec<&'static str> = set.iter().map(|(kind, _)| *kind).collect();
        let reason = match set[..] {
            [] => "no source: add one of the keys interface, file and emulate".to_owned(),
            _ => format!(
                "conflicting sources {}: expected one of interface, file and emulate",
                set.join(" and ")
            ),
        };
        problems.push(entry.refuse(set.get(1).copied().unwrap_or(Collector::name), reason));
        return None;
    };
    if entry.way == WayName::Out && entry.backend == BackendName::AfXdp {
        problems.push(entry.refuse(Collector::way, "out requires backend af_packet or prompt, not af_xdp"));
    }
    let others: [(&'static str, &[&str]); 8] = [
        (Collector::namespace, &[Collector::interface]),
        (Collector::backend, &[Collector::interface]),
        (Collector::way, &[Collector::interface]),
        (Collector::busy_poll, &[Collector::interface]),
        (Collector::ring_size, &[Collector::interface]),
        (Collector::block_timeout, &[Collector::interface]),
        (Collector::speed, &[Collector::file, Collector::emulate]),
        (Collector::mirror, &[Collector::emulate]),
    ];
    for (key, of) in others.into_iter().filter(|(key, of)| entry.is_set(key) && !of.contains(&kind)) {
        problems.push(entry.refuse(key, format!("requires {}, not {kind}", of.join(" or "))));
    }
    let speed = entry.speed;
    Some(match kind {
        Collector::interface => SourceConfig::Interface {
            name: value.to_owned(),
            namespace: entry.namespace.as_deref().map(Namespace::named),
            backend: entry.backend.backend(),
            way: entry.way.way(),
            busy_poll: entry.busy_poll,
            ring_size: entry.ring_size,
            block_timeout: entry.block_timeout,
        },
        Collector::file if value == "-" => SourceConfig::File { path: value.into(), speed },
        Collector::file => SourceConfig::File { path: folder.join(value), speed },
        _ => SourceConfig::Emulation {
            experiment: folder.join(value),
            mirror: entry.mirror.as_deref().unwrap_or(switch).to_owned(),
            speed,
        },
    })
}

/// Keys of `[[collector]]` that configure a source of its own.
const SOURCE_KEYS: [&str; 8] = [
    Collector::namespace,
    Collector::backend,
    Collector::way,
    Collector::busy_poll,
    Collector::ring_size,
    Collector::block_timeout,
    Collector::speed,
    Collector::mirror,
];

fn port(
    entry: &Typed<'_, Collector>,
    switch: &str,
    emulation: &EmulationConfig,
    problems: &mut Vec<Problem>,
) -> Option<SourceConfig> {
    for key in SOURCE_KEYS.into_iter().filter(|key| entry.is_set(key)) {
        problems.push(entry.refuse(key, "has no effect on a monitor port of [emulate]"));
    }
    if !emulation.ports.iter().any(|(of, _)| **of == *switch) {
        let reason = format!("no [[mirror]] of router {switch:?} in the experiment of [emulate]");
        problems.push(entry.refuse(Collector::switch, reason));
        return None;
    }
    Some(SourceConfig::Port { experiment: emulation.path.clone() })
}
