//! One queue per port, with a state that `enqueue` and `schedule` share.

use thalweg_network::PortIndex;

use crate::packet::Packet;
use crate::queues::backlog::{Backlog, Queued};
use crate::queues::fifos::Fifos;
use crate::queues::port_set::PortSet;
use crate::router::Store;

/// Queues of `T`, one per port, each with an `S`.
#[derive(Clone, Debug)]
pub struct FifosWith<T: Copy, S> {
    /// The queues.
    pub fifos: Fifos<T>,
    /// The states, by port.
    pub states: Box<[S]>,
}

impl<T: Queued, S: Clone> FifosWith<T, S> {
    /// Empty queues for `capacity` packets each, with initial `state`.
    ///
    /// # Panics
    /// As [`Fifos::new`].
    pub fn new(ports: usize, capacity: u32, state: S) -> Self {
        FifosWith { fifos: Fifos::new(ports, capacity), states: vec![state; ports].into_boxed_slice() }
    }
}

impl<T: Copy + Send, S: Send> Store for FifosWith<T, S>
where
    Fifos<T>: Store,
{
    #[inline(always)]
    fn backlogged(&self) -> &PortSet {
        Store::backlogged(&self.fifos)
    }

    fn backlog(&self, port: PortIndex) -> Backlog {
        Store::backlog(&self.fifos, port)
    }

    fn take_any(&mut self, port: PortIndex) -> Option<Packet> {
        self.fifos.take_any(port)
    }
}
