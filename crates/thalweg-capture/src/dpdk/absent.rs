//! The source in a build without DPDK: it cannot be opened, so no value of it exists.

use std::num::NonZeroUsize;

use thalweg_wire::{Batch, Source, SourceCounters};

use super::error::DpdkError;
use super::options::DpdkOptions;
use crate::live::LinkState;

/// The packets of some receive queues of a DPDK port. In this build it cannot be opened.
#[derive(Debug)]
pub enum DpdkSource {}

impl DpdkSource {
    /// Refuses to open a port.
    ///
    /// # Errors
    /// [`DpdkError::NotBuilt`], if the options are valid.
    pub fn open_group(options: &DpdkOptions, _workers: NonZeroUsize) -> Result<Vec<DpdkSource>, DpdkError> {
        options.validate()?;
        Err(DpdkError::NotBuilt { device: options.device.clone() })
    }

    /// Returns the source's name.
    pub fn name(&self) -> &str {
        match *self {}
    }

    /// Returns whether packets can arrive.
    pub fn link_state(&self) -> LinkState {
        match *self {}
    }

    /// Updates the link state.
    pub fn update_link_state(&mut self) {
        match *self {}
    }

    /// Whether another packet is likely to be available.
    pub fn is_ready(&self) -> bool {
        match *self {}
    }
}

impl Source for DpdkSource {
    type Error = DpdkError;

    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, DpdkError> {
        match *self {}
    }

    fn counters(&mut self) -> SourceCounters {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_a_port_says_how_to_build_with_dpdk() {
        let open = |device| DpdkSource::open_group(&DpdkOptions::new(device), NonZeroUsize::MIN).unwrap_err();
        let error = open("net_af_packet0,iface=eth0").to_string();
        assert!(error.contains("built without DPDK") && error.contains("--features dpdk"), "{error}");
        assert!(matches!(open("eth0."), DpdkError::BadDevice { .. }));
    }
}
