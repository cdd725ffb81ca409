//! Opens the packet source of a collector.

use thalweg_capture::filter::FilterError;
use thalweg_capture::live::LiveOptions;
use thalweg_capture::memory::{FrameMemory, port_rate};
use thalweg_capture::xdp::BusyPoll;
use thalweg_capture::{AnySource, CaptureError, FileAccess, InterfaceSpec, Spec, choose, open};
use thalweg_experiment::{Experiment, ExperimentError, Plan};
use thalweg_linux::NamespaceError;
use thalweg_wire::{BitRate, Bytes};
use thiserror::Error;

use crate::config::{CollectorConfig, SourceConfig};
use crate::emulation::{EmulatedPort, Emulation};

/// Size of a block of the ring. The ring lasts for at least one block timeout per block, so many small blocks outlast a longer
/// absence of the collector's thread at low packet rates: 64 ms with the defaults.
const BLOCK_SIZE: Bytes = Bytes(64 << 10);

/// An open source and its description.
pub(crate) struct OpenedSource {
    pub(super) source: OpenSource,
    /// The capture backend and the reason for its choice, for the log and the API.
    pub(super) backend: String,
}

/// An open source.
pub(super) enum OpenSource {
    /// A file or an interface.
    Input(Box<AnySource>),
    /// An experiment that is ready to run.
    Emulation(Box<Plan>),
    /// A monitor port of the daemon's emulation.
    Port(EmulatedPort),
    /// A test source instead of an interface.
    #[cfg(test)]
    Injected(super::tests::injected::Injected),
}

/// Why a source cannot be opened, or failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// An error of a file or an interface.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The daemon gave up the privilege to enter the namespace of an interface.
    #[error(
        "cannot reopen an interface of network namespace {name:?} without the privileges of the start: restart the daemon, or run \
         it inside the namespace: `ip netns exec {name} thalweg serve ...`"
    )]
    Unprivileged {
        /// The namespace.
        name: String,
    },
    /// An error of the filter.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// An invalid experiment.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// An error of a running experiment.
    #[error(transparent)]
    Feed(#[from] thalweg_experiment::mirror::port::FeedError),
    /// The source cannot report whether packets are waiting, and would block the shared thread.
    #[error("threads = \"one\" requires interfaces, or ports of [emulate] without a filter")]
    NotPollable,
    /// The daemon's emulation has no such monitor port, because the daemon was started with another configuration.
    #[error("no monitor port at {0:?} in the emulation: restart the daemon")]
    NoPort(String),
}

impl OpenedSource {
    /// Opens the configured source. `emulation` provides monitor ports of `[emulate]`.
    ///
    /// # Errors
    /// If the source cannot be opened.
    pub(crate) fn open(
        config: &CollectorConfig,
        emulation: Option<&Emulation>,
    ) -> Result<OpenedSource, SourceError> {
        #[cfg(test)]
        if let Some(injected) = super::tests::injected::source(config) {
            return Ok(OpenedSource {
                source: OpenSource::Injected(injected),
                backend: "injected".to_owned(),
            });
        }
        match &config.source {
            SourceConfig::File { path, .. } => {
                let (path, filter) = (path.clone(), config.capture_filter.clone());
                // The file must not be able to end the daemon.
                open_input(&Spec::File { path, filter, access: FileAccess::Buffered })
            }
            SourceConfig::Emulation { experiment, .. } => {
                let plan = Plan::new(&Experiment::load(experiment)?)?;
                Ok(OpenedSource {
                    source: OpenSource::Emulation(Box::new(plan)),
                    backend: "emulation".to_owned(),
                })
            }
            SourceConfig::Port { .. } => {
                let port = emulation.and_then(|emulation| emulation.port(&config.switch));
                let port = port.ok_or_else(|| SourceError::NoPort(config.switch.to_string()))?;
                Ok(OpenedSource {
                    source: OpenSource::Port(port),
                    backend: "emulation of the daemon".to_owned(),
                })
            }
            SourceConfig::Interface { .. } => {
                let rate = config.monitor.map(|monitor| monitor.rate);
                let opened = interface_spec(&config.source, config.capture_filter.as_deref(), rate)
                    .map_err(SourceError::from)
                    .and_then(|spec| open_input(&spec.expect("an interface").into()));
                opened.map_err(|error| match error {
                    SourceError::Capture(CaptureError::Namespace(NamespaceError::Operation {
                        name,
                        source,
                        ..
                    })) if source.kind() == std::io::ErrorKind::PermissionDenied => {
                        SourceError::Unprivileged { name }
                    }
                    error => error,
                })
            }
        }
    }
}

/// Opens a file or an interface.
fn open_input(spec: &Spec) -> Result<OpenedSource, SourceError> {
    let opened = open(spec)?;
    let source = opened.sources.into_iter().next().expect("one source");
    let backend = opened.choice.map_or_else(|| "file".to_owned(), |choice| choice.reason);
    Ok(OpenedSource { source: OpenSource::Input(Box::new(source)), backend })
}

/// Returns how to open an interface; `None` for other sources. `monitor_rate` is that of its monitor port, if configured.
///
/// A daemon may have dozens of collectors, and the kernel allocates and locks the memory for frames of each at its start. So the
/// default follows the rate of the port.
///
/// # Errors
/// If the namespace of the interface cannot be entered.
fn interface_spec(
    config: &SourceConfig,
    filter: Option<&str>,
    monitor_rate: Option<BitRate>,
) -> Result<Option<InterfaceSpec>, CaptureError> {
    let SourceConfig::Interface { name, namespace, backend, way, busy_poll, ring_size, block_timeout } =
        config
    else {
        return Ok(None);
    };
    let options = LiveOptions {
        block_size: BLOCK_SIZE,
        block_timeout: *block_timeout,
        filter: filter.map(str::to_owned),
        way: *way,
        ..LiveOptions::new(name)
    };
    let busy_poll = busy_poll.then(BusyPoll::default);
    let (backend, namespace) = (*backend, namespace.clone());
    let mut spec = InterfaceSpec { backend, namespace, busy_poll, ..InterfaceSpec::new(options) };
    let FrameMemory { ring_size, chunks } = match ring_size {
        Some(size) => FrameMemory { ring_size: *size, chunks: *size },
        None => {
            let rate = monitor_rate.map_or_else(|| port_rate(&spec), |rate| Ok(Some(rate)))?;
            FrameMemory::for_rate(rate, spec.chunk_size)
        }
    };
    spec.options.ring_size = ring_size;
    spec.frame_memory = Some(chunks);
    Ok(Some(spec))
}

/// Returns the capture backend that a collector's interface would use, and the reason. Empty for other sources.
pub(crate) fn describe_source(config: &CollectorConfig) -> String {
    let rate = config.monitor.map(|monitor| monitor.rate);
    let choice = interface_spec(&config.source, None, rate)
        .and_then(|spec| spec.map(|spec| choose(&spec)).transpose());
    match choice {
        Ok(choice) => choice.map_or_else(String::new, |choice| choice.reason),
        Err(error) => error.to_string(),
    }
}
