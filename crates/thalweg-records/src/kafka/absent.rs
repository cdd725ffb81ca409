//! What stands for Kafka in a build without it: types that have no values.

use std::convert::Infallible;

use thalweg_wire::flow_export::RecordBatch;

use super::{KafkaError, KafkaOptions, Statistics};

/// Feeds Kafka, in a build that has it.
#[derive(Debug)]
pub struct Kafka(Infallible);

/// A way to Kafka, in a build that has it.
#[derive(Debug)]
pub struct Outlet(Infallible);

impl Kafka {
    /// There is no such thing here.
    ///
    /// # Errors
    /// [`KafkaError::NotBuilt`].
    pub fn start(_: &KafkaOptions) -> Result<Kafka, KafkaError> {
        Err(KafkaError::NotBuilt)
    }

    /// A way in, for one thread.
    pub fn outlet(&self) -> Outlet {
        match self.0 {}
    }

    /// Whether the queue has room for a batch and one that is being filled.
    pub fn has_room(&self) -> bool {
        match self.0 {}
    }

    /// What became of the rows so far.
    pub fn statistics(&self) -> Statistics {
        match self.0 {}
    }

    /// Delivers what there is, for as long as options say.
    pub fn finish(&mut self) -> Statistics {
        match self.0 {}
    }
}

impl Outlet {
    /// Takes rows.
    pub fn append(&mut self, _: &RecordBatch) {
        match self.0 {}
    }

    /// Sends what has been waiting for more.
    pub fn tick(&mut self) {
        match self.0 {}
    }
}
