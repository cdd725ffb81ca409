//! What `[[collector]]` says of where packets come from.

use std::path::{Path, PathBuf};

use thalweg_capture::Namespace;
use thalweg_capture::backend::Backend;
use thalweg_config::{Problem, Typed};
use thalweg_wire::{Bytes, Nanos};

use super::table::Collector;
use crate::emulation::EmulationConfig;

/// Where packets come from.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceConfig {
    /// A network interface.
    Interface {
        /// Its name.
        name: String,
        /// The network namespace that it is in; `None` for that of the daemon.
        namespace: Option<Namespace>,
        /// How; `None` to choose.
        backend: Option<Backend>,
        /// Whether to ask the network card for packets.
        busy_poll: bool,
        /// Memory for packets that wait.
        ring_size: Bytes,
        /// How long the kernel may gather packets.
        block_timeout: Nanos,
    },
    /// A capture file, `-` for standard input.
    File {
        /// Its name.
        path: PathBuf,
        /// Times the recorded pace; `None` as fast as possible.
        speed: Option<f64>,
    },
    /// The monitor port of its switch in the daemon's emulation.
    Port {
        /// The emulation's experiment.
        experiment: PathBuf,
    },
    /// An experiment that is emulated for it alone.
    Emulation {
        /// Its file.
        experiment: PathBuf,
        /// The router whose monitor port it is.
        mirror: String,
        /// Times the pace of emulated time; `None` as fast as possible.
        speed: Option<f64>,
    },
}

impl SourceConfig {
    /// Whether packets come as they happen, by the clock of this machine.
    pub const fn is_live(&self) -> bool {
        matches!(self, SourceConfig::Interface { .. })
    }

    /// Times the recorded pace.
    pub const fn speed(&self) -> Option<f64> {
        match self {
            SourceConfig::Interface { .. } | SourceConfig::Port { .. } => None,
            SourceConfig::File { speed, .. } | SourceConfig::Emulation { speed, .. } => *speed,
        }
    }

    /// In words, as `interface eth1`.
    pub fn in_words(&self) -> String {
        match self {
            SourceConfig::Interface { name, namespace: None, .. } => format!("interface {name}"),
            SourceConfig::Interface { name, namespace: Some(namespace), .. } => {
                format!("interface {name} in namespace {}", namespace.name())
            }
            SourceConfig::File { path, .. } if path == Path::new("-") => "standard input".to_owned(),
            SourceConfig::File { path, .. } => format!("file {}", path.display()),
            SourceConfig::Port { experiment } => format!("its monitor port in {}", experiment.display()),
            SourceConfig::Emulation { experiment, mirror, .. } => {
                format!("monitor port of {mirror}, emulated as {} says", experiment.display())
            }
        }
    }
}

/// The one of three ways in which packets come; without any, that of the daemon's emulation.
pub(super) fn read(
    entry: &Typed<'_, Collector>,
    folder: &Path,
    switch: &str,
    emulation: Option<&EmulationConfig>,
    problems: &mut Vec<Problem>,
) -> Option<SourceConfig> {
    let ways = [
        (Collector::interface, &entry.interface),
        (Collector::file, &entry.file),
        (Collector::emulate, &entry.emulate),
    ];
    let set: Vec<_> = ways.into_iter().filter_map(|(way, value)| Some((way, value.as_ref()?))).collect();
    if let ([], Some(emulation)) = (&set[..], emulation) {
        return port(entry, switch, emulation, problems);
    }
    let [(way, value)] = set[..] else {
        let set: Vec<&'static str> = set.iter().map(|(way, _)| *way).collect();
        let reason = match set[..] {
            [] => "expected one of interface, file and emulate".to_owned(),
            _ => format!("it has {}: only one can be", set.join(" and ")),
        };
        problems.push(entry.refuse(set.get(1).copied().unwrap_or(Collector::name), reason));
        return None;
    };
    let others: [(&'static str, &[&str]); 7] = [
        (Collector::namespace, &[Collector::interface]),
        (Collector::backend, &[Collector::interface]),
        (Collector::busy_poll, &[Collector::interface]),
        (Collector::ring_size, &[Collector::interface]),
        (Collector::block_timeout, &[Collector::interface]),
        (Collector::speed, &[Collector::file, Collector::emulate]),
        (Collector::mirror, &[Collector::emulate]),
    ];
    for (key, of) in others.into_iter().filter(|(key, of)| entry.is_set(key) && !of.contains(&way)) {
        problems.push(entry.refuse(key, format!("it goes with {}, not with {way}", of.join(" or "))));
    }
    let speed = entry.speed;
    Some(match way {
        Collector::interface => SourceConfig::Interface {
            name: value.to_owned(),
            namespace: entry.namespace.as_deref().map(Namespace::named),
            backend: entry.backend.backend(),
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

/// Keys of `[[collector]]` that say how packets come, beside those that say from where.
const OF_SOURCES: [&str; 7] = [
    Collector::namespace,
    Collector::backend,
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
    for key in OF_SOURCES.into_iter().filter(|key| entry.is_set(key)) {
        problems.push(entry.refuse(key, "it says nothing of a monitor port of [emulate]"));
    }
    if !emulation.ports.iter().any(|(of, _)| **of == *switch) {
        let reason = format!("the experiment of [emulate] has no [[mirror]] of router {switch:?}");
        problems.push(entry.refuse(Collector::switch, reason));
        return None;
    }
    Some(SourceConfig::Port { experiment: emulation.path.clone() })
}
