//! Opens the packet sources that the command line names.

use std::num::NonZeroUsize;
use std::path::Path;

use thalweg_capture::backend::Backend;
use thalweg_capture::dpdk::{DpdkOptions, device_of};
use thalweg_capture::live::LiveOptions;
use thalweg_capture::{AnySource, CaptureError, FileAccess, InterfaceSpec, Opened, Readers, Spec, open};
use thalweg_dataplane::Counting;
use thalweg_linux::netdevice::interface_names;
use thalweg_measure::tasks::FlowBytes;
use thalweg_wire::{Batch, Progress, Source, SourceCounters};
use thiserror::Error;

use crate::options::WatchOptions;
use crate::survey::LinkMtu;

/// Suffixes of file names. A missing source with one of them is reported as a missing file, not as a missing interface.
const FILE_SUFFIXES: [&str; 11] =
    [".pcap", ".pcapng", ".cap", ".dmp", ".gz", ".zst", ".bz2", ".xz", ".lz4", ".ntar", ".trace"];

/// Part of the names of rotated files: `eth0.pcap3`, `eth0.pcap.20261122`.
const ROTATED: &str = ".pcap";

/// The environment variable with the options of DPDK's EAL.
const EAL_VARIABLE: &str = "THALWEG_DPDK_EAL";

/// What is lost with DPDK's driver for Linux interfaces.
const AF_PACKET_DRIVER: &str = "the driver reassembles IPv4 fragments, and counts frames longer than its buffers as cut; \
                                the interface itself has neither limit";

/// The default backend, which needs no notice: the host still receives its packets.
const DEFAULT_BACKEND: Option<Backend> = Some(Backend::AfPacket);

/// Open packet sources.
#[derive(Debug)]
pub(crate) enum Inputs {
    /// Files, read one after another.
    Files(Vec<Input>),
    /// Capture rings of interfaces, read in parallel. An interface has one ring per worker.
    Rings(Vec<Input>),
    /// Sketches in the kernel.
    Kernel(Box<Counting<FlowBytes>>),
}

/// The opened sources.
#[derive(Debug)]
pub(crate) struct OpenInputs {
    pub(crate) inputs: Inputs,
    /// A line for each interface whose backend is not the default.
    pub(crate) notices: Vec<String>,
    /// Files that cannot be read.
    pub(crate) skipped: Vec<Incomplete>,
}

/// An input that was not read to its end.
#[derive(Clone, Debug)]
pub struct Incomplete {
    /// Name of the input.
    pub name: String,
    /// The error that ended reading.
    pub reason: String,
    /// Whether nothing of it was read.
    pub is_skipped: bool,
}

/// An open source and its name.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    /// MTU of the interface.
    pub(crate) mtu: LinkMtu,
    source: AnySource,
}

/// An error of a source.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InputError {
    /// A capture file.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// Names that are neither files nor interfaces, such as the words of a capture filter.
    #[error(
        "no file or interface {name:?}. To measure only some packets, give a capture filter: -f '{name}'"
    )]
    NotASource {
        /// The name.
        name: String,
    },
    /// A directory without captures.
    #[error("{directory}: no capture files: expected names that end in {} or contain {ROTATED}", FILE_SUFFIXES.join(", "))]
    NoCaptures {
        /// The directory.
        directory: String,
    },
    /// A directory that cannot be read.
    #[error("cannot read the directory {directory}: {source}")]
    Directory {
        /// The directory.
        directory: String,
        /// The reason.
        source: std::io::Error,
    },
    /// Files mixed with interfaces.
    #[error("cannot watch files and interfaces in one run: {file} is a file, {interface} is an interface")]
    Mixed {
        /// One of the files.
        file: String,
        /// One of the interfaces.
        interface: String,
    },
    /// Replay of an interface.
    #[error("--replay applies only to files: {interface} is an interface")]
    Replay {
        /// The first interface.
        interface: String,
    },
}

impl Inputs {
    /// Opens all sources, with a ring per worker for each interface. Skips files that cannot be read.
    ///
    /// # Errors
    /// If no file or an interface cannot be opened, a name is that of neither, or files and interfaces are mixed.
    pub(crate) fn open(options: &WatchOptions) -> Result<OpenInputs, InputError> {
        let (files, interfaces): (Vec<&String>, Vec<&String>) =
            options.sources.iter().partition(|name| is_file_name(name));
        let is_words = |name: &&&String| device_of(name).is_none() && name.contains(char::is_whitespace);
        if let Some(name) = interfaces.iter().find(is_words) {
            return Err(InputError::NotASource { name: name.to_string() });
        }
        if let ([file, ..], [interface, ..]) = (files.as_slice(), interfaces.as_slice()) {
            let known = interface_names();
            let is_unknown =
                |name: &&str| device_of(name).is_none() && !known.iter().any(|known| known == name);
            let unknown: Vec<&str> = interfaces.iter().map(|name| name.as_str()).filter(is_unknown).collect();
            let unknown = unknown.join(" ");
            return Err(match unknown.is_empty() {
                true => InputError::Mixed { file: file.to_string(), interface: interface.to_string() },
                false => InputError::NotASource { name: unknown },
            });
        }
        if interfaces.is_empty() {
            let access = match options.replay {
                // A replay may take hours, in which the file may change.
                Some(_) => FileAccess::Buffered,
                None => FileAccess::Mapped,
            };
            let files = with_directories(&files)?;
            return open_files(&files, options.capture_filter.as_deref(), access);
        }
        if let (Some(_), [interface, ..]) = (options.replay, interfaces.as_slice()) {
            return Err(InputError::Replay { interface: interface.to_string() });
        }
        let workers = workers_per_interface(options.workers, interfaces.len());
        let (mut rings, mut notices) = (Vec::new(), Vec::new());
        for name in interfaces {
            if let Some(device) = device_of(name) {
                let readers = Readers::Workers(workers);
                let Opened { sources, .. } =
                    open(&Spec::Dpdk { options: dpdk_options(device, options), readers })?;
                if device.starts_with("net_af_packet") {
                    notices.push(format!("{name}: {AF_PACKET_DRIVER}"));
                }
                let mtu = LinkMtu::Unknown;
                rings.extend(sources.into_iter().map(|source| Input { name: name.clone(), mtu, source }));
                continue;
            }
            let live = LiveOptions {
                interface: name.clone(),
                filter: options.capture_filter.clone(),
                ..options.live.clone()
            };
            let spec = InterfaceSpec {
                backend: options.backend,
                readers: Readers::Workers(workers),
                ..InterfaceSpec::new(live)
            };
            let Opened { sources, choice } = open(&spec.into())?;
            let choice = choice.filter(|_| options.backend != DEFAULT_BACKEND);
            notices.extend(choice.map(|choice| format!("{name}: {}", choice.reason)));
            let mtu = LinkMtu::of_interface(name);
            rings.extend(sources.into_iter().map(|source| Input { name: name.clone(), mtu, source }));
        }
        Ok(OpenInputs { inputs: Inputs::Rings(rings), notices, skipped: Vec::new() })
    }
}

