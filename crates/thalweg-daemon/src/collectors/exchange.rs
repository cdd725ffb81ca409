//! A collector to be put in the place of the one at work.

use std::sync::Arc;

use thalweg_measure::collector::{Collector, CollectorError};
use thalweg_network::Versions;
use thiserror::Error;

use crate::config::CollectorConfig;
use crate::config::collector::OptionsError;

/// Why a collector cannot do something else from now on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReconfigureError {
    /// It does not fit into the network.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// It cannot be made.
    #[error(transparent)]
    Collector(#[from] CollectorError),
}

/// A collector, ready to measure as a configuration says.
#[derive(Debug)]
pub struct Exchange {
    pub(super) config: Arc<CollectorConfig>,
    /// The network that it was made for.
    pub(super) network: Option<Arc<Versions>>,
    pub(super) collector: Collector,
}

impl Exchange {
    /// Makes one. Takes as long as its flow table is large.
    ///
    /// # Errors
    /// If the collector does not fit into the network, or into memory.
    pub fn new(
        config: Arc<CollectorConfig>,
        network: Option<Arc<Versions>>,
    ) -> Result<Exchange, ReconfigureError> {
        let options = config.options(network.as_ref().map(|versions| &*versions.newest().state))?;
        let collector = Collector::new(options, network.clone())?;
        Ok(Exchange { config, network, collector })
    }
}
