//! From what was named on the command line to open packet sources.

use std::num::NonZeroUsize;
use std::path::Path;

use thalweg_capture::file::{FileError, FileSource};
use thalweg_capture::filter::{Filter, FilterError, Filtered, FilteredError};
use thalweg_capture::live::{LinkState, LiveError, LiveOptions, LiveSource};
use thalweg_wire::{Batch, LinkType, Progress, Source, SourceCounters};
use thiserror::Error;

use crate::options::WatchOptions;

/// Name endings that say file, where there is no such file.
const FILE_ENDINGS: [&str; 8] = [".pcap", ".pcapng", ".cap", ".dmp", ".gz", ".zst", ".ntar", ".trace"];

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

#[derive(Debug)]
enum AnySource {
    File(FileSource),
    FilteredFile(Filtered<FileSource>),
    Live(LiveSource),
}

/// Why a source could not be opened, or could not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InputError {
    /// A capture file.
    #[error(transparent)]
    File(#[from] FileError),
    /// An interface.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The capture filter.
    #[error(transparent)]
    Filter(#[from] FilterError),
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
    /// Opens all sources. Interfaces get a ring for each worker.
    ///
    /// # Errors
    /// If one cannot be opened, or files and interfaces are mixed.
    pub(crate) fn open(options: &WatchOptions) -> Result<Inputs, InputError> {
        let (files, interfaces): (Vec<&String>, Vec<&String>) =
            options.sources.iter().partition(|name| names_a_file(name));
        if let ([file, ..], [interface, ..]) = (files.as_slice(), interfaces.as_slice()) {
            return Err(InputError::Mixed { file: file.to_string(), interface: interface.to_string() });
        }
        if interfaces.is_empty() {
            if let Some(expression) = &options.filter {
                // A file's own link type is known with its first frame only; what is wrong on Ethernet is wrong
                // everywhere, and is better said before anything is read.
                Filter::compile(expression, LinkType::Ethernet, 0)?;
            }
            let open = |name: &&String| Input::open_file(name, options.filter.as_deref());
            return Ok(Inputs::Files(files.iter().map(open).collect::<Result<_, _>>()?));
        }
        if let (Some(_), [interface, ..]) = (options.replay, interfaces.as_slice()) {
            return Err(InputError::Replay { interface: interface.to_string() });
        }
        let workers = workers_each(options.workers, interfaces.len());
        let mut rings = Vec::new();
        for name in interfaces {
            let live = LiveOptions {
                interface: name.clone(),
                filter: options.filter.clone(),
                ..options.live.clone()
            };
            let group = LiveSource::open_group(&live, workers)?;
            rings.extend(
                group.into_iter().map(|ring| Input { name: name.clone(), source: AnySource::Live(ring) }),
            );
        }
        Ok(Inputs::Rings(rings))
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
        let file = FileSource::open(Path::new(name))?;
        let source = match filter {
            None => AnySource::File(file),
            Some(expression) => AnySource::FilteredFile(Filtered::new(file, expression)?),
        };
        let name = if name == "-" { "standard input" } else { name };
        Ok(Input { name: name.to_owned(), source })
    }

    /// Whether packets come as they happen, by the clock of this machine.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.source, AnySource::Live(_))
    }

    /// Whether it is an interface that is down.
    pub(crate) fn is_down(&self) -> bool {
        matches!(&self.source, AnySource::Live(live) if live.link_state() == LinkState::Down)
    }
}

impl Source for Input {
    type Error = InputError;

    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, InputError> {
        match &mut self.source {
            AnySource::File(file) => Ok(file.next_batch()?),
            AnySource::FilteredFile(file) => file.next_batch().map_err(|error| match error {
                FilteredError::Source(error) => InputError::File(error),
                FilteredError::Filter(error) => InputError::Filter(error),
            }),
            AnySource::Live(live) => Ok(live.next_batch()?),
        }
    }

    fn counters(&mut self) -> SourceCounters {
        match &mut self.source {
            AnySource::File(file) => file.counters(),
            AnySource::FilteredFile(file) => file.counters(),
            AnySource::Live(live) => live.counters(),
        }
    }

    fn progress(&self) -> Option<Progress> {
        match &self.source {
            AnySource::File(file) => file.progress(),
            AnySource::FilteredFile(file) => file.progress(),
            AnySource::Live(live) => live.progress(),
        }
    }
}
