//! Replaces the Kafka producer in builds without it. Its types have no values.

use std::convert::Infallible;

use thalweg_wire::flow_export::RecordBatch;

use super::{KafkaError, KafkaOptions, Statistics};

/// A Kafka producer, in builds with Kafka.
#[derive(Debug)]
pub struct Kafka(Infallible);

/// Queues rows for Kafka, in builds with Kafka.
#[derive(Debug)]
pub struct RowSender(Infallible);

impl Kafka {
    /// Fails in this build.
    ///
    /// # Errors
    /// [`KafkaError::NotBuilt`].
    pub fn start(_: &KafkaOptions) -> Result<Kafka, KafkaError> {
        Err(KafkaError::NotBuilt)
    }

    /// Returns a sender for one thread.
    pub fn sender(&self) -> RowSender {
        match self.0 {}
    }

    /// Returns whether the queue has room for two batches.
    pub fn has_room(&self) -> bool {
        match self.0 {}
    }

    /// Returns the current counters.
    pub fn statistics(&self) -> Statistics {
        match self.0 {}
    }

    /// Delivers the remaining rows.
    pub fn finish(&mut self) -> Statistics {
        match self.0 {}
    }
}

impl RowSender {
    /// Queues rows.
    pub fn append(&mut self, _: &RecordBatch) {
        match self.0 {}
    }

    /// Sends a partial batch.
    pub fn tick(&mut self) {
        match self.0 {}
    }
}
