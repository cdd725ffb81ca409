//! What a collecting process is told.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use rustls::ServerConfig;
use thalweg_wire::flow_export::Limits;
use thalweg_wire::{Nanos, Timestamp};

use super::Listen;
use crate::kafka::KafkaOptions;
use crate::store::StoreOptions;

/// What a collecting process is told.
#[derive(Clone, Debug)]
pub struct CollectOptions {
    /// Where to listen.
    pub listen: Vec<Listen>,
    /// Sockets, each with its thread, for one UDP address.
    pub receivers: NonZeroUsize,
    /// Bytes of each UDP socket's receive buffer. Default 64 MiB: a second of a million records, as the kernel counts
    /// them.
    pub receive_buffer: usize,
    /// What each decoder may keep.
    pub limits: Limits,
    /// One packet in so many is counted by these exporters, where they do not say so themselves.
    pub sampling: BTreeMap<IpAddr, u32>,
    /// Bounds of TCP and TLS.
    pub streams: StreamLimits,
    /// Certificate and key for TLS, and who is let in.
    pub tls: Option<Arc<ServerConfig>>,
    /// Where the records go.
    pub store: StoreOptions,
    /// Where the flow records go besides.
    pub kafka: Option<KafkaOptions>,
    /// What time it is.
    pub clock: fn() -> Timestamp,
}

impl CollectOptions {
    /// The defaults, for a store and a clock.
    pub fn new(store: StoreOptions, clock: fn() -> Timestamp) -> CollectOptions {
        CollectOptions {
            listen: Listen::DEFAULT.to_vec(),
            receivers: NonZeroUsize::MIN,
            receive_buffer: 64 << 20,
            limits: Limits::default(),
            sampling: BTreeMap::new(),
            streams: StreamLimits::default(),
            tls: None,
            store,
            kafka: None,
            clock,
        }
    }
}

/// Bounds of what a peer of TCP or TLS can take up. A message has no more than 65,535 bytes, by its length field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Connections to one listener at a time; more are closed at once. Default 256.
    pub connections: usize,
    /// A connection without a whole message for so long is closed. Default 30 minutes: routers are shipped with
    /// active timeouts of up to that.
    pub idle: Nanos,
    /// A TLS handshake that takes longer is given up. Default 10 s.
    pub handshake: Nanos,
}

impl Default for StreamLimits {
    fn default() -> StreamLimits {
        StreamLimits { connections: 256, idle: Nanos::from_secs(30 * 60), handshake: Nanos::from_secs(10) }
    }
}
