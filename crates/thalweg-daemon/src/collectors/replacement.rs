//! A collector that replaces a running one.

use std::sync::Arc;

use thalweg_measure::collector::{Collector, CollectorError};
use thalweg_network::Versions;
use thiserror::Error;

use crate::config::CollectorConfig;
use crate::config::collector::OptionsError;

/// Why a collector cannot be reconfigured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReconfigureError {
    /// It does not fit the network.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// It cannot be created.
    #[error(transparent)]
    Collector(#[from] CollectorError),
}

/// A collector with its configuration, ready to replace another.
#[derive(Debug)]
pub struct Replacement {
    pub(super) config: Arc<CollectorConfig>,
    /// The network that it was created for.
    pub(super) network: Option<Arc<Versions>>,
    pub(super) collector: Collector,
}

impl Replacement {
    /// Creates a replacement. The time is proportional to the size of its flow table.
    ///
    /// # Errors
    /// If the collector does not fit the network, or memory does not suffice.
    pub fn new(
        config: Arc<CollectorConfig>,
        network: Option<Arc<Versions>>,
    ) -> Result<Replacement, ReconfigureError> {
        let options = config.options(network.as_ref().map(|versions| &*versions.newest().state))?;
        let collector = Collector::new(options, network.clone())?.with_live_clock(config.source.is_live());
        Ok(Replacement { config, network, collector })
    }
}
