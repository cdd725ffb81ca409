//! From a collector's configuration to an open packet source.

use std::num::NonZeroUsize;
use std::path::Path;

use thalweg_capture::backend::{self, AnySource, Backend};
use thalweg_capture::file::{FileError, FileSource};
use thalweg_capture::filter::{FilterError, Filtered, FilteredError};
use thalweg_capture::live::{LinkState, LiveError, LiveOptions};
use thalweg_capture::xdp::{BusyPoll, XdpOptions};
use thalweg_experiment::{Experiment, ExperimentError, Plan};
use thalweg_wire::{Batch, Source, SourceCounters};
use thiserror::Error;

use crate::serve::config::{CollectorConfig, SourceConfig};
use crate::serve::emulation::{EmulatedPort, Emulation};

/// A source that is open, and how packets come.
pub(crate) struct Opened {
    pub(super) source: OpenSource,
    /// For the log and the API: which backend, and why.
    pub(super) backend: String,
}

/// A source that is open.
pub(super) enum OpenSource {
    /// A file or an interface.
    Input(Box<Input>),
    /// An experiment that is ready to run.
    Emulation(Box<Plan>),
    /// A monitor port of the daemon's emulation.
    Port(EmulatedPort),
    /// What a test puts in the place of an interface.
    #[cfg(test)]
    Injected(super::tests::injected::Injected),
}

/// A file or an interface.
pub(super) enum Input {
    File(FileSource),
    FilteredFile(Filtered<FileSource>),
    Live(AnySource),
}

/// Why a source cannot be opened, or could not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// Of a file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Of an interface.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// Of a filter.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// Of an experiment.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// Of an experiment that runs.
    #[error(transparent)]
    Feed(#[from] thalweg_experiment::mirror::port::FeedError),
    /// It cannot say whether packets wait, and so would keep others waiting.
    #[error("threads = \"one\" goes with interfaces and unfiltered ports of [emulate]")]
    NotShareable,
    /// The daemon's emulation has no such monitor port; it was started with another configuration.
    #[error("the emulation of this daemon has no monitor port at {0:?}: start the daemon anew")]
    NoPort(String),
    /// AF_XDP has a socket for each receive queue, and a collector reads one.
    #[error(
        "`{interface}` has {queues} receive queues, and a collector reads one through AF_XDP: \
         `ethtool -L {interface} combined 1` makes it one, or use backend = \"af_packet\""
    )]
    Queues {
        /// The interface.
        interface: String,
        /// How many.
        queues: usize,
    },
}

impl Opened {
    /// Opens what the configuration names; a monitor port of `emulation`, if that is where it is.
    ///
    /// # Errors
    /// If it cannot be.
    pub(crate) fn open(
        config: &CollectorConfig,
        emulation: Option<&Emulation>,
    ) -> Result<Opened, SourceError> {
        #[cfg(test)]
        if let Some(injected) = super::tests::injected::source(config) {
            return Ok(Opened { source: OpenSource::Injected(injected), backend: "injected".to_owned() });
        }
        match &config.source {
            SourceConfig::File { path, .. } => {
                let input = Input::open_file(path, config.filter.as_deref())?;
                Ok(Opened { source: OpenSource::Input(Box::new(input)), backend: "file".to_owned() })
            }
            SourceConfig::Emulation { experiment, .. } => {
                let plan = Plan::new(&Experiment::load(experiment)?)?;
                Ok(Opened { source: OpenSource::Emulation(Box::new(plan)), backend: "emulation".to_owned() })
            }
            SourceConfig::Port { .. } => {
                let port = emulation.and_then(|emulation| emulation.port(&config.switch));
                let port = port.ok_or_else(|| SourceError::NoPort(config.switch.to_string()))?;
                Ok(Opened { source: OpenSource::Port(port), backend: "the daemon's emulation".to_owned() })
            }
            SourceConfig::Interface { .. } => {
                let (live, backend) = open_interface(config)?;
                Ok(Opened { source: OpenSource::Input(Box::new(Input::Live(live))), backend })
            }
        }
    }
}