/// Returns the options of a DPDK port.
fn dpdk_options(device: &str, options: &WatchOptions) -> DpdkOptions {
    DpdkOptions {
        snap_length: options.live.snap_length,
        promiscuous: options.live.promiscuous,
        filter: options.capture_filter.clone(),
        eal: std::env::var(EAL_VARIABLE).ok(),
        ..DpdkOptions::new(device)
    }
}

/// Replaces each directory by its capture files, in the order of their names.
fn with_directories(names: &[&String]) -> Result<Vec<String>, InputError> {
    let mut files = Vec::new();
    for &name in names {
        if !Path::new(name).is_dir() {
            files.push(name.clone());
            continue;
        }
        let failed = |source| InputError::Directory { directory: name.clone(), source };
        let mut found = Vec::new();
        for entry in std::fs::read_dir(name).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let is_capture = path.file_name().and_then(|name| name.to_str()).is_some_and(is_capture_name);
            if is_capture && path.is_file() {
                found.extend(path.to_str().map(str::to_owned));
            }
        }
        if found.is_empty() {
            return Err(InputError::NoCaptures { directory: name.clone() });
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

fn is_capture_name(name: &str) -> bool {
    !name.starts_with('.')
        && (name.contains(ROTATED) || FILE_SUFFIXES.iter().any(|suffix| name.ends_with(suffix)))
}

/// Opens files. Skips those that cannot be read, unless it is all.
fn open_files(names: &[String], filter: Option<&str>, access: FileAccess) -> Result<OpenInputs, InputError> {
    let (mut inputs, mut skipped, mut first_error) = (Vec::new(), Vec::new(), None);
    for name in names {
        match Input::open_file(name, filter, access) {
            Ok(input) => inputs.push(input),
            // No file can be read with this filter.
            Err(error @ InputError::Capture(CaptureError::Filter(_))) => return Err(error),
            Err(error) => {
                let reason = error.to_string();
                skipped.push(Incomplete { name: name.to_string(), reason, is_skipped: true });
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error.filter(|_| inputs.is_empty()) {
        Some(error) => Err(error),
        None => Ok(OpenInputs { inputs: Inputs::Files(inputs), notices: Vec::new(), skipped }),
    }
}

/// Returns the requested number of workers, or the number of cores divided by the number of interfaces; at least 1.
fn workers_per_interface(requested: Option<usize>, interfaces: usize) -> NonZeroUsize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let workers = requested.unwrap_or(cores / interfaces);
    NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN)
}

/// Whether a name is that of a file: it is `-`, has a slash or a known suffix, or the file exists. The arguments of a DPDK port may
/// contain the name of a file.
pub(crate) fn is_file_name(name: &str) -> bool {
    let path = Path::new(name);
    if device_of(name).is_some() {
        return false;
    }
    name == "-"
        || name.contains('/')
        || FILE_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
        || path.exists()
}

impl Input {
    fn open_file(name: &str, filter: Option<&str>, access: FileAccess) -> Result<Input, InputError> {
        let spec = Spec::File { path: name.into(), filter: filter.map(str::to_owned), access };
        let mut opened = open(&spec)?;
        let source = opened.sources.pop().expect("a file has one source");
        Ok(Input { name: source.name().to_owned(), mtu: LinkMtu::Unknown, source })
    }

    /// Whether packets are captured live and timestamped by the clock of this machine.
    pub(crate) fn is_live(&self) -> bool {
        self.source.is_live()
    }

    /// Whether the source is a DPDK port.
    pub(crate) fn is_dpdk(&self) -> bool {
        self.source.is_dpdk()
    }

    /// Whether the source is an interface that is down.
    pub(crate) fn is_down(&self) -> bool {
        self.source.is_down()
    }
}

impl Source for Input {
    type Error = InputError;

    #[inline]
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, InputError> {
        Ok(self.source.next_batch()?)
    }

    fn counters(&mut self) -> SourceCounters {
        self.source.counters()
    }

    fn progress(&self) -> Option<Progress> {
        self.source.progress()
    }
}
