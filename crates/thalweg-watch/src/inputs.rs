//! From what was named on the command line to open packet sources.

use std::num::NonZeroUsize;
use std::path::Path;

use thalweg_capture::backend::Backend;
use thalweg_capture::live::LiveOptions;
use thalweg_capture::{AnySource, CaptureError, InterfaceSpec, Opened, Readers, Spec, open};
use thalweg_wire::{Batch, Progress, Source, SourceCounters};
use thiserror::Error;

use crate::options::WatchOptions;

/// Name endings that say file, where there is no such file.
const FILE_ENDINGS: [&str; 8] = [".pcap", ".pcapng", ".cap", ".dmp", ".gz", ".zst", ".ntar", ".trace"];

/// What nothing is said about: it leaves the host its packets.
const DEFAULT_BACKEND: Option<Backend> = Some(Backend::AfPacket);

/// Everything that packets come from, open.
#[derive(Debug)]
pub(crate) enum Inputs {
    /// Files, to be read one after the other.
    Files(Vec<Input>),
    /// Rings of interfaces, to be read all at once; several of one interface if it has several workers.
    Rings(Vec<Input>),
}

/// One open source and its name.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    source: AnySource,
}

/// Why a source could not be opened, or could not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InputError {
    /// A capture file.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// Files and interfaces together.
    #[error("files and interfaces cannot be watched together: {file} is a file, {interface} an interface")]
    Mixed {
        /// One of the files.
        file: String,
        /// One of the interfaces.
        interface: String,
    },
    /// An interface that is to be replayed.
    #[error("only files can be replayed, and {interface} is an interface")]
    Replay {
        /// The first interface.
        interface: String,
    },
}

impl Inputs {
    /// Opens all sources. Interfaces get a ring for each worker. Also gives what there is to say about the backend of
    /// each interface, if it is not the default.
    ///
    /// # Errors
    /// If one cannot be opened, or files and interfaces are mixed.
    pub(crate) fn open(options: &WatchOptions) -> Result<(Inputs, Vec<String>), InputError> {
        let (files, interfaces): (Vec<&String>, Vec<&String>) =
            options.sources.iter().partition(|name| names_a_file(name));
        if let ([file, ..], [interface, ..]) = (files.as_slice(), interfaces.as_slice()) {
            return Err(InputError::Mixed { file: file.to_string(), interface: interface.to_string() });
        }
        if interfaces.is_empty() {
            let open = |name: &&String| Input::open_file(name, options.capture_filter.as_deref());
            let inputs = files.iter().map(open).collect::<Result<_, _>>()?;
            return Ok((Inputs::Files(inputs), Vec::new()));
        }
        if let (Some(_), [interface, ..]) = (options.replay, interfaces.as_slice()) {
            return Err(InputError::Replay { interface: interface.to_string() });
        }
        let workers = workers_each(options.workers, interfaces.len());
        let (mut rings, mut notices) = (Vec::new(), Vec::new());
        for name in interfaces {
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
            rings.extend(sources.into_iter().map(|source| Input { name: name.clone(), source }));
        }
        Ok((Inputs::Rings(rings), notices))
    }
}

/// What was asked for, or one a core, shared by the interfaces.
fn workers_each(asked: Option<usize>, interfaces: usize) -> NonZeroUsize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let workers = asked.unwrap_or(cores / interfaces);
    NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN)
}

/// A name is a file's if there is such a file, if it has a slash, or if it ends as capture files do.
fn names_a_file(name: &str) -> bool {
    let path = Path::new(name);
    name == "-"
        || name.contains('/')
        || FILE_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || path.exists()
}

impl Input {
    fn open_file(name: &str, filter: Option<&str>) -> Result<Input, InputError> {
        let mut opened = open(&Spec::File { path: name.into(), filter: filter.map(str::to_owned) })?;
        let source = opened.sources.pop().expect("a file has one source");
        Ok(Input { name: source.name().to_owned(), source })
    }

    /// Whether packets come as they happen, by the clock of this machine.
    pub(crate) fn is_live(&self) -> bool {
        self.source.is_live()
    }

    /// Whether it is an interface that is down.
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
