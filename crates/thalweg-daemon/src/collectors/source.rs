//! From a collector's configuration to an open packet source.

use thalweg_capture::filter::FilterError;
use thalweg_capture::live::LiveOptions;
use thalweg_capture::xdp::BusyPoll;
use thalweg_capture::{AnySource, CaptureError, InterfaceSpec, Spec, choose, open};
use thalweg_experiment::{Experiment, ExperimentError, Plan};
use thalweg_linux::NamespaceError;
use thiserror::Error;

use crate::config::{CollectorConfig, SourceConfig};
use crate::emulation::{EmulatedPort, Emulation};

/// A source that is open, and how packets come.
pub(crate) struct Opened {
    pub(super) source: OpenSource,
    /// For the log and the API: which backend, and why.
    pub(super) backend: String,
}

/// A source that is open.
pub(super) enum OpenSource {
    /// A file or an interface.
    Input(Box<AnySource>),
    /// An experiment that is ready to run.
    Emulation(Box<Plan>),
    /// A monitor port of the daemon's emulation.
    Port(EmulatedPort),
    /// What a test puts in the place of an interface.
    #[cfg(test)]
    Injected(super::tests::injected::Injected),
}

/// Why a source cannot be opened, or could not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// Of a file or an interface.
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
                open_input(&Spec::File { path: path.clone(), filter: config.filter.clone() })
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
                let spec = interface_spec(&config.source, config.filter.as_deref());
                open_input(&spec.expect("an interface").into()).map_err(|error| match error {
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
fn open_input(spec: &Spec) -> Result<Opened, SourceError> {
    let opened = open(spec)?;
    let source = opened.sources.into_iter().next().expect("one source");
    let backend = opened.choice.map_or_else(|| "file".to_owned(), |choice| choice.reason);
    Ok(Opened { source: OpenSource::Input(Box::new(source)), backend })
}

/// How to open an interface of this configuration.
fn interface_spec(config: &SourceConfig, filter: Option<&str>) -> Option<InterfaceSpec> {
    let SourceConfig::Interface { name, namespace, backend, busy_poll, ring_size, block_timeout } = config
    else {
        return None;
    };
    let options = LiveOptions {
        ring_size: *ring_size,
        block_timeout: *block_timeout,
        filter: filter.map(str::to_owned),
        ..LiveOptions::new(name)
    };
    let busy_poll = busy_poll.then(BusyPoll::default);
    let namespace = namespace.clone();
    Some(InterfaceSpec { backend: *backend, namespace, busy_poll, ..InterfaceSpec::new(options) })
}

/// How packets of an interface would come, and why so.
pub(crate) fn describe_source(source: &SourceConfig) -> String {
    let choice = interface_spec(source, None).map(|spec| choose(&spec));
    match choice {
        None => String::new(),
        Some(Ok(choice)) => choice.reason,
        Some(Err(error)) => error.to_string(),
    }
}