/// Opens an interface; also says how, and why so.
fn open_interface(config: &CollectorConfig) -> Result<(AnySource, String), SourceError> {
    let SourceConfig::Interface { name, backend, busy_poll, ring_size, block_timeout } = &config.source
    else {
        unreachable!("asked of interfaces only")
    };
    let packet = LiveOptions {
        ring_size: *ring_size,
        block_timeout: *block_timeout,
        filter: config.filter.clone(),
        ..LiveOptions::new(name)
    };
    let xdp = XdpOptions {
        memory_size: *ring_size,
        busy_poll: busy_poll.then(BusyPoll::default),
        ..XdpOptions::from(&packet)
    };
    let open = |backend| AnySource::open_group(&packet, &xdp, NonZeroUsize::MIN, backend);
    let (mut group, choice) = open(*backend)?;
    let queues = group.len();
    match (group.pop(), queues, backend) {
        (Some(source), 1, _) => Ok((source, choice.reason)),
        (_, queues, Some(_)) => Err(SourceError::Queues { interface: name.clone(), queues }),
        // Its sockets have to be gone before another way is tried.
        (last, queues, None) => {
            drop((last, group));
            let (mut group, _) = open(Some(Backend::AfPacket))?;
            Ok((group.pop().expect("a group of one"), too_many_queues(name, queues)))
        }
    }
}

/// How packets of an interface would come, and why so.
pub(crate) fn foretell(interface: &str, wanted: Option<Backend>) -> String {
    let choice = backend::choose(interface, wanted);
    let queues = receive_queues(interface);
    match wanted {
        _ if choice.backend != Backend::AfXdp || queues < 2 => choice.reason,
        None => too_many_queues(interface, queues),
        Some(_) => SourceError::Queues { interface: interface.to_owned(), queues }.to_string(),
    }
}

fn too_many_queues(interface: &str, queues: usize) -> String {
    format!(
        "AF_PACKET, since `{interface}` has {queues} receive queues, and AF_XDP would need one socket each"
    )
}

/// As the kernel lists them; none of an interface that is not there.
fn receive_queues(interface: &str) -> usize {
    let queues = std::fs::read_dir(Path::new("/sys/class/net").join(interface).join("queues"));
    let names = queues.into_iter().flatten().flatten().map(|queue| queue.file_name());
    names.filter(|name| name.as_encoded_bytes().starts_with(b"rx-")).count()
}

impl Input {
    fn open_file(path: &Path, filter: Option<&str>) -> Result<Input, SourceError> {
        let file = FileSource::open(path)?;
        Ok(match filter {
            None => Input::File(file),
            Some(expression) => Input::FilteredFile(Filtered::new(file, expression)?),
        })
    }

    /// Whether the next batch comes without waiting. An interface is asked, and comes back empty after 100 ms.
    pub(super) fn is_ready(&self) -> bool {
        true
    }

    /// Whether it is an interface that is down.
    pub(super) fn is_down(&self) -> bool {
        matches!(self, Input::Live(live) if live.link_state() == LinkState::Down)
    }
}

impl Source for Input {
    type Error = SourceError;

    #[inline]
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, SourceError> {
        match self {
            Input::File(file) => Ok(file.next_batch()?),
            Input::FilteredFile(file) => file.next_batch().map_err(|error| match error {
                FilteredError::Source(error) => SourceError::File(error),
                FilteredError::Filter(error) => SourceError::Filter(error),
            }),
            Input::Live(live) => Ok(live.next_batch()?),
        }
    }

    fn counters(&mut self) -> SourceCounters {
        match self {
            Input::File(file) => file.counters(),
            Input::FilteredFile(file) => file.counters(),
            Input::Live(live) => live.counters(),
        }
    }
}
